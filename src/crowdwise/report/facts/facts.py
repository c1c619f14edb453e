"""The facts of a report: everything it says, as numbers."""

import json
import math
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array, issparse

from crowdwise.report.facts.classes import ClassFacts
from crowdwise.report.facts.curve import CurveFacts
from crowdwise.report.facts.data import DataFacts
from crowdwise.report.facts.maps import MapFacts
from crowdwise.report.facts.methods import MethodFacts
from crowdwise.report.facts.pairs import PairFacts
from crowdwise.report.facts.panel import PanelFacts
from crowdwise.report.facts.plan import PlanFacts
from crowdwise.report.facts.tasks import TaskFacts
from crowdwise.report.facts.trust import TrustFacts
from crowdwise.report.facts.workers import TimeFacts, WorkerFacts


@dataclass(frozen=True)
class Measure:
    """A measure of agreement, its interval, and what it means."""

    name: str
    value: float
    low: float
    high: float
    n_tasks: int
    reading: str


@dataclass(frozen=True)
class Finding:
    """One sentence: good news, something worth knowing, or something to act on."""

    tone: str  # "good", "note" or "act"
    text: str
    section: str  # with the numbers behind it


@dataclass(frozen=True)
class Facts:
    """Everything a report says, as numbers, without any markup.

    Attributes
    ----------
    title, version, method : str
        Title, package version, and the method that infers the labels.
    data : DataFacts
        Sizes and oddities.
    agreement : tuple of Measure
        Agreement between workers, in all the usual ways.
    trust : TrustFacts
        How many labels should be right, and whether workers err independently.
    tasks, workers, times, pairs, classes, methods, curve
        One object for each part of the report; None if the data do not provide it.
    task_map, worker_map : MapFacts or None
        Tasks and workers as points on a plane.
    panel : PanelFacts or None
        How much workers err together, if they are judges.
    plan : PlanFacts or None
        Tasks that are done, what more labels would bring, and where.
    held_out_note : str
        Says if methods were compared on some of the tasks only.
    n_truths : int
        Tasks whose truth is known.
    findings : tuple of Finding
        The most important facts, in words.
    """

    title: str
    version: str
    method: str
    n_truths: int
    data: DataFacts
    agreement: tuple[Measure, ...]
    trust: TrustFacts
    tasks: TaskFacts
    workers: WorkerFacts
    times: TimeFacts | None
    pairs: PairFacts | None
    classes: ClassFacts
    methods: tuple[MethodFacts, ...]
    held_out_note: str
    curve: CurveFacts | None
    task_map: MapFacts | None
    worker_map: MapFacts | None
    panel: PanelFacts | None = None
    plan: PlanFacts | None = None
    findings: tuple[Finding, ...] = ()

    @cached_property
    def main(self) -> MethodFacts:
        """The method that infers the labels."""
        return next(method for method in self.methods if method.main)

    def measure(self, name: str) -> Measure | None:
        """Find the first measure of agreement whose name contains this one."""
        return next((measure for measure in self.agreement if name in measure.name), None)


def to_json(facts: Facts) -> str:
    """Write the facts as JSON; unknown numbers are null."""
    return json.dumps(to_plain(facts), ensure_ascii=False, allow_nan=False)


def to_plain(value: object) -> object:
    """Convert to dicts, lists, text, numbers and None only."""
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    elif issparse(value):
        value = sparse_rows(value)
    if isinstance(value, dict):
        return {str(key): to_plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    known = value is None or isinstance(value, bool | int)
    return value if known else str(value).encode("utf-8", "replace").decode("utf-8")


def sparse_rows(table: csr_array) -> list[list[list[int]]]:
    """Convert a sparse table of counts to a list of (column, count) for each row."""
    table = table.tocsr()
    column, times = table.indices.tolist(), table.data.astype(int).tolist()
    cells = [[c, t] for c, t in zip(column, times, strict=True)]
    return [cells[low:high] for low, high in pairwise(table.indptr.tolist())]
