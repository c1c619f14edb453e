"""Networks as named arrays, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from crowdwise.errors import CrowdwiseError, FormatError, ParameterError, explain
from crowdwise.nets.batches import CrowdData
from crowdwise.nets.features import Features
from crowdwise.nets.loop import seeded

NetT = TypeVar("NetT", bound=nn.Module)


def pack_net(learned: dict[str, Any]) -> dict[str, Any]:
    """Return what a model has learned, with the parameters and buffers of ``net_`` by name."""
    if "net_" not in learned:  # a model that is a parameter of another
        return learned
    state = learned["net_"].state_dict()
    strange = [name for name, value in state.items() if not isinstance(value, Tensor)]
    if strange:
        raise ParameterError(
            f"{strange[0]} of the network is not a tensor and cannot be saved."
            "\n  fix:      keep tensors and numbers only in the state of your module"
        )
    return {**learned, "net_": state}


def unpack_net(
    model: BaseEstimator, build: Callable[[torch.device], NetT], state: dict[str, Tensor]
) -> NetT:
    """Build the network on a device, with the parameters in ``state``.

    It is built without memory (on torch's ``meta`` device), so that the sizes claimed by a file
    cost nothing until its arrays are seen to match them. A user's code gets a real device, which
    it may rely on.
    """
    own_code = any(callable(value) for value in model.get_params(deep=False).values())
    device = torch.device("cpu" if own_code else "meta")
    with seeded(0, torch.device("cpu"), 0), device:
        net = build(device)
    _refuse_misfits(net, state, ParameterError if own_code else FormatError)
    # A network built on a real device keeps its own number types, such as half precision.
    net.load_state_dict(state, assign=not own_code)
    return net.eval()


def _refuse_misfits(net: nn.Module, state: dict[str, Tensor], error: type[CrowdwiseError]) -> None:
    """Refuse arrays that are missing, superfluous or of another shape."""
    expected = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in state.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise error(
                explain(
                    f"{name} of the network has the shape {expected.get(name, 'of nothing')}, in "
                    f"the file {found.get(name, 'of nothing')}.",
                    fix="give load the same module that the model was trained with",
                )
            )


def empty_data(
    shape: tuple[int, ...],
    sizes: tuple[int, int, int],
    device: torch.device,
    worker_features: Tensor | None,
) -> CrowdData:
    """Data of some numbers of tasks, workers and classes, without an annotation in it."""
    n_tasks, n_workers, n_classes = sizes
    none = torch.zeros(0, dtype=torch.long, device=device)
    return CrowdData(
        Features(torch.zeros((), device=device).expand(n_tasks, *shape)),
        torch.zeros(n_tasks + 1, dtype=torch.long, device=device),
        none,
        none,
        none,
        torch.zeros(0, device=device),
        torch.zeros(n_tasks, n_classes, device=device),
        n_classes,
        torch.ones(n_workers, dtype=torch.bool, device="cpu"),
        worker_features,
    )
