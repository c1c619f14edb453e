"""The table of annotations: how it is built, cut, and left alone."""

import dataclasses
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GroupShuffleSplit, KFold
from sklearn.utils import _safe_indexing, indexable

from crowdwise import Annotations
from crowdwise.errors import AnnotationError, ParameterError

# task, worker, label: lopsided, out of order, one repeat (task 2, worker 0), task 3 empty
ROWS = [(2, 0, 1), (0, 1, 0), (2, 2, 2), (0, 0, 1), (1, 1, 1), (2, 0, 2)]
TASKS, WORKERS, CLASSES = ["q0", "q1", "q2", "q3"], ["ann", "bob", "cy"], ["x", "y", "z"]


@pytest.fixture
def votes():
    task, worker, label = np.array(ROWS).T
    return Annotations.from_codes(
        task,
        worker,
        label,
        tasks=TASKS,
        workers=WORKERS,
        classes=CLASSES,
        weight=[1, 2, 3, 4, 5, 6],
        time=[9, 8, 7, 6, 5, 4],
        gold=[0, -1, 2, -1],
    )


def rows(annotations):
    parts = annotations.task, annotations.worker, annotations.label
    return list(zip(*(part.tolist() for part in parts), strict=True))


class TestFromCodes:
    def test_groups_rows_by_task_and_keeps_their_order(self, votes):
        assert rows(votes) == sorted(ROWS, key=lambda row: row[0])
        assert votes.indptr.tolist() == [0, 2, 3, 6, 6]
        assert votes.weight.tolist() == [2, 4, 5, 1, 3, 6]
        assert votes.time.tolist() == [8, 6, 5, 9, 7, 4]

    def test_counts(self, votes):
        assert (votes.n_tasks, votes.n_workers, votes.n_classes) == (4, 3, 3)
        assert votes.n_annotations == 6
        assert votes.shape == (4, 3)
        assert len(votes) == 4
        assert votes.redundancy.tolist() == [2, 1, 3, 0]
        assert votes.n_repeats == 1
        assert repr(votes) == "<Annotations: 6 annotations of 4 tasks by 3 workers, 3 classes>"

    def test_names_default_to_numbers(self):
        annotations = Annotations.from_codes([1], [2], [3])
        assert annotations.tasks.tolist() == [0, 1]
        assert annotations.workers.tolist() == [0, 1, 2]
        assert annotations.classes.tolist() == [0, 1, 2, 3]

    def test_a_label_of_minus_one_is_no_annotation(self):
        annotations = Annotations.from_codes([0, 1], [0, 1], [-1, 1], weight=[5, 6])
        assert rows(annotations) == [(1, 1, 1)]
        assert annotations.weight.tolist() == [6]
        assert annotations.n_tasks == 2

    def test_nothing_at_all(self):
        annotations = Annotations.from_codes([], [], [])
        assert annotations.shape == (0, 0)
        assert annotations.votes().shape == (0, 0)
        assert annotations.n_repeats == 0

    def test_either_way_of_sorting_gives_the_same(self, votes, monkeypatch):
        monkeypatch.setattr("crowdwise.compiled.native", None)
        task, worker, label = np.array(ROWS).T
        assert rows(Annotations.from_codes(task, worker, label)) == rows(votes)

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            (([0.5], [0], [0]), r"task column holds float64(.|\n)*integers that count from zero"),
            (([[0]], [0], [0]), "in 2 dimension"),
            (([0], ["a"], [0]), r"worker column holds(.|\n)*from_frame"),
            (([0, 1], [0], [0]), r"different lengths(.|\n)*task 2, worker 1, label 1"),
            (([-1], [0], [0]), "task column has negative numbers"),
            (([0], [-2], [0]), "worker column has negative numbers"),
        ],
    )
    def test_bad_columns(self, columns, message):
        with pytest.raises(AnnotationError, match=message):
            Annotations.from_codes(*columns)

    @pytest.mark.parametrize(
        ("names", "message"),
        [
            ({"tasks": ["a"]}, "task column goes up to 1, but only 1 have names"),
            ({"workers": ["a", "a"]}, "worker name 'a' is declared twice"),
            ({"classes": ["a", None]}, r"name of 1 of 2 labels is missing(.|\n)*number 1"),
            ({"weight": [1, -1]}, r"1 of 2 values of weight cannot be used(.|\n)*-1"),
            ({"weight": [1, np.nan]}, "finite numbers"),
            ({"soft": [[1, 0], [0, 0]]}, "a distribution over 2 classes"),
            ({"soft": [[1, 0, 0], [0, 1, 0]]}, r"shape \(2, 3\)"),
            ({"soft": [0.5, 0.5]}, r"shape \(2,\)"),
            ({"gold": ["a", "b"]}, "gold column holds"),
            ({"gold": [0]}, r"does not fit 2 tasks(.|\n)*found: +1 values"),
            ({"gold": [1, 7]}, r"does not fit 2 tasks and 2 classes(.|\n)*task 1: 7"),
            ({"gold": [-5, 0]}, r"task 0: -5(.|\n)*-1 where it is unknown"),
            ({"weight": [1, -1]}, r"row 2: -1.0(.|\n)*fix:"),
            ({"classes": "ab"}, "A str is not a list of names"),
        ],
    )
    def test_bad_names_and_values(self, names, message):
        with pytest.raises(AnnotationError, match=message):
            Annotations.from_codes([0, 1], [0, 1], [0, 1], **names)

    def test_arrays_of_the_caller_stay_theirs(self):
        given = {name: np.array([0, 1], dtype=np.int32) for name in ("task", "worker", "label")}
        given |= {name: np.array([5, 6]) for name in ("tasks", "workers", "classes", "time")}
        given["label"] = given["label"].astype(np.int8)
        annotations = Annotations.from_codes(**given, weight=(weight := np.ones(2, np.float32)))
        before = annotations.to_frame()
        for column in (*given.values(), weight):
            column[:] = 0
        assert annotations.to_frame().equals(before)
        with pytest.raises(ValueError, match="read-only"):
            annotations.worker[0] = 1

    def test_soft_labels_are_scaled(self):
        annotations = Annotations.from_codes([0], [0], [1], soft=[[1, 3]])
        assert_allclose(annotations.soft, [[0.25, 0.75]])

    def test_labels_take_the_room_they_need(self):
        for n_classes, dtype in [(100, np.int8), (200, np.int16), (40_000, np.int32)]:
            label = [0, n_classes - 1]
            assert Annotations.from_codes([0, 1], [0, 0], label).label.dtype == dtype


class TestCuts:
    @pytest.mark.parametrize(
        ("cut", "tasks"),
        [
            (2, ["q2"]),
            (-1, ["q3"]),
            (np.int64(0), ["q0"]),
            (slice(1, 3), ["q1", "q2"]),
            ([2, 0], ["q2", "q0"]),
            (np.array([3, 3]), ["q3", "q3"]),
            ([True, False, True, False], ["q0", "q2"]),
            ([], []),
        ],
    )
    def test_rows_are_tasks(self, votes, cut, tasks):
        cut = np.array(cut, dtype=int) if isinstance(cut, list) and not cut else cut
        part = votes[cut]
        assert part.tasks.tolist() == tasks
        assert part.workers is votes.workers
        expected = [(name, w, k) for name in tasks for t, w, k in ROWS if TASKS[t] == name]
        assert [(part.tasks[t], w, k) for t, w, k in rows(part)] == expected

    def test_everything_goes_along(self, votes):
        part = votes[[2, 0]]
        assert part.weight.tolist() == [1, 3, 6, 2, 4]
        assert part.time.tolist() == [9, 7, 4, 8, 6]
        assert part.gold.tolist() == [2, 0]

    def test_a_number_out_of_range(self, votes):
        with pytest.raises(IndexError):
            votes[4]

    def test_is_not_iterated_over(self, votes):
        with pytest.raises(TypeError, match="to_frame"):
            list(votes)

    def test_scikit_learn_cuts_it_like_an_array(self, votes):
        X = np.arange(8).reshape(4, 2)
        indexable(X, votes)
        for train, test in KFold(2).split(X, votes):
            assert _safe_indexing(votes, test).tasks.tolist() == [TASKS[i] for i in test]
            assert len(votes[train]) + len(votes[test]) == 4
        splitter = GroupShuffleSplit(1, test_size=0.5, random_state=0)
        train, test = next(splitter.split(X, votes, groups=[0, 0, 1, 1]))
        assert set(train) in ({0, 1}, {2, 3})
        assert votes[test].n_annotations == sum(votes.redundancy[test])

    def test_filter_keeps_all_names(self, votes):
        part = votes.filter(votes.label == 1)
        assert rows(part) == [(0, 0, 1), (1, 1, 1), (2, 0, 1)]
        assert part.shape == votes.shape
        with pytest.raises(ParameterError, match=r"mask has shape \(2,\)(.|\n)*annotation \(6\)"):
            votes.filter([True, False])

    def test_select_workers(self, votes):
        assert rows(votes.select_workers(["cy", "bob"])) == [(0, 1, 0), (1, 1, 1), (2, 2, 2)]
        with pytest.raises(AnnotationError, match="no worker 'dan'"):
            votes.select_workers(["ann", "dan"])

    def test_nonempty(self, votes):
        assert votes.nonempty().tasks.tolist() == ["q0", "q1", "q2"]

    def test_split_tasks(self, votes):
        train, test = votes.split_tasks(0.25, random_state=0)
        assert len(train) == 3
        assert sorted([*train.tasks, *test.tasks]) == TASKS
        again = votes.split_tasks(0.25, random_state=0)[1]
        assert again.tasks.tolist() == test.tasks.tolist()

    def test_split_workers(self, votes):
        train, test = votes.split_workers(0.34, random_state=1)
        assert set(train.worker) | set(test.worker) == {0, 1, 2}
        assert not set(train.worker) & set(test.worker)
        assert train.n_annotations + test.n_annotations == 6
        assert len(set(test.worker)) == 1

    @pytest.mark.parametrize("size", [0.0, 1.0, 0.01])
    def test_a_side_may_not_be_empty(self, votes, size):
        with pytest.raises(ParameterError, match="leaves one side of 4 tasks empty"):
            votes.split_tasks(size)

    def test_subsample(self, votes):
        part = votes.subsample(2, random_state=0)
        assert part.redundancy.tolist() == [2, 1, 2, 0]
        assert set(rows(part)) <= set(rows(votes))
        drawn = {tuple(rows(votes.subsample(1, random_state=seed))) for seed in range(30)}
        assert len(drawn) > 3
        with pytest.raises(ParameterError, match="1 or more"):
            votes.subsample(0)


class TestRepeats:
    @pytest.fixture
    def repeated(self):
        """Worker 0 on task 0: labels 1, 0, 0 at times 3, 1, 2; worker 1 once."""
        return Annotations.from_codes(
            [0, 0, 0, 0, 1], [0, 0, 1, 0, 0], [1, 0, 1, 0, 1], time=[3, 1, 0, 2, 0]
        )

    @pytest.mark.parametrize(("keep", "label"), [("first", 0), ("last", 1), ("majority", 0)])
    def test_policies_go_by_time(self, repeated, keep, label):
        part = repeated.without_repeats(keep)
        assert part.n_repeats == 0
        assert {*rows(part)} == {(0, 0, label), (0, 1, 1), (1, 0, 1)}

    @pytest.mark.parametrize(("keep", "label"), [("first", 1), ("last", 0), ("majority", 0)])
    def test_policies_go_by_rows_without_time(self, repeated, keep, label):
        part = dataclasses.replace(repeated, time=None).without_repeats(keep)
        assert {*rows(part)} == {(0, 0, label), (0, 1, 1), (1, 0, 1)}

    def test_a_tied_majority_takes_the_first(self):
        tied = Annotations.from_codes([0, 0], [0, 0], [1, 0])
        assert tied.without_repeats("majority").label.tolist() == [1]

    def test_counts(self, repeated):
        assert repeated.n_repeats == 2

    def test_nothing_to_do(self):
        assert Annotations.from_codes([], [], []).without_repeats().n_annotations == 0

    def test_unknown_policy(self, repeated):
        with pytest.raises(ParameterError, match=r"keep='best' is unknown(.|\n)*first, last or"):
            repeated.without_repeats("best")


class TestOut:
    def test_long_frame(self, votes):
        frame = votes.to_frame()
        assert frame.columns.tolist() == ["task", "worker", "label", "weight", "time"]
        assert frame.iloc[0].tolist() == ["q0", "bob", "x", 2.0, 8]

    def test_long_frame_with_soft_labels(self):
        soft = Annotations.from_codes([0], [0], [1], soft=[[0.25, 0.75]])
        assert soft.to_frame()[["proba_0", "proba_1"]].to_numpy().tolist() == [[0.25, 0.75]]

    def test_wide_forms_refuse_repeats_and_keep_gaps(self, votes):
        for wide in (votes.to_matrix, votes.to_snorkel, votes.to_dict):
            with pytest.raises(AnnotationError, match="same task again in 1 annotation"):
                wide()
        once = votes.without_repeats("last")
        assert once.to_snorkel().tolist() == [[1, 0, -1], [-1, 1, -1], [1, -1, 2], [-1, -1, -1]]
        assert once.to_dict() == {
            "q0": {"bob": "x", "ann": "y"},
            "q1": {"bob": "y"},
            "q2": {"ann": "y", "cy": "z"},
            "q3": {},
        }
        matrix = once.to_matrix(missing="-")
        assert matrix.loc["q2"].tolist() == ["y", "-", "z"]
        assert matrix.index.name == "task"
        assert matrix.columns.name == "worker"

    def test_round_trips(self, votes):
        once = dataclasses.replace(votes.without_repeats("last"), weight=None, time=None, gold=None)
        assert {*rows(Annotations.from_matrix(once.to_matrix()))} == {*rows(once)}
        declared = Annotations.from_dict(once.to_dict(), workers=WORKERS, classes=CLASSES)
        assert {*rows(declared)} == {*rows(once)}
        frame = Annotations.from_frame(once.to_frame(), tasks=TASKS)
        assert frame.equals(once)
        assert Annotations.from_snorkel(once.to_snorkel(), 3).label.tolist() == [1, 0, 1, 1, 2]


class TestImmutable:
    def test_columns_cannot_be_written(self, votes):
        for name in ("worker", "label", "weight", "indptr", "gold"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(votes, name)[0] = 1

    def test_fields_cannot_be_set(self, votes):
        with pytest.raises(dataclasses.FrozenInstanceError):
            votes.worker = np.zeros(6)

    def test_what_came_in_is_not_changed(self):
        task, worker, label = (np.array(part) for part in zip(*ROWS, strict=True))
        before = task.copy(), worker.copy(), label.copy()
        Annotations.from_codes(task, worker, label).without_repeats()
        for own, old in zip((task, worker, label), before, strict=True):
            assert_array_equal(own, old)
            own[0] = own[0]  # still writable

    def test_pickles(self, votes):
        assert pickle.loads(pickle.dumps(votes)).equals(votes)

    def test_equal_only_if_all_is_equal(self, votes):
        assert votes.equals(votes[:])
        assert not votes.equals(votes[::-1])
        assert not votes.equals(dataclasses.replace(votes, gold=None))
        assert not votes.equals("votes")


def test_memory_is_in_proportion():
    rng = np.random.default_rng(0)
    n = 1_000_000
    annotations = Annotations.from_codes(
        rng.integers(0, 200_000, n, dtype=np.int32),
        rng.integers(0, 500, n, dtype=np.int32),
        rng.integers(0, 4, n),
    )
    held = (annotations.indptr, annotations.worker, annotations.label)
    assert sum(array.nbytes for array in held) / n <= 10


def test_votes_and_shares(votes):
    assert votes.votes().tolist() == [[2, 4, 0], [0, 5, 0], [0, 1, 9], [0, 0, 0]]
    assert_allclose(votes.shares()[[0, 3]], [[1 / 3, 2 / 3, 0], [1 / 3, 1 / 3, 1 / 3]])
