"""Laws of learning from features and labels.

Training is shortened (see :mod:`crowdwise.laws.quick`), since no law is about how good a learner
is.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from crowdwise.annotations import Annotations
from crowdwise.errors import CrowdwiseError
from crowdwise.laws.checks import (
    add_weightless,
    assert_distribution,
    assert_refused,
    assert_same,
    fit_quick,
    get_results,
    global_state,
    is_third_party,
    rebuild,
    save_and_load,
    unusual_crowds,
)
from crowdwise.laws.multi_label import OneLabelName
from crowdwise.laws.quick import quick
from crowdwise.typing import Floats

if TYPE_CHECKING:
    from crowdwise.base.learner import Learner


def probabilities_are_distributions(learner: Learner, X: Floats, votes: Annotations) -> None:
    """Rows of ``predict_proba`` and ``posterior_`` are finite, non-negative and sum to one."""
    model = fit_quick(learner, X, votes)
    for proba in (model.predict_proba(X), model.posterior_):
        assert proba.shape == (votes.n_tasks, votes.n_classes)
        assert_distribution(proba)
    assert set(model.predict(X)) <= set(votes.classes)


def each_row_is_predicted_alone(learner: Learner, X: Floats, votes: Annotations) -> None:
    """Rows of X do not affect one another, and there may be any number of them."""
    model = fit_quick(learner, X, votes)
    everything = get_results(model, X)[0]
    assert_allclose(get_results(model, X[:3])[0], everything[:3], atol=1e-6)
    assert_allclose(get_results(model, X[[5]])[0], everything[[5]], atol=1e-6)


def predicting_no_rows_gives_no_rows(learner: Learner, X: Floats, votes: Annotations) -> None:
    """An empty X is predicted like any other, so data may come in parts of any size."""
    model = fit_quick(learner, X, votes)
    n_workers, n_classes = votes.n_workers, votes.n_classes
    assert model.predict(X[:0]).shape == (0,)
    assert model.predict_proba(X[:0]).shape == (0, n_classes)
    assert model.predict_worker_proba(X[:0]).shape == (0, n_workers, n_classes)
    assert model.predict_worker_accuracy(X[:0]).shape == (0, n_workers)


def row_order_is_irrelevant(learner: Learner, X: Floats, votes: Annotations) -> None:
    """Shuffling the table changes nothing."""
    frame = votes.to_frame()
    before, after = (
        rebuild(votes, table) for table in (frame, frame.sample(frac=1, random_state=0))
    )
    assert_same(learner, "row", fit_quick(learner, X, after), fit_quick(learner, X, before), X)


def task_order_is_irrelevant(learner: Learner, X: Floats, votes: Annotations) -> None:
    """Renaming and reordering the tasks reorders the result and does nothing else."""
    order = np.random.default_rng(1).permutation(votes.n_tasks)
    moved = replace(votes[order], tasks=np.array([f"task-{i}" for i in order], dtype=object))
    before, after = fit_quick(learner, X, votes), fit_quick(learner, X[order], moved)
    after.posterior_ = after.posterior_[np.argsort(order)]
    assert_same(learner, "task", after, before, X)


def worker_names_are_only_names(learner: Learner, X: Floats, votes: Annotations) -> None:
    """Renaming and reordering the workers reorders what is learned about them."""
    order = np.random.default_rng(2).permutation(votes.n_workers)
    place = np.argsort(order)
    names = np.array([f"worker-{i}" for i in order], dtype=object)
    moved = replace(votes, workers=names, worker=place[votes.worker].astype(np.int32))
    before, after = fit_quick(learner, X, votes), fit_quick(learner, X, moved)
    assert_array_equal(after.worker_accuracy_.index, names)
    assert_same(learner, "worker", after, before, X)


def class_names_are_only_names(learner: Learner, X: Floats, votes: Annotations) -> None:
    """Renaming the classes renames the predictions and does nothing else."""
    names = np.array([f"class-{name}" for name in votes.classes], dtype=object)
    before, after = (
        fit_quick(learner, X, votes),
        fit_quick(learner, X, replace(votes, classes=names)),
    )
    assert_array_equal(after.predict_proba(X), before.predict_proba(X))
    assert set(after.predict(X)) <= set(names)


def a_frame_by_task_may_be_in_any_order(learner: Learner, X: Floats, votes: Annotations) -> None:
    """The rows of a frame indexed by task are matched to their tasks."""
    named = replace(votes, tasks=np.array([f"task-{i}" for i in votes.tasks], dtype=object))
    frame = pd.DataFrame(X, index=named.tasks).sample(frac=1, random_state=3)
    before, after = fit_quick(learner, X, named), fit_quick(learner, frame, named)
    assert_allclose(get_results(after, X)[0], get_results(before, X)[0], atol=1e-6)


def rows_on_disk_are_features(learner: Learner, X: Floats, votes: Annotations) -> None:
    """Features on disk, in any order by name, teach the same as an array."""
    from crowdwise.nets.mapped import MappedRows

    named = replace(votes, tasks=np.array([f"task-{i}" for i in votes.tasks], dtype=object))
    order = np.random.default_rng(4).permutation(len(X))
    rows = MappedRows(X[order].astype(np.float32), named.tasks[order])
    before, after = fit_quick(learner, X, named), fit_quick(learner, rows, named)
    for one, other in zip(
        get_results(before, X), get_results(after, rows.in_order(named.tasks)), strict=True
    ):
        assert_allclose(other, one, atol=1e-4)


def one_seed_gives_one_result(learner: Learner, X: Floats, votes: Annotations) -> None:
    """Fits with the same seed are identical; global generators have and see no effect."""
    import torch

    threads = torch.get_num_threads()
    found = []
    with torch.random.fork_rng(devices=[]):
        for seed in (11, 12):
            torch.manual_seed(seed)
            before = torch.get_rng_state(), global_state()
            found.append(fit_quick(learner, X, votes))
            assert torch.equal(torch.get_rng_state(), before[0])
            assert_array_equal(global_state(), before[1])
    first, again = (get_results(model, X) for model in found)
    for one, other in zip(first, again, strict=True):
        assert_array_equal(other, one)
    assert torch.get_num_threads() == threads


def tasks_without_labels_are_allowed(learner: Learner, X: Floats, votes: Annotations) -> None:
    """A task that nobody labeled gets a distribution too, and harms no other."""
    unlabeled = votes.filter((votes.task > 2) & (votes.task != 7))
    model = fit_quick(learner, X, unlabeled)
    assert model.posterior_.shape == (votes.n_tasks, votes.n_classes)
    assert_distribution(model.posterior_)
    assert_distribution(model.predict_proba(X))


def unusual_crowds_give_a_result_or_one_clear_error(
    learner: Learner, _X: Floats, _votes: Annotations
) -> None:
    """Sparse, lopsided and tiny data end in a finite result or a ``CrowdwiseError``."""
    rng = np.random.default_rng(4)
    for crowd in unusual_crowds():
        try:
            model = fit_quick(learner, table := rng.normal(size=(crowd.n_tasks, 2)), crowd)
            found = [model.posterior_, model.predict_proba(table)]
            found += [model.confusion_, model.predict_worker_proba(table)]
        except CrowdwiseError:
            continue
        assert found[0].shape == found[1].shape == (crowd.n_tasks, crowd.n_classes)
        for proba in found:
            assert_distribution(proba)


def bad_features_are_refused(learner: Learner, X: Floats, votes: Annotations) -> None:
    """Missing and infinite values, and other numbers of rows, are a ``CrowdwiseError``."""
    for value in (np.nan, np.inf):
        broken = X.copy()
        broken[1, 0] = value
        assert_refused(learner, broken, votes, f"X with {value}")
    for rows in (X[:-1], np.concatenate([X, X[:1]]), X[:0]):
        assert_refused(learner, rows, votes, f"X with {len(rows)} rows")


def no_annotations_are_refused(learner: Learner, X: Floats, votes: Annotations) -> None:
    """There is nothing to learn from tasks alone."""
    nothing = votes.filter(np.zeros(votes.n_annotations, dtype=bool))
    assert_refused(learner, X, nothing, "a table without annotations")


def duplicated_rows_equal_weights_of_two(learner: Learner, X: Floats, votes: Annotations) -> None:
    """Repeating some rows is the same as giving them a weight of two."""
    twice = np.random.default_rng(5).random(votes.n_annotations) < 0.3
    weighted = replace(votes, weight=np.where(twice, 2.0, 1.0).astype(np.float32))
    rows = np.repeat(np.arange(votes.n_annotations), np.where(twice, 2, 1))
    repeated = rebuild(votes, votes.to_frame().iloc[rows])
    assert_same(learner, "row", fit_quick(learner, X, repeated), fit_quick(learner, X, weighted), X)


def labels_of_weight_zero_teach_nothing(learner: Learner, X: Floats, votes: Annotations) -> None:
    """Rows of weight 0 change nothing, even if a worker or task has no others."""
    alone, n = fit_quick(learner, X, votes), votes.n_workers
    known = add_weightless(votes, np.array([0, 1, n - 1]))
    assert_same(learner, "none", fit_quick(learner, X, known), alone, X)
    newcomer = add_weightless(votes, np.array([n, n]), ["newcomer"])
    assert_same(learner, "none", fit_quick(learner, X, newcomer), alone, X)
    first = votes.task == 0
    weightless = replace(votes, weight=np.where(first, 0.0, 1.0).astype(np.float32))
    without = fit_quick(learner, X, votes.filter(~first))
    assert_same(learner, "none", fit_quick(learner, X, weightless), without, X)


def certain_soft_labels_are_labels(learner: Learner, X: Floats, votes: Annotations) -> None:
    """A soft label with all its mass on one class is that class."""
    soft = replace(votes, soft=np.eye(votes.n_classes)[votes.label])
    assert_same(learner, "none", fit_quick(learner, X, soft), fit_quick(learner, X, votes), X)


def restarts_are_trained_together(learner: Learner, X: Floats, votes: Annotations) -> None:
    """Several restarts run as one batch, and one of them is kept."""
    copy = quick(learner)
    if "training" not in copy.get_params(deep=False):
        return
    copy.set_params(training=clone(copy.training).set_params(n_restarts=2))
    model = fit_quick(copy, X, votes)
    assert np.shape(model.history_.loss)[1] == np.shape(model.history_.held_out)[1] == 2
    assert_distribution(model.predict_proba(X))
    assert_distribution(model.posterior_)


def gold_labels_are_kept(learner: Learner, X: Floats, votes: Annotations) -> None:
    """A task with a gold label has that label in ``posterior_``, whatever the crowd says."""
    gold = dict(zip(votes.tasks[:2], votes.classes[[-1, 0]], strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = quick(learner).fit(X, votes, gold=gold).posterior_
    expected = np.zeros((2, votes.n_classes))
    expected[0, -1] = expected[1, 0] = 1.0
    assert_allclose(posterior[:2], expected, atol=1e-6)
    assert_distribution(posterior)


def workers_are_predicted(learner: Learner, X: Floats, votes: Annotations) -> None:
    """Workers' labels are predicted as distributions, their accuracy as probabilities."""
    model = fit_quick(learner, X, votes)
    asked = [votes.workers[1], "never seen", votes.workers[0]]
    for workers, size in ((None, votes.n_workers), (asked, 3)):
        proba = model.predict_worker_proba(X, workers)
        assert proba.shape == (votes.n_tasks, size, votes.n_classes)
        assert_distribution(proba)
        right = model.predict_worker_accuracy(X, workers)
        assert right.shape == (votes.n_tasks, size)
        assert (right > -1e-6).all()
        assert (right < 1 + 1e-6).all()
    some, everyone = (model.predict_worker_proba(X, names) for names in (asked[:1], None))
    assert_allclose(some[:, 0], everyone[:, 1], atol=1e-6)
    assert_distribution(model.confusion_)
    assert_array_equal(model.worker_accuracy_.index, votes.workers)


def scores_are_finite(learner: Learner, X: Floats, votes: Annotations) -> None:
    """Annotations have a finite log-likelihood, even of unknown workers; truths an accuracy."""
    model = fit_quick(learner, X, votes)
    assert -50 < model.score(X, votes) <= 0
    unknown = np.array([f"unknown-{i}" for i in range(votes.n_workers)], dtype=object)
    assert -50 < model.score(X, replace(votes, workers=unknown)) <= 0
    assert 0 <= model.score(X, votes.classes[np.arange(votes.n_tasks) % votes.n_classes]) <= 1


def copies_are_equal(learner: Learner, X: Floats, votes: Annotations) -> None:
    """``clone`` and ``set_params`` keep parameters and drop what was learned."""
    model = fit_quick(learner, X, votes)
    again = clone(model)
    assert str(again.get_params()) == str(model.get_params())
    assert not any(name.endswith("_") for name in vars(again))
    assert again.set_params(**model.get_params(deep=False)) is again
    assert_array_equal(get_results(fit_quick(again, X, votes), X)[0], get_results(model, X)[0])


def a_saved_model_predicts_the_same(learner: Learner, X: Floats, votes: Annotations) -> None:
    """A model loaded from a file predicts like the saved one."""
    view = isinstance(learner, OneLabelName)
    if is_third_party(learner.learner if view else learner):
        return
    model = fit_quick(learner, X, votes)
    again = model.save_and_load() if view else save_and_load(model)
    # Arrays may have another memory layout, which changes the last digit of sums.
    for one, other in (
        (again.predict_proba(X), model.predict_proba(X)),
        (again.predict_worker_proba(X), model.predict_worker_proba(X)),
        (again.posterior_, model.posterior_),
        (again.score(X, votes), model.score(X, votes)),
    ):
        assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def the_input_is_untouched(learner: Learner, X: Floats, votes: Annotations) -> None:
    """Fitting changes neither the data nor the learner's parameters."""
    columns = {name: getattr(votes, name).copy() for name in ("indptr", "worker", "label")}
    table, params = X.copy(), str(learner.get_params())
    fit_quick(learner, X, votes)
    assert_array_equal(X, table)
    for name, column in columns.items():
        assert_array_equal(getattr(votes, name), column)
    assert str(learner.get_params()) == params


LEARNER_LAWS: list[Callable[[Learner, Floats, Annotations], None]] = [
    probabilities_are_distributions,
    each_row_is_predicted_alone,
    predicting_no_rows_gives_no_rows,
    row_order_is_irrelevant,
    task_order_is_irrelevant,
    worker_names_are_only_names,
    class_names_are_only_names,
    a_frame_by_task_may_be_in_any_order,
    rows_on_disk_are_features,
    one_seed_gives_one_result,
    tasks_without_labels_are_allowed,
    unusual_crowds_give_a_result_or_one_clear_error,
    bad_features_are_refused,
    no_annotations_are_refused,
    duplicated_rows_equal_weights_of_two,
    labels_of_weight_zero_teach_nothing,
    certain_soft_labels_are_labels,
    restarts_are_trained_together,
    gold_labels_are_kept,
    workers_are_predicted,
    scores_are_finite,
    copies_are_equal,
    a_saved_model_predicts_the_same,
    the_input_is_untouched,
]
