"""Shares of three raters become counts; lessons are never torn apart."""

import numpy as np
import pandas as pd

from crowdwise.datasets.parsers import classroom
from crowdwise.datasets.parsers.classroom import split_by

HEADER = "obs_id,exchange_idx,student_text,teacher_text,student_on_task,teacher_on_task,uptake\n"


def test_shares_become_counts_and_a_majority(published):
    rows = "4,65,NA,Yes,0.6666666666666666,0.0,\n4,9,b,c,0.3333333333333333,1.0,1.66666666\n"
    tables = classroom.parse(published(uptake_data__csv=HEADER + rows))
    assert tables.annotations.groupby("task")["label"].sum().to_dict() == {"4-65": 2, "4-9": 1}
    assert tables.truth.to_dict() == {"4-65": 1, "4-9": 0}
    assert tables.items["student_text"].tolist() == ["NA", "b"]
    assert tables.items["teacher_on_task_votes"].tolist() == [0, 3]
    assert tables.items["uptake_mean"].fillna(-1).tolist() == [-1, 1.6667]


def test_a_lesson_is_in_one_part():
    lesson = pd.Series(np.repeat(np.arange(100), 3))
    split = split_by(lesson)
    assert split.groupby(lesson).nunique().eq(1).all()
    assert split.value_counts().to_dict() == {"train": 180, "test": 75, "valid": 45}
