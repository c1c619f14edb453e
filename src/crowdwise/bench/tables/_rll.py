"""What RLL's tables share: stand-ins for its private sets, and its methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from crowdwise import simulate
from crowdwise.bench.table import Column, Published
from crowdwise.bench.tables._embed import Probe, brief
from crowdwise.datasets.crowd import Crowd
from crowdwise.embed import RLL

SOURCE = (
    "Xu et al. (2019), Learning effective embeddings from crowdsourced labels: An educational case "
    "study, ICDE, doi:10.1109/ICDE.2019.00208."
)
ABOUT = (
    "The paper's sets are private. These are simulated ones with their published sizes, numbers of "
    "workers and class ratios, so that published figures are shown for orientation only. Five-fold "
    "cross-validation against the simulated truth; all settings were fixed beforehand."
)
ORAL, CLASS = "oral (stand-in)", "class (stand-in)"


def stand_in(name: str, redundancy: int | None = None) -> Callable[[int], Crowd]:
    """The stand-in of a seed, with at most so many labels a task."""

    def load(seed: int) -> Crowd:
        crowd = simulate.stand_in(name, random_state=seed)
        if redundancy is None:
            return crowd
        return replace(crowd, annotations=crowd.annotations.subsample(redundancy, seed))

    return load


COLUMNS = {
    ORAL: Column(stand_in("oral"), redrawn=True, about="880 tasks, 5 workers"),
    CLASS: Column(stand_in("class"), redrawn=True, about="472 tasks, 5 workers"),
}


def paper(oral: tuple[float, float], class_: tuple[float, float]) -> dict[str, Any]:
    """Accuracy and F1 as published, of the real sets."""
    pairs = {ORAL: oral, CLASS: class_}
    return {
        column: {"accuracy": Published(accuracy), "F1": Published(f1)}
        for column, (accuracy, f1) in pairs.items()
    }


def probe(embedder: Any = None, **settings: Any) -> Callable[[str], Probe]:
    """A method with one weight decay and one penalty."""
    return lambda _column: Probe(embedder, choices=(1e-3,), strengths=(1.0,), **settings)


def rll(**changes: Any) -> Callable[[str], Probe]:
    """RLL, Bayesian unless something else is said."""
    return probe(RLL(groups_per_epoch=6000, training=brief(8), **changes))
