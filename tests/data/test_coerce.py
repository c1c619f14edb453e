"""Whatever people have, as annotations and as gold."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import coo_array

from crowdwise import Annotations
from crowdwise.data import as_annotations, as_gold
from crowdwise.data.coerce import aligned
from crowdwise.errors import AnnotationError

VOTES = {"q1": {"ann": "x", "bob": "y"}, "q2": {"bob": "y"}}


@pytest.fixture
def votes():
    return Annotations.from_dict(VOTES)


class TestAsAnnotations:
    def test_annotations_stay_themselves(self, votes):
        assert as_annotations(votes) is votes

    def test_dicts_frames_and_files(self, votes, tmp_path):
        assert as_annotations(VOTES).equals(votes)
        frame = votes.to_frame().rename(columns={"task": "item", "label": "answer"})
        assert as_annotations(frame).equals(votes)
        assert as_annotations(pl.from_pandas(frame)).equals(votes)
        frame.to_csv(tmp_path / "v.csv", index=False)
        assert as_annotations(tmp_path / "v.csv").equals(votes)
        assert as_annotations(str(tmp_path / "v.csv")).equals(votes)

    def test_tables_without_the_words_are_wide(self, votes):
        assert as_annotations(votes.to_matrix()).equals(votes)
        assert as_annotations([[0, 1], [1, -1]]).n_annotations == 3
        assert as_annotations(coo_array([[0, 1], [1, 1]])).n_annotations == 3

    def test_anything_else(self):
        with pytest.raises(AnnotationError, match=r"A int cannot be read(.|\n)*a frame"):
            as_annotations(3)


class TestAsGold:
    @pytest.mark.parametrize(
        "gold",
        [
            {"q2": "y", "q9": "x"},
            pd.Series({"q2": "y", "q1": None}),
            pd.DataFrame({"question": ["q2"], "truth": ["y"]}),
            pl.DataFrame({"task": ["q2"], "label": ["y"]}),
            [None, "y"],
            np.array([None, "y"], dtype=object),
        ],
        ids=["dict", "series", "pandas", "polars", "list", "array"],
    )
    def test_takes_any_shape(self, gold, votes):
        assert as_gold(gold, votes).tolist() == [-1, 1]

    def test_a_minus_one_in_an_array_is_unknown(self):
        numbers = Annotations.from_matrix([[0, 1], [1, 1], [0, 0]])
        assert as_gold(np.array([1, -1, 0]), numbers).tolist() == [1, -1, 0]

    def test_other_tasks_only(self, votes):
        with pytest.raises(AnnotationError, match=r"None of the 1 gold labels(.|\n)*same ids"):
            as_gold({"Q1": "x"}, votes)

    def test_unknown_labels(self, votes):
        with pytest.raises(AnnotationError, match=r"unknown label(.|\n)*'z'(.|\n)*classes="):
            as_gold({"q1": "z"}, votes)

    @pytest.mark.parametrize(
        ("columns", "role"), [(["task", "x"], "label"), (["x", "label"], "task")]
    )
    def test_a_column_is_missing(self, columns, role, votes):
        with pytest.raises(AnnotationError, match=f"no column for the {role}"):
            as_gold(pd.DataFrame([["q1", "x"]], columns=columns), votes)

    def test_wrong_length(self, votes):
        with pytest.raises(AnnotationError, match=r"shape \(3,\)(.|\n)*one per task \(2\)"):
            as_gold(["x", "y", "x"], votes)

    def test_no_gold_at_all(self, votes):
        assert as_gold({}, votes).tolist() == [-1, -1]


class TestAligned:
    WORKERS = np.array(["bob", "ann"], dtype=object)
    CLASSES = np.array(["y", "x", "z"], dtype=object)

    def test_numbers_follow_the_model(self, votes):
        known, strangers = aligned(votes, self.WORKERS, self.CLASSES, "error")
        assert not strangers
        assert known.worker.tolist() == [1, 0, 0]
        assert known.label.tolist() == [1, 0, 0]
        assert known.to_dict() == VOTES

    def test_soft_labels_follow_too(self):
        soft = Annotations.from_codes(
            [0], [0], [1], workers=["ann"], classes=["x", "y"], soft=[[0.25, 0.75]]
        )
        known, _ = aligned(soft, self.WORKERS, self.CLASSES, "error")
        assert known.soft.tolist() == [[0.75, 0.25, 0.0]]

    def test_strangers(self, votes):
        only = np.array(["bob"], dtype=object)
        with pytest.raises(AnnotationError, match=r"1 of 3 .* unknown worker(.|\n)*worker='ann'"):
            aligned(votes, only, self.CLASSES, "error")
        known, strangers = aligned(votes, only, self.CLASSES, "ignore")
        assert not strangers
        assert known.n_annotations == 2
        known, strangers = aligned(votes, only, self.CLASSES, "average")
        assert strangers
        assert known.worker.tolist() == [1, 0, 0]

    def test_unknown_labels(self, votes):
        with pytest.raises(AnnotationError, match=r"2 of 3 .* unknown label(.|\n)*fit again"):
            aligned(votes, self.WORKERS, np.array(["x"], dtype=object), "average")
