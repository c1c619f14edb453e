"""What is known of workers, from a file of its own."""

import pandas as pd
import pytest

from crowdwise import Annotations
from crowdwise.errors import AnnotationError, FormatError
from crowdwise.io import read
from crowdwise.io.gold import read_truths
from crowdwise.io.workers import add_worker_file


@pytest.fixture
def votes():
    return Annotations.from_dict({1: {7: 0, 8: 1}, 2: {7: 1, 9: 0}})


def test_facts_are_found_by_name_whatever_its_type(votes, tmp_path):
    path = tmp_path / "judges.csv"
    path.write_text("Judge,family,price,size\n8,b,0.5,7\n7,a,0.25,\n5,c,1,1\n")
    known = add_worker_file(votes, path)
    about = known.about_workers
    assert about["family"].tolist()[:2] == ["a", "b"]
    assert about["price"].tolist()[:2] == [0.25, 0.5]
    assert about.loc[9].isna().all()
    assert known.notes[-3:] == (
        f"family, price, size of 2 workers from {path}",
        f"workers without a row in {path}: '9'",
        f"rows of other workers in {path}: '5'",
    )


def test_records_do_as_well(votes, tmp_path):
    path = tmp_path / "judges.jsonl"
    path.write_text('{"model": 7, "family": "a"}\n{"model": "9", "family": "b"}\n')
    assert add_worker_file(votes, path).about_workers["family"].dropna().tolist() == ["a", "b"]


def test_promise_06_families_of_workers_are_read_like_labels(votes, tmp_path):
    path = tmp_path / "judges.csv"
    for cells, expected in {
        "1 1.0 2": [1, 1, 2],
        "1 01 2": ["1", "01", "2"],
        "NA nan b": [None, None, "b"],
        "true True 1": ["true", "True", "1"],
    }.items():
        rows = [f"{who},{own}" for who, own in zip((7, 8, 9), cells.split(), strict=True)]
        for title in ("family", "Family", "_FAMILY"):
            path.write_text(f"worker,{title}\n" + "\n".join(rows))
            found = add_worker_file(votes, path).about_workers["family"]
            assert found.where(found.notna(), None).tolist() == expected
    path.write_text("worker,family,Family\n7,a,x\n8,a,y\n9,b,z\n")
    assert add_worker_file(votes, path).about_workers["family"].tolist() == ["a", "a", "b"]


def test_promise_09_rows_about_nobody_are_reported(votes, tmp_path):
    path = tmp_path / "judges.csv"
    path.write_text("worker,family\n 7,a\n8,b\n9,b\n,c\n")
    assert add_worker_file(votes, path).notes[-3:] == (
        f"workers without a row in {path}: '7'",
        f"rows of other workers in {path}: ' 7'",
        f"rows without a worker in {path}: 1",
    )
    path = tmp_path / "judges.json"
    path.write_text('[{"worker": 7, "family": ["a"]}, {"worker": 8, "size": {"b": 1}}]')
    with pytest.raises(FormatError, match=r"has a list where the family should be(.|\n)*fix: "):
        add_worker_file(votes, path)


def test_a_worker_described_twice_is_refused(votes, tmp_path):
    path = tmp_path / "judges.csv"
    path.write_text("worker,family\n7,a\n7,b\n")
    with pytest.raises(AnnotationError, match="described twice"):
        add_worker_file(votes, path)


def test_truths_of_a_file_need_not_be_classes(votes, tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("task,label\n2,1\n1,0\n2,1\n3,1\n")
    assert read_truths(votes, path).to_dict() == {2: 1, 1: 0}
    path.write_text("task,rating\n1,4.25\n2,1\n")
    assert read_truths(votes, path).to_dict() == {1: 4.25, 2: 1.0}
    path.write_text("task,label\n1,good\n2,1\n")
    assert read_truths(votes, path).to_dict() == {1: "good", 2: "1"}
    path.write_text("task,label\n1,1\n1,0\n")
    with pytest.raises(AnnotationError, match="two different truths"):
        read_truths(votes, path)


def test_a_row_without_a_label_is_a_worker_who_declined():
    frame = pd.DataFrame(
        {"task": [1, 1, 2, 2, 2], "worker": [*"abab", "a"], "label": [0, None, None, None, 1]}
    )
    votes = Annotations.from_frame(frame)
    assert votes.declined.tolist() == [[0, 1], [1, 1]]  # a labeled task 2 at the second try
    assert Annotations.from_frame(frame.dropna()).declined is None


def test_promise_06_families_beside_labels_are_read_alike(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label,family\n1,a,x,NA\n1,b,y,NA\n1,c,y,f\n2,c,x,f\n")
    found = read(path).about_workers["family"]
    assert found.where(found.notna(), None).to_dict() == {"a": None, "b": None, "c": "f"}
