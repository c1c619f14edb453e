"""cleanlab's functions: keys, columns, and plain loops."""

import numpy as np
import pandas as pd
import pytest

from crowdwise.compat import cleanlab
from crowdwise.errors import AnnotationError, ParameterError

NAN = np.nan
LABELS = np.array(
    [[0, 0, NAN, 1], [1, 1, 0, NAN], [2, NAN, 2, 2], [0, 1, NAN, NAN], [1, NAN, NAN, NAN]]
)
PROBS = np.array(
    [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7], [0.4, 0.5, 0.1], [0.6, 0.3, 0.1]]
)
FRAME = pd.DataFrame(LABELS, index=list("vwxyz"), columns=["ann", "bob", "cy", "dee"])


def test_keys_and_columns():
    info = cleanlab.get_label_quality_multiannotator(FRAME, PROBS, return_weights=True)
    assert list(info) == [
        "label_quality",
        "detailed_label_quality",
        "annotator_stats",
        "model_weight",
        "annotator_weight",
    ]
    quality = info["label_quality"]
    assert list(quality) == [
        "consensus_label",
        "consensus_quality_score",
        "annotator_agreement",
        "num_annotations",
    ]
    assert quality.index.equals(FRAME.index)
    assert quality["num_annotations"].tolist() == [3, 3, 3, 2, 1]
    assert list(info["detailed_label_quality"]) == [f"quality_annotator_{n}" for n in FRAME]
    assert (info["detailed_label_quality"].isna().to_numpy() == np.isnan(LABELS)).all()
    stats = info["annotator_stats"]
    assert list(stats) == [
        "annotator_quality",
        "agreement_with_consensus",
        "worst_class",
        "num_examples_labeled",
    ]
    assert set(stats.index) == set(FRAME)
    assert stats["annotator_quality"].is_monotonic_increasing
    assert info["annotator_weight"].shape == (4,)


def test_tables_are_left_out_when_not_asked_for():
    info = cleanlab.get_label_quality_multiannotator(
        LABELS, PROBS, return_detailed_quality=False, return_annotator_stats=False
    )
    assert list(info) == ["label_quality"]


def test_agreement_in_loops():
    info = cleanlab.get_label_quality_multiannotator(FRAME, PROBS, quality_method="agreement")
    table = info["label_quality"]
    for row, (_, found) in zip(LABELS, table.iterrows(), strict=True):
        given = row[~np.isnan(row)]
        assert found["annotator_agreement"] == np.mean(given == found["consensus_label"])
        assert found["consensus_quality_score"] == found["annotator_agreement"]
    stats = info["annotator_stats"]
    for column, name in enumerate(FRAME):
        mine, label = LABELS[:, column], table["consensus_label"].to_numpy()
        seen = ~np.isnan(mine)
        several = seen & ((~np.isnan(LABELS)).sum(axis=1) > 1)
        right = mine == label
        assert stats.loc[name, "agreement_with_consensus"] == right[seen].mean()
        assert stats.loc[name, "annotator_quality"] == right[several].mean()
        accuracy = {k: right[mine == k].mean() for k in np.unique(mine[seen])}
        assert accuracy[stats.loc[name, "worst_class"]] == min(accuracy.values())


def test_the_worst_class_of_several_is_the_one_given_most():
    labels = np.array([[0, 1, 1], [2, 1, 1], [2, 0, 0], [1, 1, 1], [0, 0, 0]], dtype=float)
    probs = np.full((5, 3), 1 / 3)
    stats = cleanlab.get_label_quality_multiannotator(
        labels, probs, quality_method="agreement", consensus_method="majority_vote"
    )["annotator_stats"]
    # The first annotator is never right with 2, and half of the time with 0.
    assert stats.loc[0, "worst_class"] == 2
    even = np.array([[0, 1, 1], [2, 1, 1], [2, 0, 0], [1, 1, 1]], dtype=float)
    stats = cleanlab.get_label_quality_multiannotator(
        even, probs[:4], quality_method="agreement", consensus_method="majority_vote"
    )["annotator_stats"]
    assert stats.loc[0, "worst_class"] == 2  # 0 and 2 are never right; 2 was given more often


def test_several_methods_have_columns_of_their_own():
    info = cleanlab.get_label_quality_multiannotator(
        FRAME, PROBS, consensus_method=["majority_vote", "best_quality"]
    )
    columns = list(info["label_quality"])
    assert "consensus_label_best_quality" in columns
    assert columns[0] == "consensus_label"


def test_without_a_classifier_the_majority_stands():
    info = cleanlab.get_label_quality_multiannotator(FRAME)
    labels = info["label_quality"]["consensus_label"]
    assert labels.tolist() == cleanlab.get_majority_vote_label(FRAME).tolist()
    assert info["label_quality"]["consensus_quality_score"].iloc[2] == 1


def test_majority_ties_go_to_the_classifier():
    assert cleanlab.get_majority_vote_label(LABELS, PROBS)[3] == 1
    assert cleanlab.get_majority_vote_label(LABELS, PROBS[:, [1, 0, 2]])[3] == 0
    assert cleanlab.get_majority_vote_label(LABELS).dtype.kind == "i"


def test_nullable_integers_are_taken():
    nullable = FRAME.astype("Int64")
    ours = cleanlab.get_majority_vote_label(nullable, PROBS)
    assert ours.tolist() == cleanlab.get_majority_vote_label(FRAME, PROBS).tolist()


def test_active_learning():
    scores, fresh = cleanlab.get_active_learning_scores(FRAME, PROBS, PROBS[:2])
    assert scores.shape == (5,)
    assert fresh.shape == (2,)
    assert scores.argmin() in (3, 4)  # a tie, and a single label against the classifier
    none, alone = cleanlab.get_active_learning_scores(pred_probs_unlabeled=PROBS)
    assert none.shape == (0,)
    assert alone == pytest.approx((PROBS.max(axis=1) + 1 / 3) / 2)
    single = np.array([[0.0], [1.0], [2.0]])
    scores, _ = cleanlab.get_active_learning_scores(single, PROBS[:3])
    assert scores == pytest.approx((0.7 * 2 + 1 / 3) / 3)


def test_long_tables_become_wide():
    long = pd.DataFrame({"task": [1, 1, 2], "annotator": ["a", "b", "a"], "label": [0, 1, 1]})
    wide = cleanlab.convert_long_to_wide_dataset(long)
    assert wide.index.name is None
    assert wide.loc[1, "b"] == 1
    assert np.isnan(wide.loc[2, "b"])


@pytest.mark.parametrize(
    ("labels", "probs", "message"),
    [
        (np.array([["a", "b"]]), None, "not numbers"),
        (np.array([0, 1]), None, "shape"),
        (np.array([[0.5, 1]]), None, "not classes"),
        (np.array([[NAN, NAN], [0, 1]]), None, "1 example without a label"),
        (np.array([[0, NAN], [0, NAN]]), None, "1 annotator without a label"),
        (LABELS, PROBS[:3], "pred_probs have shape"),
        (LABELS, PROBS[:, :2], "pred_probs have shape"),
    ],
)
def test_bad_tables(labels, probs, message):
    with pytest.raises(AnnotationError, match=message):
        cleanlab.get_label_quality_multiannotator(labels, probs)


def test_bad_settings():
    get = cleanlab.get_label_quality_multiannotator
    with pytest.raises(ParameterError, match="consensus_method='wat'"):
        get(LABELS, PROBS, consensus_method="wat")
    with pytest.raises(ParameterError, match="quality_method='wat'"):
        get(LABELS, PROBS, quality_method="wat")
    with pytest.raises(ParameterError, match="no weights"):
        get(LABELS, PROBS, quality_method="agreement", return_weights=True)
    with pytest.raises(ParameterError, match="self_confidence"):
        get(LABELS, PROBS, label_quality_score_kwargs={"method": "normalized_margin"})
    with pytest.raises(ParameterError, match="nothing to score"):
        cleanlab.get_active_learning_scores()
    with pytest.raises(AnnotationError, match="without labels"):
        cleanlab.get_active_learning_scores(None, PROBS)
