"""Sheets of responses to Google Forms."""

import pytest

import crowdwise as cw
from crowdwise.errors import FormatError

TIME = "2024/05/31 3:07:14 PM GMT+2"


@pytest.fixture
def sheet(tmp_path):
    """Read a sheet with these lines."""

    def read(*lines, **options):
        path = tmp_path / "responses.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return cw.read(path, **options)

    return read


HEADER = "Timestamp,Email Address,Image 1,Image 2"


def test_a_row_is_a_worker_and_a_column_a_task(sheet, triples):
    taken = sheet(HEADER, f"{TIME},a@x.org,cat,dog", f"{TIME},b@x.org,cat,")
    assert sorted(triples(taken)) == [
        ("Image 1", "a@x.org", "cat"),
        ("Image 1", "b@x.org", "cat"),
        ("Image 2", "a@x.org", "dog"),
    ]
    assert set(taken.notes) >= {
        "read as google_forms",
        "task from 2 columns: 'Image 1', 'Image 2'",
        "worker from column 'Email Address'",
    }


def test_workers_without_a_name_are_numbered(sheet, triples):
    taken = sheet("Timestamp,A?,B?", f"{TIME},1,2", "5/31/2024 15:07:14,2,2")
    assert sorted(triples(taken))[0] == ("A?", 1, 1)
    assert "worker from the row number" in taken.notes


def test_points_of_a_quiz_are_no_task(sheet):
    header = "Timestamp,Username,Score,Q1,Q1 [Score],Q1 [Feedback]"
    taken = sheet(header, f"{TIME},a,1.00 / 1,x,1.00 / 1.00,")
    assert taken.tasks.tolist() == ["Q1"]
    assert "columns that are not tasks: 'Score', 'Q1 [Score]', 'Q1 [Feedback]'" in taken.notes


def test_a_pattern_names_the_tasks(sheet):
    taken = sheet("Timestamp,Age,Image 1", f"{TIME},40,cat", task="Image *")
    assert taken.tasks.tolist() == ["Image 1"]
    assert "columns that are not tasks: 'Age'" in taken.notes
    with pytest.raises(FormatError, match=r"without a column for a task(.|\n)*'Picture \*'"):
        sheet("Timestamp,Age,Image 1", f"{TIME},40,cat", task="Picture *")


def test_two_questions_of_one_name_are_refused(sheet):
    with pytest.raises(FormatError, match="more than once"):
        sheet("Timestamp,Email,Cat?,Cat?", f"{TIME},a,yes,no")


def test_a_long_table_with_times_is_a_long_table(sheet, triples):
    taken = sheet("Timestamp,task,worker,label", f"{TIME},1,a,x")
    assert triples(taken) == [(1, "a", "x")]
    assert "read as long" in taken.notes
