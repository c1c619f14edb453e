"""Simulated sets in the form of the real ones of :mod:`crowdwise.datasets`."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.annotations.names import as_names
from crowdwise.datasets.crowd import Crowd
from crowdwise.datasets.registry import Info
from crowdwise.simulate.crowds import SimulatedCrowd
from crowdwise.typing import Array, Floats

LICENSE = "none needed: drawn by this package"


@dataclass(frozen=True)
class Description:
    """The description of a simulated set, beyond what can be counted."""

    name: str
    title: str
    about: str
    features: str
    warnings: tuple[str, ...] = ()
    citation: tuple[str, ...] = ()

    def info(self, annotations: Annotations, n_features: int) -> Info:
        """Return what :func:`crowdwise.datasets.info` would return."""
        return Info(
            name=self.name,
            title=self.title,
            about=self.about,
            license=LICENSE,
            citation=self.citation,
            counts={
                "tasks": annotations.n_tasks,
                "workers": annotations.n_workers,
                "annotations": annotations.n_annotations,
                "classes": annotations.n_classes,
                "truths": annotations.n_tasks,
                "features": n_features,
            },
            warnings=self.warnings,
            workers="none",
            features=self.features,
            truths={},
            variants={},
            files=(),
            home="",
            labels="classes",
            openml=False,
            parser="",
            options={},
            variant_files={},
        )


def as_dataset(
    about: Description,
    crowd: SimulatedCrowd,
    X: Array,
    *,
    tasks: Sequence[str],
    split: Sequence[str] | None = None,
    workers: Sequence[str] | None = None,
    classes: Sequence[Hashable] | None = None,
    extra: Mapping[str, object] | None = None,
    items: pd.DataFrame | None = None,
) -> Crowd:
    """Name a simulated crowd, in the form that ``load`` returns.

    ``extra["simulated"]`` is the crowd it was made from, with its confusion, kinds and
    difficulties; ``workers`` has each one's kind and accuracy.
    """
    n_workers = crowd.annotations.n_workers
    named = replace(
        crowd.annotations,
        tasks=as_names(tasks),
        workers=as_names(workers or [f"worker-{j + 1}" for j in range(n_workers)]),
        classes=crowd.annotations.classes if classes is None else as_names(classes),
        notes=(f"simulated set {about.name}: {about.title}",),
    )
    index = pd.Index(named.tasks, name="task")
    about_workers = {"kind": crowd.kinds, "accuracy": true_accuracy(crowd).round(4)}
    return Crowd(
        about.name,
        named,
        about.info(named, X.shape[1]),
        truth=pd.Series(named.classes[crowd.truth], index, name="truth"),
        X=X,
        X_tasks=named.tasks,
        split=None if split is None else pd.Series(split, index, name="split"),
        workers=pd.DataFrame(about_workers, pd.Index(named.workers, name="worker")),
        extra={"simulated": crowd, **(extra or {})},
        items=items,
    )


def true_accuracy(crowd: SimulatedCrowd) -> Floats:
    """Return how often each worker is right on tasks of difficulty one."""
    share = np.bincount(crowd.truth, minlength=crowd.confusion.shape[1]) / len(crowd.truth)
    right: Floats = crowd.confusion.diagonal(axis1=1, axis2=2) @ share
    return right


def name_parts(sizes: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Make task ids such as ``train-0007``, and the part that each task belongs to."""
    split = [part for part, size in sizes.items() for _ in range(size)]
    tasks = [f"{part}-{i:04d}" for part, size in sizes.items() for i in range(size)]
    return tasks, split
