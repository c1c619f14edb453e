"""Published tables become a crowd: ids tidied the same way everywhere, people renumbered."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from crowdwise.datasets import info
from crowdwise.datasets.assemble import are_whole, assemble, simplest, tidy
from crowdwise.datasets.tables import PublishedTables, by_task

ROWS = pd.DataFrame(
    {"task": ["10", "9", "10"], "worker": ["zoe", "ann", "ann"], "label": ["0", "1", "1"]}
)


def people(**changes):
    return replace(info("dog"), **changes)


def test_ids_that_spell_numbers_become_numbers_everywhere():
    tables = tidy(
        PublishedTables(
            ROWS,
            by_task(["9", "10"], ["1", "0"], "truth"),
            X=np.zeros((2, 1)),
            X_tasks=np.array(["9", "10"]),
            items=pd.DataFrame({"text": ["nine", "ten"]}, index=pd.Index(["9", "10"], name="task")),
            split=by_task(["9", "10"], ["train", "test"], "split"),
            extra={"more": by_task(["9"], ["0.5"], "more"), "words": ROWS.assign(label="yes")},
        )
    )
    assert tables.annotations["task"].tolist() == [10, 9, 10]
    assert tables.annotations["label"].tolist() == [0, 1, 1]
    assert tables.truth.to_dict() == {9: 1, 10: 0}
    assert tables.X_tasks.tolist() == tables.items.index.tolist() == tables.split.index.tolist()
    assert tables.split.tolist() == ["train", "test"]
    assert tables.extra["more"].to_dict() == {9: 0.5}
    assert tables.extra["words"]["task"].tolist() == [10, 9, 10]


def test_one_id_that_is_no_number_keeps_all_of_them_text():
    tables = tidy(PublishedTables(ROWS, by_task(["9", "x10"], ["1", "0"], "truth")))
    assert tables.annotations["task"].tolist() == ["10", "9", "10"]
    assert tables.truth.index.tolist() == ["9", "x10"]


@pytest.mark.parametrize(
    ("values", "whole"),
    [(["0", "-7", "12"], True), (["007"], False), (["1.0"], False), ([""], False), ([3, 4], True)],
)
def test_only_what_can_be_written_back_is_whole(values, whole):
    assert are_whole(values) is whole


def test_labels_are_as_simple_as_they_can_be():
    assert simplest(pd.Series(["3", "-1"])).tolist() == [3, -1]
    assert simplest(pd.Series(["3.5", "1"])).tolist() == [3.5, 1.0]
    assert simplest(pd.Series(["yes", "1"])).tolist() == ["yes", "1"]


def test_people_are_numbered_in_order_of_appearance_in_every_table():
    workers = pd.DataFrame({"age": [30, 40]}, index=pd.Index(["ann", "zoe"]))
    more = pd.DataFrame({"task": ["1", "1"], "worker": ["new", "ann"], "label": ["a", "b"]})
    crowd = assemble(people(), PublishedTables(ROWS, workers=workers, extra={"test": more}))
    assert crowd.annotations.to_frame()["worker"].tolist() == [1, 0, 1]
    assert crowd.workers.index.tolist() == [0, 1]
    assert crowd.workers["age"].tolist() == [40, 30]
    assert crowd.extra["test"]["worker"].tolist() == [2, 1]
    assert ROWS["worker"].tolist() == ["zoe", "ann", "ann"]


def test_annotations_follow_the_order_of_the_features():
    X_tasks = np.array(["11", "10", "9"])
    crowd = assemble(people(), PublishedTables(ROWS, X=np.eye(3), X_tasks=X_tasks))
    assert crowd.annotations.tasks.tolist() == [10, 9]
    assert crowd.X_tasks.tolist() == [11, 10, 9]


def test_classes_cover_the_truth_unless_it_is_a_number_on_a_scale():
    truth = by_task(["9"], ["7"], "truth")
    assert assemble(people(), PublishedTables(ROWS, truth)).annotations.classes.tolist() == [
        0,
        1,
        7,
    ]
    numbers = people(labels="numbers")
    assert assemble(numbers, PublishedTables(ROWS, truth)).annotations.classes.tolist() == [0, 1]
    fraction = by_task(["9"], ["0.5"], "truth")
    assert assemble(people(), PublishedTables(ROWS, fraction)).annotations.classes.tolist() == [
        0,
        1,
    ]


def test_a_set_without_a_crowd_has_empty_annotations():
    truth = by_task(["b", "a"], ["x", "y"], "truth")
    tables = PublishedTables(truth=truth, X=np.eye(2), X_tasks=np.array(["b", "a"]))
    crowd = assemble(people(workers="none"), tables)
    assert crowd.annotations.shape == (2, 0)
    assert crowd.annotations.tasks.tolist() == ["b", "a"]
    assert crowd.annotations.classes.tolist() == ["x", "y"]
