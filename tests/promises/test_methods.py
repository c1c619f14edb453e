"""What docs/promises.md says of methods, one test or more for each promise."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise import aggregate
from crowdwise.laws import AGGREGATOR_LAWS, EMBEDDER_LAWS, LEARNER_LAWS
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
