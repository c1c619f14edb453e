"""Compute all facts of one report."""

import logging
from dataclasses import replace

import pandas as pd
from sklearn.utils import check_random_state

from crowdwise import __version__, progress
from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.annotations.truth_names import compare_classes, warn_unseen_truths
from crowdwise.base.aggregator import Aggregator
from crowdwise.errors import AnnotationError, explain
from crowdwise.evaluate import agreement
from crowdwise.evaluate.label_counts import once_per_worker
from crowdwise.evaluate.truth_alignment import Truths
from crowdwise.io import as_annotations
from crowdwise.io.truths import align_truths
from crowdwise.report.facts.classes import class_facts
from crowdwise.report.facts.curve import curve_facts
from crowdwise.report.facts.data import data_facts
from crowdwise.report.facts.facts import Facts, Measure
from crowdwise.report.facts.findings import findings
from crowdwise.report.facts.limits import merge_rare_classes
from crowdwise.report.facts.maps import align_rows, task_map, worker_map
from crowdwise.report.facts.methods import MAIN, METHODS, fit_methods, method_facts
from crowdwise.report.facts.pairs import pair_facts
from crowdwise.report.facts.panel import panel_facts
from crowdwise.report.facts.plan import plan_facts
from crowdwise.report.facts.tasks import task_facts
from crowdwise.report.facts.trust import trust_facts
from crowdwise.report.facts.workers import time_facts, worker_facts
from crowdwise.typing import AnnotationsLike, FeaturesLike, RandomState

N_STAGES = 6

log = logging.getLogger("crowdwise.report")


def gather(
    annotations: AnnotationsLike,
    *,
    X: FeaturesLike = None,
    truth: Truths | None = None,
    embedding: FeaturesLike = None,
    method: str | Aggregator = MAIN,
    methods: tuple[str, ...] = METHODS,
    title: str = "Crowd labels",
    random_state: RandomState = 0,
) -> Facts:
    """Compute everything that a report shows.

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
        Anything that :func:`crowdwise.io.as_annotations` accepts.
    X : array of shape (n_tasks, n_features) or DataFrame, optional
        Features, for the map of tasks: in the order of ``annotations.tasks``, or a frame
        whose index holds tasks.
    truth : mapping, Series or frame, optional
        Known truths of some tasks. Labels are scored against them; no method learns from
        them. By default those that came with the annotations.
    embedding : array of shape (n_tasks, n_dimensions) or DataFrame, optional
        Learned positions of the tasks, such as those returned by ``transform`` of a model in
        :mod:`crowdwise.embed`; the map shows these rather than ``X``.
    method : str or aggregator, optional
        The method that infers the labels; :data:`crowdwise.aggregate.DEFAULT` by default.
    methods : tuple of str
        Methods to compare it with; with none, the report is fastest.
    title : str
        Heading of the page.
    random_state : int or RandomState, default=0
        Random seed of intervals, samples and forecasts.

    Examples
    --------
    >>> labels = {"q1": {"ann": "yes", "bob": "yes"}, "q2": {"ann": "no", "bob": "yes"}}
    >>> facts = gather(labels, methods=())
    >>> facts.data.n_annotations, facts.tasks.n_tasks, facts.method
    (4, 2, 'BayesBag')
    """
    data = as_annotations(annotations)
    refuse_misfits(data, X, embedding)
    data, known, rare = merge_rare_classes(data, find_truths(data, truth))
    # A crowd simulated with the same seed must not share its random numbers with the report.
    random_state = int(check_random_state(random_state).randint(2**31 - 1))
    once = once_per_worker(data)
    with progress.bar("report", N_STAGES, "stage") as bar:

        def stage(what: str) -> None:
            bar.advance()
            log.info(what)

        fits, main = fit_methods(data, method, methods, random_state)
        posterior = main.posterior
        stage("measuring agreement")
        measures = agreement(once, random_state=random_state)
        stage("assessing workers")
        workers = worker_facts(once, posterior, known, main.model)
        stage("comparing methods")
        compared, note = method_facts(once, fits, main, known, random_state)
        stage("forecasting")
        curve = curve_facts(once, main.model, known, random_state)
        stage("drawing maps")
        facts = Facts(
            title=title,
            version=__version__,
            method=main.name,
            n_truths=0 if known is None else len(known),
            data=data_facts(data, rare),
            agreement=tuple(Measure(str(row.Index), *row[1:]) for row in measures.itertuples()),
            trust=trust_facts(once, posterior, known, random_state),
            tasks=task_facts(data, posterior, known),
            workers=workers,
            times=time_facts(once, posterior, workers.number),
            pairs=pair_facts(once),
            panel=panel_facts(data, known),
            plan=plan_facts(once, posterior, known, random_state),
            classes=class_facts(once, posterior, known),
            methods=compared,
            held_out_note=note,
            curve=curve,
            task_map=task_map(data, posterior, X, embedding, random_state),
            worker_map=worker_map(once, posterior, workers.number, workers.accuracy),
        )
        return replace(facts, findings=findings(facts))


def refuse_misfits(data: Annotations, X: FeaturesLike, embedding: FeaturesLike) -> None:
    """Refuse a crowd without labels, and tables that do not match its tasks, before any work."""
    if not data.n_annotations:
        raise AnnotationError(
            explain(
                "There are no annotations.",
                expected="at least one with a label",
                fix="check that it is the right file, and that labels are not all empty",
            )
        )
    for what, table in (("X", X), ("embedding", embedding)):
        if table is not None:
            align_rows(table, data, what)


def find_truths(data: Annotations, truth: Truths | None) -> pd.Series | None:
    """Return known truths of these tasks as a series, by default those in the data."""
    if truth is None:
        return data.gold_labels
    known = align_truths(truth, data.tasks)[1]
    if (locate(data.classes, known) < 0).all():
        fact = "None of the truths is a class of the annotations."
        raise AnnotationError(explain(fact, **compare_classes(known, data.classes)))
    return known[~warn_unseen_truths(known, data.classes, "they are not scored")]
