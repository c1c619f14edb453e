"""Whatever people have, as annotations."""

from datetime import date
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import coo_array

from crowdwise import Annotations
from crowdwise.errors import AnnotationError
from crowdwise.io import as_annotations, document
from crowdwise.io.accept import align_to_model

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

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda d: pd.DataFrame(d)[1:]])
    def test_wide_frames_may_have_a_column_of_tasks(self, make):
        wide = make({"task": ["t", "u", "v"], "ann": ["x", "x", "y"], "model": ["x", "y", "y"]})
        annotations = as_annotations(wide)
        assert annotations.workers.tolist() == ["ann", "model"]
        assert annotations.tasks.tolist() == ["t", "u", "v"][-len(wide) :]
        assert annotations.classes.tolist() == ["x", "y"]

    def test_an_index_beside_a_column_of_tasks_says_nothing(self):
        wide = pd.DataFrame({"task": ["t", "u"], "ann": ["x", "y"], "bob": ["x", "x"]})
        assert as_annotations(wide.rename_axis("row")).workers.tolist() == ["ann", "bob"]
        assert as_annotations(wide.set_axis([4, 2])).tasks.tolist() == ["t", "u"]

    def test_wide_frames_without_one_keep_their_names(self):
        numbers = pd.DataFrame([[1, 0.0], [1, None]], index=[7, 5], columns=[30, 4])
        annotations = as_annotations(numbers)
        assert annotations.to_dict() == {7: {30: 1, 4: 0}, 5: {30: 1}}
        assert as_annotations(pd.DataFrame([[0, 1]])).shape == (1, 2)
        assert as_annotations(pd.DataFrame({"ann": ["x"], "bob": ["y"]})).shape == (1, 2)

    def test_the_index_may_name_the_tasks(self, votes):
        frame = votes.to_frame().set_index("task")
        assert as_annotations(frame).equals(votes)
        assert as_annotations(frame.set_index("worker", append=True)).equals(votes)
        numbered = votes.to_frame().set_axis([9, 8, 9], axis=0)
        assert as_annotations(numbered).equals(votes)

    def test_columns_mean_what_they_mean_in_a_file(self, votes, tmp_path):
        frame = votes.to_frame().assign(
            weight=[1.0, 2.0, 3.0], time=[1, 2, 3], gold=["x", "x", "y"]
        )
        annotations = as_annotations(frame)
        assert annotations.weight.tolist() == [1, 2, 3]
        frame.to_csv(tmp_path / "v.csv", index=False)
        assert annotations.equals(as_annotations(tmp_path / "v.csv"))

    @pytest.mark.parametrize(
        ("columns", "role"),
        [
            ({"task": [1, 1], "label": [1, 2]}, "worker"),
            ({"task": [1, 2], "label": [1, 2]}, "worker"),
            ({"worker": [1, 2], "label": [1, 2]}, "task"),
            ({"task": [1, 1, 2], "worker": [1, 2, 1], "rate": [1, 2, 1]}, "label"),
        ],
    )
    def test_a_column_is_missing(self, columns, role):
        with pytest.raises(AnnotationError, match=f"no column for the {role}"):
            as_annotations(pd.DataFrame(columns))

    def test_wide_frames_without_workers_or_with_a_task_twice(self):
        with pytest.raises(AnnotationError, match=r"no columns left for workers(.|\n)*task, text"):
            as_annotations(pd.DataFrame({"task": [1, 2], "text": ["a", "b"]}))
        with pytest.raises(AnnotationError, match="The task name 1 is declared twice"):
            as_annotations(pd.DataFrame({"task": [1, 1], "ann": [1, 2], "bob": [1, 1]}))

    def test_the_words_themselves_come_before_any_tool(self):
        frame = pd.DataFrame({"task": [1, 1], "worker": [1, 2], "label": ["x", "y"], "note": 0})
        appen = frame.assign(_unit_id=[8, 9], _worker_id=[8, 9])
        assert as_annotations(appen).equals(as_annotations(frame))

    def test_a_frame_is_looked_at_once(self, monkeypatch):
        looks = []
        to_records = document.to_records
        monkeypatch.setattr(
            document, "to_records", lambda *own: looks.append(1) or to_records(*own)
        )
        as_annotations(pd.DataFrame({"votes": [1, 2], "ratings": [1, 1]}))
        assert len(looks) == 1

    @pytest.mark.parametrize("make", [lambda k: ("q", k), UUID, date.fromordinal])
    def test_names_of_any_kind(self, make):
        ids = [make(int=k) if make is UUID else make(k + 1) for k in (1, 2)]
        frame = pd.DataFrame({"task": pd.Series(ids), "worker": [1, 1], "label": ["x", "y"]})
        assert as_annotations(frame).tasks.tolist() == ids

    def test_anything_else(self):
        with pytest.raises(AnnotationError, match=r"A int cannot be read(.|\n)*a frame"):
            as_annotations(3)


class TestAlignToModel:
    WORKERS = np.array(["bob", "ann"], dtype=object)
    CLASSES = np.array(["y", "x", "z"], dtype=object)

    def test_numbers_follow_the_model(self, votes):
        known, unknown = align_to_model(votes, self.WORKERS, self.CLASSES, "error")
        assert not unknown
        assert known.worker.tolist() == [1, 0, 0]
        assert known.label.tolist() == [1, 0, 0]
        assert known.to_dict() == VOTES

    def test_soft_labels_follow_too(self):
        soft = Annotations.from_codes(
            [0], [0], [1], workers=["ann"], classes=["x", "y"], soft=[[0.25, 0.75]]
        )
        known, _ = align_to_model(soft, self.WORKERS, self.CLASSES, "error")
        assert known.soft.tolist() == [[0.75, 0.25, 0.0]]

    def test_unknown_workers(self, votes):
        only = np.array(["bob"], dtype=object)
        with pytest.raises(
            AnnotationError, match=r"unknown worker occurs in 1 of 3(.|\n)*worker='ann'"
        ):
            align_to_model(votes, only, self.CLASSES, "error")
        known, unknown = align_to_model(votes, only, self.CLASSES, "ignore")
        assert not unknown
        assert known.n_annotations == 2
        known, unknown = align_to_model(votes, only, self.CLASSES, "average")
        assert unknown
        assert known.worker.tolist() == [1, 0, 0]

    def test_unknown_labels(self, votes):
        with pytest.raises(
            AnnotationError, match=r"unknown label occurs in 2 of 3(.|\n)*fit again"
        ):
            align_to_model(votes, self.WORKERS, np.array(["x"], dtype=object), "average")
