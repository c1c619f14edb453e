"""Scores, declined tasks and facts about workers."""

import numpy as np
import pandas as pd
import pytest

from crowdwise.annotations import Annotations
from crowdwise.annotations.judges import parse
from crowdwise.errors import CrowdwiseError


def votes(**options):
    frame = pd.DataFrame(
        {
            "task": ["a", "a", "a", "b", "b", "c"],
            "worker": ["gpt", "llama", "ann", "gpt", "llama", "ann"],
            "label": ["2", "9", "unparsable", "4", "5", "7"],
            "time": [1, 2, 3, 4, 5, 6],
        }
    )
    return Annotations.from_frame(frame, time="time", **options)


def test_numeric_labels_are_scores_and_the_rest_declined():
    scored = votes().with_scores()
    assert scored.score.tolist() == [2, 9, 4, 5, 7]
    assert scored.label.tolist() == [0, 1, 0, 0, 1]  # halfway from 2 to 9
    assert scored.time.tolist() == [1, 2, 4, 5, 6]
    assert scored.indptr.tolist() == [0, 2, 4, 5]
    assert scored.declined.tolist() == [[0, scored.workers.tolist().index("ann")]]
    assert votes().with_scores(low=0, high=9).label.tolist() == [0, 1, 0, 1, 1]
    assert votes().with_scores(8, classes=("ok", "bad")).classes.tolist() == ["ok", "bad"]


def test_scores_outside_of_their_range_are_refused():
    with pytest.raises(CrowdwiseError, match="1 score outside of 0 to 8"):
        votes().with_scores(low=0, high=8)
    words = Annotations.from_matrix([["yes", "no"]])
    with pytest.raises(CrowdwiseError, match="No label is a number"):
        words.with_scores()


def test_declined_tasks_move_with_their_tasks():
    some = votes().decline(["unparsable"])
    assert some.classes.tolist() == ["2", "4", "5", "7", "9"]
    assert some.n_annotations == 5
    assert some[[1, 0]].declined.tolist() == [[1, 0]]
    assert some[[2]].declined.tolist() == []
    with pytest.raises(CrowdwiseError, match="no label 'skip'"):
        votes().decline(["skip"])


def test_scores_are_kept_by_every_way_of_choosing_rows():
    scored = votes().with_scores()
    assert scored[[1]].score.tolist() == [4, 5]
    assert scored.select_workers(["gpt"]).score.tolist() == [2, 4]
    assert scored.to_frame()["score"].tolist() == [2, 9, 4, 5, 7]
    again = Annotations.from_frame(scored.to_frame(), score="score", time="time")
    assert again.score.tolist() == scored.score.tolist()
    assert not again.equals(votes().with_scores(low=0).select_workers(["gpt"]))


def test_a_score_that_is_no_number_is_refused():
    frame = pd.DataFrame({"task": [1], "worker": [1], "label": [0], "score": ["high"]})
    with pytest.raises(CrowdwiseError, match="1 score that cannot be used"):
        Annotations.from_frame(frame, score="score")


def test_facts_about_workers_are_found_by_name():
    about = pd.DataFrame({"worker": ["llama", "gpt"], "family": ["Meta", "OpenAI"]})
    known = votes().with_workers(about)
    assert known.about_workers["family"].reindex(["gpt", "llama"]).tolist() == ["OpenAI", "Meta"]
    assert known.about_workers.index.tolist() == known.workers.tolist()
    assert known.about_workers["family"].isna().tolist() == [w == "ann" for w in known.workers]
    numbers = Annotations.from_matrix(np.array([[0, 1], [1, 1]]))
    by_text = numbers.with_workers({"worker": ["1", "0"], "kind": ["model", "person"]})
    assert by_text.about_workers["kind"].tolist() == ["person", "model"]
    with pytest.raises(CrowdwiseError, match="described twice"):
        votes().with_workers(pd.concat([about, about]))
    with pytest.raises(CrowdwiseError, match="None of the workers"):
        votes().with_workers({"worker": ["x"], "family": ["y"]})


@pytest.mark.parametrize("score", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_refused(score):
    with pytest.raises(CrowdwiseError, match="1 of 2 values of score cannot be used"):
        Annotations.from_codes([0, 1], [0, 0], [0, 1], score=[1.0, score])
    assert Annotations.from_codes([0, 1], [0, 0], [0, 1], score=[-1.0, 0.5]).score.min() == -1


def test_text_that_python_alone_takes_for_a_number_is_none():
    assert np.isnan([parse(name) for name in ("5_20", "1_0", "x", "nan", "inf")]).all()
    assert [parse(name) for name in ("1e2", " 5 ", "-.5", 7)] == [100, 5, -0.5, 7]
