"""Laws of truth inference."""

import pickle
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from crowdwise.annotations import Annotations, tied
from crowdwise.annotations.order import as_numbers
from crowdwise.base.aggregator import Aggregator
from crowdwise.errors import CrowdwiseError
from crowdwise.laws.checks import (
    add_weightless,
    fit_copy,
    fit_posterior,
    global_state,
    rebuild,
    unusual_crowds,
)
from crowdwise.laws.engines import (
    blocks_of_tasks_add_up_to_the_whole,
    every_engine_gives_the_same_bits,
)
from crowdwise.typing import Floats


def probabilities_are_distributions(method: Aggregator, annotations: Annotations) -> None:
    """Every row of the posterior is non-negative and sums to one."""
    proba = fit_copy(method, annotations).posterior_
    assert proba.shape == (annotations.n_tasks, annotations.n_classes)
    assert np.isfinite(proba).all()
    assert proba.min() >= 0
    assert_allclose(proba.sum(axis=1), 1)


def results_carry_their_names(method: Aggregator, annotations: Annotations) -> None:
    """``labels_`` and ``probas_`` are named by task and class."""
    model = fit_copy(method, annotations)
    assert model.labels_.name == "agg_label"
    assert model.labels_.index.name == "task"
    assert_array_equal(model.labels_.index, annotations.tasks)
    assert_array_equal(model.probas_.columns, annotations.classes)
    assert set(model.labels_) <= set(annotations.classes)


def predicting_the_training_tasks_gives_their_labels(
    method: Aggregator, annotations: Annotations
) -> None:
    """``predict_proba`` on the tasks of ``fit`` repeats ``probas_``."""
    model = fit_copy(method, annotations)
    again = model.predict_proba(annotations)
    assert_array_equal(again.index, model.probas_.index)
    assert_allclose(again, model.probas_, rtol=1e-6, atol=1e-8)
    assert_array_equal(model.predict(annotations), model.labels_)


def row_order_is_irrelevant(method: Aggregator, annotations: Annotations) -> None:
    """Shuffling the table changes nothing."""
    frame = annotations.to_frame()
    before, after = (
        rebuild(annotations, table) for table in (frame, frame.sample(frac=1, random_state=0))
    )
    assert_allclose(
        fit_posterior(method, after), fit_posterior(method, before), rtol=1e-6, atol=1e-8
    )


def tasks_without_labels_change_nothing(method: Aggregator, annotations: Annotations) -> None:
    """Declaring tasks that nobody has labeled changes nothing for the others."""
    if method.traits.abstention_counts:
        return
    names = np.array([*annotations.tasks, *(f"unlabeled-{i}" for i in range(40))], dtype=object)
    build = partial(
        Annotations.from_codes,
        tasks=names,
        workers=annotations.workers,
        classes=annotations.classes,
    )
    columns, n = (annotations.task, annotations.worker, annotations.label), annotations.n_tasks
    unlabeled = (np.arange(n, n + 40), np.zeros(40, np.int64), np.zeros(40, np.int64))
    counts = np.ones(len(annotations.task)) if annotations.weight is None else annotations.weight
    both = [np.concatenate(pair) for pair in zip(columns, unlabeled, strict=True)]
    alone = fit_copy(method, annotations)
    for more in (
        build(*columns, weight=annotations.weight),
        build(*both, weight=[*counts, *np.zeros(40)]),  # with weight 0
    ):
        beside = fit_copy(method, more)
        assert_allclose(beside.posterior_[:n], alone.posterior_, rtol=1e-6, atol=1e-9)
        assert_allclose(beside.posterior_.sum(axis=1), 1)
        for rows in beside._task_rows().values():
            assert len(rows) == len(names)


def labels_of_weight_zero_teach_nothing(method: Aggregator, annotations: Annotations) -> None:
    """Rows of weight 0 change nothing, even if a worker or task has no others."""
    alone, n = fit_copy(method, annotations), annotations.n_workers
    newcomers = [f"newcomer-{i}" for i in range(3)]
    names = np.array([*annotations.workers, *newcomers], dtype=object)
    renamed = replace(annotations, workers=np.array([f"other-{i}" for i in range(n)]))
    expected = alone.predict_proba(renamed)
    for more in (
        add_weightless(annotations, np.array([0, 1, n - 1])),
        add_weightless(annotations, np.array([n, n + 1, n + 2]), newcomers),
        add_weightless(annotations, np.array([0, n, n - 1]), newcomers[:1], tasks=["new"]),
        replace(annotations, workers=names),
    ):
        beside = fit_copy(method, more)
        own = beside.posterior_[: annotations.n_tasks]
        assert_allclose(own, alone.posterior_, rtol=1e-6, atol=1e-9)
        assert_array_equal(beside.workers_, more.workers)
        if hasattr(alone, "objective_"):
            assert_allclose(beside.objective_[-1], alone.objective_[-1], rtol=1e-6)
        known = alone.predict_proba(more).iloc[: annotations.n_tasks]
        assert_allclose(known, alone.probas_, rtol=1e-6, atol=1e-8)
        found = beside.predict_proba(renamed)
        assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def task_order_is_irrelevant(method: Aggregator, annotations: Annotations) -> None:
    """Renaming and reordering the tasks reorders the result and does nothing else."""
    order = np.random.default_rng(1).permutation(annotations.n_tasks)
    moved = replace(annotations[order], tasks=np.array([f"task-{i}" for i in order], dtype=object))
    _assert_same(method, fit_posterior(method, moved), fit_posterior(method, annotations)[order])


def worker_names_are_only_names(method: Aggregator, annotations: Annotations) -> None:
    """Renaming and reordering the workers changes nothing."""
    order = np.random.default_rng(2).permutation(annotations.n_workers)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    names = np.array([f"worker-{i}" for i in order], dtype=object)
    worker = place[annotations.worker].astype(np.int32)
    moved = replace(annotations, workers=names, worker=worker)
    _assert_same(method, fit_posterior(method, moved), fit_posterior(method, annotations))


def class_names_are_only_names(method: Aggregator, annotations: Annotations) -> None:
    """Renaming and reordering the classes reorders the columns and does nothing else."""
    order = np.random.default_rng(3).permutation(annotations.n_classes)
    if method.traits.ordinal:
        order = np.arange(annotations.n_classes)[::-1]
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    names = np.array([f"class-{i}" for i in order], dtype=object)
    if method.traits.ordinal and as_numbers(annotations.classes) is not None:
        names = 10 * np.arange(annotations.n_classes)  # numbers stay numbers
    moved = replace(annotations, classes=names, label=place[annotations.label].astype(np.int32))
    _assert_same(method, fit_posterior(method, moved), fit_posterior(method, annotations)[:, order])


def duplicated_rows_equal_weights_of_two(method: Aggregator, annotations: Annotations) -> None:
    """Repeating some rows is the same as giving them a weight of two."""
    if not method.traits.weighted:
        return
    twice = np.random.default_rng(4).random(annotations.n_annotations) < 0.3
    weighted = replace(annotations, weight=np.where(twice, 2.0, 1.0).astype(np.float32))
    frame = annotations.to_frame()
    rows = np.repeat(np.arange(len(frame)), np.where(twice, 2, 1))
    repeated = rebuild(annotations, frame.iloc[rows])
    _assert_same(method, fit_posterior(method, repeated), fit_posterior(method, weighted))


def objective_never_falls(method: Aggregator, annotations: Annotations) -> None:
    """Each step of a monotone method raises its objective."""
    if not method.traits.monotone:
        return
    objective = np.array(fit_copy(method, annotations).objective_)
    assert len(objective) > 0
    assert np.isfinite(objective).all()
    fall = objective[:-1] - objective[1:]
    assert (fall <= 1e-9 * np.maximum(np.abs(objective[:-1]), 1)).all()


def one_seed_gives_one_result(method: Aggregator, annotations: Annotations) -> None:
    """Two fits with the same seed are identical, and the global generator is untouched."""
    watched = global_state()
    first = fit_posterior(method, annotations)
    assert_array_equal(fit_posterior(method, annotations), first)
    assert_array_equal(global_state(), watched)


def a_unanimous_crowd_keeps_its_labels(method: Aggregator, annotations: Annotations) -> None:
    """When all workers agree on every task, so does the method."""
    if not method.traits.keeps_unanimity:
        return
    truth = np.random.default_rng(6).integers(0, annotations.n_classes, annotations.n_tasks)
    label = truth[annotations.task].astype(np.int32)
    unanimous = replace(annotations, label=label).nonempty()
    found = fit_copy(method, unanimous).posterior_.argmax(axis=1)
    assert_array_equal(found, truth[annotations.redundancy > 0])


def a_random_worker_moves_little(method: Aggregator, annotations: Annotations) -> None:
    """Adding one worker who labels at random changes few labels."""
    if not method.traits.resists_noise:
        return
    rng = np.random.default_rng(7)
    task = np.concatenate([annotations.task, np.arange(annotations.n_tasks)])
    noise = rng.integers(0, annotations.n_classes, annotations.n_tasks)
    noisy = Annotations.from_codes(
        task,
        np.concatenate([annotations.worker, np.full(annotations.n_tasks, annotations.n_workers)]),
        np.concatenate([annotations.label, noise]),
        tasks=annotations.tasks,
        classes=annotations.classes,
    )
    before, after = fit_posterior(method, annotations), fit_posterior(method, noisy)
    clear = np.sort(before, axis=1)[:, -1] > 0.8
    moved = before.argmax(axis=1)[clear] != after.argmax(axis=1)[clear]
    assert moved.mean() < 0.1


def unusual_crowds_give_a_result_or_one_clear_error(method: Aggregator, _: Annotations) -> None:
    """Sparse, lopsided and tiny data end in a finite result or a ``CrowdwiseError``."""
    for crowd in unusual_crowds():
        try:
            proba = fit_posterior(method, crowd)
        except CrowdwiseError:
            continue
        assert proba.shape == (crowd.n_tasks, crowd.n_classes)
        assert np.isfinite(proba).all()
        assert_allclose(proba.sum(axis=1), 1)


def gold_labels_are_kept(method: Aggregator, annotations: Annotations) -> None:
    """A task with a gold label has that label, whatever the crowd says."""
    gold = dict(zip(annotations.tasks[:2], annotations.classes[[-1, 0]], strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = clone(method).fit(annotations, gold=gold).labels_
    assert {task: labels[task] for task in gold} == gold


def unknown_workers_are_declared(method: Aggregator, annotations: Annotations) -> None:
    """A worker unknown to ``fit`` is averaged, left out or refused, as requested."""
    model = fit_copy(method, annotations)
    names = np.array([f"unknown-{i}" for i in range(annotations.n_workers)], dtype=object)
    unknown = replace(annotations[:5], workers=names)
    assert_allclose(model.predict_proba(unknown).sum(axis=1), 1)
    assert_allclose(model.predict_proba(unknown, unknown_workers="ignore").sum(axis=1), 1)
    try:
        model.predict_proba(unknown, unknown_workers="error")
    except CrowdwiseError:
        return
    raise AssertionError("an unknown worker was accepted")


def copies_are_equal(method: Aggregator, annotations: Annotations) -> None:
    """``clone`` keeps parameters; a pickled model predicts the same."""
    assert clone(method).get_params().keys() == method.get_params().keys()
    assert clone(method).set_params(**method.get_params()) is not method
    model = fit_copy(method, annotations)
    again = pickle.loads(pickle.dumps(model))
    assert_allclose(again.predict_proba(annotations), model.predict_proba(annotations))


def the_input_is_untouched(method: Aggregator, annotations: Annotations) -> None:
    """Fitting changes neither the annotations nor the method's parameters."""
    columns = {name: getattr(annotations, name).copy() for name in ("indptr", "worker", "label")}
    params = str(method.get_params())
    fit_copy(method, annotations)
    for name, column in columns.items():
        assert_array_equal(getattr(annotations, name), column)
    assert str(method.get_params()) == params


AGGREGATOR_LAWS: list[Callable[[Aggregator, Annotations], None]] = [
    probabilities_are_distributions,
    results_carry_their_names,
    predicting_the_training_tasks_gives_their_labels,
    row_order_is_irrelevant,
    tasks_without_labels_change_nothing,
    labels_of_weight_zero_teach_nothing,
    task_order_is_irrelevant,
    worker_names_are_only_names,
    class_names_are_only_names,
    duplicated_rows_equal_weights_of_two,
    objective_never_falls,
    one_seed_gives_one_result,
    a_unanimous_crowd_keeps_its_labels,
    a_random_worker_moves_little,
    unusual_crowds_give_a_result_or_one_clear_error,
    blocks_of_tasks_add_up_to_the_whole,
    every_engine_gives_the_same_bits,
    gold_labels_are_kept,
    unknown_workers_are_declared,
    copies_are_equal,
    the_input_is_untouched,
]


def _assert_same(method: Aggregator, found: Floats, expected: Floats) -> None:
    """Assert equality up to rounding; for a stochastic method, of nearly all labels."""
    if not method.traits.stochastic:
        assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
        return
    same = found.argmax(axis=1) == expected.argmax(axis=1)
    assert same[tied(expected).sum(axis=1) == 1].mean() > 0.9
