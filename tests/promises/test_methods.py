"""What docs/promises.md says of methods, one test or more for each promise."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise import aggregate, embed, learn, load
from crowdwise.errors import FormatError
from crowdwise.laws import AGGREGATOR_LAWS, EMBEDDER_LAWS, LEARNER_LAWS
from crowdwise.laws.quick import quick
from crowdwise.persist.container import Content, read_container, write_container
from crowdwise.simulate import confused_crowd, one_coin_confusion

WEIGHTLESS = "labels_of_weight_zero_teach_nothing"


@pytest.fixture
def crowd():
    """Workers from good to bad, three labels a task."""
    confusion = one_coin_confusion(np.linspace(0.9, 0.5, 10), 3)
    return confused_crowd(confusion, 80, 3, random_state=0).annotations


@pytest.mark.parametrize("method", ["MMSR", "MACE", "MinimaxEntropy", "OrdinalMinimaxEntropy"])
def test_promise_10_a_newcomer_of_weight_zero_moves_no_probability(method, crowd):
    frame = crowd.to_frame().assign(weight=1.0)
    newcomer = frame.head(1).assign(worker=99, label=2, weight=0.0)
    frame = pd.concat([frame, newcomer], ignore_index=True)
    params = {"random_state": 0} if method != "MMSR" else {}
    alone, beside = (
        getattr(aggregate, method)(**params).fit(table).probas_ for table in (crowd, frame)
    )
    assert_array_equal(beside.index, alone.index)
    assert_allclose(beside, alone, atol=1e-9)


@pytest.mark.parametrize("laws", [AGGREGATOR_LAWS, LEARNER_LAWS, EMBEDDER_LAWS])
def test_promise_10_is_a_law(laws):
    assert [law.__name__ for law in laws].count(WEIGHTLESS) == 1


def test_promise_10_a_label_of_weight_zero_may_name_an_unknown_class(crowd):
    model = aggregate.DawidSkene().fit(crowd)
    weight = np.append(np.ones(crowd.n_annotations - 1), 0.0).astype(np.float32)
    label = crowd.label.copy()
    label[-1] = 3
    strange = replace(crowd, label=label, weight=weight, classes=np.append(crowd.classes, 9))
    kept = crowd.filter(weight > 0)
    assert_allclose(model.predict_proba(strange), model.predict_proba(kept))


# -- 18: models that a file should not hold ----------------------------------------------------


def forge(path, name, change):
    """Write a model again with one array changed, and the checksum that goes with it."""
    content = read_container(path)
    arrays = {key: array.copy() for key, array in content.arrays.items()}
    arrays[name] = change(arrays[name])
    write_container(path, Content(content.text, arrays))


def spoil(value):
    def change(array):
        array.reshape(-1)[1] = value
        return array

    return change


def saved(kind, crowd, path):
    """One small model of a kind, in a file."""
    if kind == "aggregator":
        aggregate.DawidSkene().fit(crowd).save(path)
        return "confusion_"
    X = np.random.default_rng(0).normal(size=(crowd.n_tasks, 2))
    if kind == "learner":
        quick(learn.SpeeLFC()).fit(X, crowd).save(path)
        return "net_.noise.raw.weight"
    part = aggregate.DawidSkene() if kind == "part" else None
    quick(embed.Triplet(aggregator=part)).fit(X, crowd).save(path)
    return "posterior_" if part is None else "aggregator_.posterior_"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["aggregator", "learner", "embedder", "part"])
def test_promise_18_a_model_with_numbers_that_are_none_is_refused(kind, value, crowd, tmp_path):
    name = saved(kind, crowd, tmp_path / "model")
    forge(tmp_path / "model", name, spoil(value))
    with pytest.raises(FormatError, match=rf"{name} are not finite: {value}"):
        load(tmp_path / "model")


@pytest.mark.parametrize("kind", ["aggregator", "embedder", "part"])
@pytest.mark.parametrize("change", [lambda array: 0.9 * array, lambda array: 2.0 * array - 0.5])
def test_promise_18_probabilities_that_are_none_are_refused(kind, change, crowd, tmp_path):
    name = saved(kind, crowd, tmp_path / "model")
    forge(tmp_path / "model", name, change)
    with pytest.raises(FormatError, match=r"sums to 1|holds probabilities"):
        load(tmp_path / "model")


def test_promise_18_counts_that_are_none_are_refused(crowd, tmp_path):
    aggregate.IBCC().fit(crowd).save(tmp_path / "model")
    forge(tmp_path / "model", "counts_", lambda counts: counts - counts.max())
    with pytest.raises(FormatError, match="counts_ holds counts down to"):
        load(tmp_path / "model")


def test_promise_18_a_single_number_that_is_none_is_refused(crowd, tmp_path):
    model = aggregate.MinimaxEntropy().fit(crowd)
    model.regularization_ = np.nan
    model.save(tmp_path / "model")
    with pytest.raises(FormatError, match="regularization_ is nan"):
        load(tmp_path / "model")
