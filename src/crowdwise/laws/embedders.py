"""Laws of learning representations from features and labels.

Training is shortened (see :mod:`crowdwise.laws.quick`), since no law is about how good an
embedder is. What learners promise for their predictions, embedders promise for their vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from crowdwise.annotations import Annotations
from crowdwise.errors import CrowdwiseError
from crowdwise.laws import learners
from crowdwise.laws.checks import (
    assert_distribution,
    fit_quick,
    get_results,
    is_third_party,
    save_and_load,
    unusual_crowds,
)
from crowdwise.laws.quick import Model, quick
from crowdwise.typing import Floats


def vectors_are_finite(embedder: Model, X: Floats, votes: Annotations) -> None:
    """Every row gets a vector of ``size_`` finite numbers, and they are not all the same."""
    model = fit_quick(embedder, X, votes)
    vectors = model.transform(X)
    assert vectors.shape == (len(X), model.size_)
    assert len(model.get_feature_names_out()) == model.size_
    assert np.isfinite(vectors).all()
    assert vectors.std(axis=0).max() > 0
    assert model.transform(X[:0]).shape == (0, model.size_)


def fitting_and_transforming_may_be_one_step(
    embedder: Model, X: Floats, votes: Annotations
) -> None:
    """``fit_transform`` is ``fit`` followed by ``transform``."""
    both = quick(embedder).fit_transform(X, votes)
    assert_array_equal(both, fit_quick(embedder, X, votes).transform(X))


def seeds_matter(embedder: Model, X: Floats, votes: Annotations) -> None:
    """Another seed gives another start."""
    first = quick(embedder).fit_transform(X, votes)
    second = quick(embedder).set_params(random_state=1).fit_transform(X, votes)
    assert np.abs(first - second).max() > 1e-6


def worker_names_are_only_names(embedder: Model, X: Floats, votes: Annotations) -> None:
    """Renaming the workers changes nothing."""
    names = np.array([f"worker-{name}" for name in votes.workers], dtype=object)
    before, after = (
        fit_quick(embedder, X, votes),
        fit_quick(embedder, X, replace(votes, workers=names)),
    )
    assert_array_equal(after.transform(X), before.transform(X))


def class_names_are_only_names(embedder: Model, X: Floats, votes: Annotations) -> None:
    """Renaming the classes changes nothing but ``classes_``."""
    names = np.array([f"class-{name}" for name in votes.classes], dtype=object)
    before, after = (
        fit_quick(embedder, X, votes),
        fit_quick(embedder, X, replace(votes, classes=names)),
    )
    assert_array_equal(after.transform(X), before.transform(X))
    assert_array_equal(after.classes_, names)


def confidences_are_shares(embedder: Model, X: Floats, votes: Annotations) -> None:
    """Confidences lie between 0 and 1 and posteriors are distributions."""
    model = fit_quick(embedder, X, votes)
    assert model.confidence_.shape == (votes.n_tasks,)
    assert ((model.confidence_ >= 0) & (model.confidence_ <= 1)).all()
    assert_distribution(model.posterior_)


def tasks_without_labels_are_allowed(embedder: Model, X: Floats, votes: Annotations) -> None:
    """A task that nobody labeled gets a vector too, and no confidence."""
    unlabeled = votes.filter((votes.task > 2) & (votes.task != 7))
    for every in (None, 2):
        model = fit_quick(embedder.set_params(refresh_every=every), X, unlabeled)
        assert np.isfinite(model.transform(X)).all()
        assert every or not model.confidence_[[0, 1, 2, 7]].any()
        assert_distribution(model.posterior_)
    embedder.set_params(refresh_every=None)


def unusual_crowds_give_a_result_or_one_clear_error(
    embedder: Model, _X: Floats, _votes: Annotations
) -> None:
    """Sparse, lopsided and tiny data end in finite vectors or a ``CrowdwiseError``."""
    rng = np.random.default_rng(4)
    for crowd in unusual_crowds():
        table = rng.normal(size=(crowd.n_tasks, 2))
        try:
            vectors = fit_quick(embedder, table, crowd).transform(table)
        except CrowdwiseError:
            continue
        assert len(vectors) == crowd.n_tasks
        assert np.isfinite(vectors).all()


def a_saved_model_transforms_the_same(embedder: Model, X: Floats, votes: Annotations) -> None:
    """A model loaded from a file transforms like the saved one."""
    if is_third_party(embedder):
        return
    model = fit_quick(embedder, X, votes)
    again = save_and_load(model)
    for one, other in zip(get_results(again, X), get_results(model, X), strict=True):
        assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def a_pipeline_takes_annotations(embedder: Model, X: Floats, votes: Annotations) -> None:
    """With an adapter after it, crowd labels go in and labels come out."""
    from crowdwise.embed import CrowdLabels

    model = make_pipeline(quick(embedder), CrowdLabels(LogisticRegression()))
    model.fit(X, votes)
    assert_distribution(model.predict_proba(X))
    assert set(model.predict(X)) <= set(votes.classes)
    assert model.score(X, votes) < 0


EMBEDDER_LAWS: list[Callable[[Model, Floats, Annotations], None]] = [
    vectors_are_finite,
    fitting_and_transforming_may_be_one_step,
    learners.each_row_is_predicted_alone,
    learners.row_order_is_irrelevant,
    worker_names_are_only_names,
    class_names_are_only_names,
    learners.a_frame_by_task_may_be_in_any_order,
    learners.one_seed_gives_one_result,
    seeds_matter,
    confidences_are_shares,
    tasks_without_labels_are_allowed,
    unusual_crowds_give_a_result_or_one_clear_error,
    learners.bad_features_are_refused,
    learners.no_annotations_are_refused,
    learners.duplicated_rows_equal_weights_of_two,
    learners.labels_of_weight_zero_teach_nothing,
    learners.certain_soft_labels_are_labels,
    learners.gold_labels_are_kept,
    learners.copies_are_equal,
    a_saved_model_transforms_the_same,
    a_pipeline_takes_annotations,
    learners.the_input_is_untouched,
]
