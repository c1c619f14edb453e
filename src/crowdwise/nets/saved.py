"""Networks as named arrays, and back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from crowdwise.errors import CrowdwiseError, FormatError, ParameterError, explain
from crowdwise.learn.objectives import CrowdNet
from crowdwise.nets.batches import CrowdData
from crowdwise.nets.features import Features
from crowdwise.nets.loop import seeded
from crowdwise.nets.modules import Standardize
from crowdwise.persist import Savable


class SavedNet(Savable):
    """A model whose ``net_`` is saved as arrays, and built anew from its parameters."""

    net_: Any

    def _blank(self, device: torch.device) -> nn.Module:
        """A network of the right shapes, whatever its numbers; ``device`` is the default one."""
        model: Any = self
        data = _empty_data(model, device)
        n_in = model.feature_shape_[0] if len(model.feature_shape_) == 1 else None
        scaler: nn.Module = nn.Identity()
        if model.scale and n_in is not None:
            scaler = Standardize(torch.zeros(n_in), torch.ones(n_in))
        return self._assembled(scaler, data, n_in)

    def _assembled(self, scaler: nn.Module, data: CrowdData, n_in: int | None) -> nn.Module:
        """The network behind a scaler, freshly initialised."""
        model: Any = self
        return CrowdNet(scaler, model._truth(data, n_in), model._noise(data, n_in))

    def _learned(self) -> dict[str, Any]:
        net = getattr(self, "net_", None)  # none in a model that is another one's parameter
        return {**super()._learned(), **({} if net is None else {"net_": state_of(net)})}

    def _restore(self, learned: dict[str, Any]) -> None:
        super()._restore({name: learned[name] for name in learned.keys() - {"net_"}})
        if learned:  # else it was saved before any fit
            self.net_ = rebuilt(self, learned["net_"])


def state_of(net: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name."""
    state = net.state_dict()
    strange = [name for name, value in state.items() if not isinstance(value, Tensor)]
    if strange:
        raise ParameterError(f"{strange[0]} of the network is no tensor, and cannot be saved.")
    return state


def rebuilt(model: Any, state: dict[str, Tensor]) -> nn.Module:
    """The network that a model's parameters and names describe, holding ``state``.

    It is built without memory of its own (on torch's ``meta`` device), so that the sizes a file
    claims cost nothing until its arrays are seen to match them. Code of the user's gets a real
    device, which it may rely on.
    """
    yours = any(callable(value) for value in model.get_params(deep=False).values())
    device = torch.device("cpu" if yours else "meta")
    with seeded(0, torch.device("cpu"), 0), device:
        net = model._blank(device)
    _refuse_misfits(net, state, ParameterError if yours else FormatError)
    # A network built for real keeps its own types of number, half precision say.
    net.load_state_dict(state, assign=not yours)
    return net.eval()


def _empty_data(model: Any, device: torch.device) -> CrowdData:
    """Data of the right sizes with no annotation in it."""
    n_tasks, n_classes = len(model.tasks_), len(model.classes_)
    none = torch.zeros(0, dtype=torch.long, device=device)
    features = torch.zeros((), device=device).expand(n_tasks, *model.feature_shape_)
    return CrowdData(
        Features(features),
        torch.zeros(n_tasks + 1, dtype=torch.long, device=device),
        none,
        none,
        none,
        torch.zeros(0, device=device),
        torch.zeros(n_tasks, n_classes, device=device),
        n_classes,
        len(model.workers_),
    )


def _refuse_misfits(net: nn.Module, state: dict[str, Tensor], error: type[CrowdwiseError]) -> None:
    """Arrays that are missing, or too many, or of another shape."""
    expected = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in state.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise error(
                explain(
                    f"{name} of the network has the shape {expected.get(name, 'of nothing')}, in "
                    f"the file {found.get(name, 'of nothing')}.",
                    fix="give load the same module that the model was learned with",
                )
            )
