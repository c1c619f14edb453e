"""Counts and oddities, against plain loops."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from crowdwise.annotations import Annotations
from crowdwise.report.facts.data import bars_of, data_facts, find_similar_names, parts_of, spread

ROWS = [  # task, worker, label: repeats, contradictions, a lone task, a part of its own
    ("a", "ann", "x"), ("a", "bob", "x"), ("a", "ann", "y"), ("a", "ann", "x"),
    ("b", "ann", "x"), ("b", "bob", "y"), ("b", "cid", "y"),
    ("c", "cid", "y"),
    ("d", "eve", "x"), ("d", "fay", "x"), ("e", "eve", "y"),
]  # fmt: skip


@pytest.fixture
def odd():
    task, worker, label = zip(*ROWS, strict=True)
    frame = {"task": task, "worker": worker, "label": label}
    return Annotations.from_frame(
        pd.DataFrame(frame),
        tasks=["a", "b", "c", "d", "e", "nobody"],
        workers=["ann", "bob", "cid", "eve", "fay", "idle"],
        classes=["x", "y", "z", "Z "],
    )


def test_counts_match_plain_loops(odd):
    found = data_facts(odd)
    by_task, by_worker = {}, {}
    for task, worker, label in ROWS:
        by_task.setdefault(task, []).append((worker, label))
        by_worker.setdefault(worker, []).append(label)
    assert found.n_annotations == 11
    assert (found.n_tasks, found.n_workers, found.n_classes) == (6, 6, 4)
    assert found.n_unlabeled == 1
    assert found.n_single == sum(len(each) == 1 for each in by_task.values()) == 2
    shared = [each for each in by_task.values() if len({w for w, _ in each}) > 1]
    assert found.n_shared == len(shared) == 3
    assert found.n_unanimous == sum(len({label for _, label in each}) == 1 for each in shared) == 1
    seen, repeats, contradictions = {}, 0, 0
    for task, worker, label in ROWS:
        repeats += (task, worker) in seen
        contradictions += seen.setdefault((task, worker), label) != label
    assert (found.n_repeats, found.n_contradictions) == (repeats, contradictions) == (2, 1)
    assert found.n_idle == 1
    assert found.n_once == sum(len(each) == 1 for each in by_worker.values()) == 1
    assert found.busy_share == max(len(each) for each in by_worker.values()) / 11
    assert found.unused == ("z", "Z ")
    assert found.alike == (("z", "Z "),)


def test_parts_are_found_by_walking_from_label_to_label(odd):
    assert parts_of(odd) == (2, 2, 2)  # eve and fay, d and e: the lone names are no part
    linked = Annotations.from_dict({"a": {"w": 1, "v": 0}, "b": {"v": 1}})
    assert parts_of(linked) == (1, 0, 0)


@pytest.mark.parametrize("counts", [[3, 3, 1, 7], [0, 0, 5], list(range(1, 200)), [0, *range(90)]])
def test_bars_hold_every_count_once(counts):
    bars = bars_of(np.array(counts))
    assert sum(bar.count for bar in bars) == len(counts)
    for bar in bars:
        assert bar.count == sum(bar.low <= value <= bar.high for value in counts)
    assert all(one.high < other.low for one, other in pairwise(bars))


def test_a_spread_of_nothing_is_no_number():
    assert np.isnan(spread(np.array([], dtype=int)).mean)
    assert spread(np.array([1, 2, 6])).median == 2
    assert spread(np.array([1, 2, 6])).mean == 3


def test_names_that_differ_by_case_or_blanks_only():
    names = np.array(["Yes", "no", "yes ", "maybe", "YES"], dtype=object)
    assert find_similar_names(names) == (("Yes", "yes ", "YES"),)
