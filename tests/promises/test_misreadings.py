"""What docs/promises.md says of input that reads like something else."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from crowdwise import Annotations, read
from crowdwise.aggregate import DawidSkene
from crowdwise.errors import AnnotationError, FormatError
from crowdwise.io import as_annotations
from crowdwise.learn import TwoStage

TRIPLES = [[task, worker, (task + worker) % 2] for task in range(1, 7) for worker in range(1, 4)]
SHUFFLED = np.random.default_rng(0).permutation([[10 * t, 5 * w + 1, c] for t, w, c in TRIPLES])


@pytest.mark.parametrize("rows", [TRIPLES, TRIPLES[:4], SHUFFLED.tolist()])
@pytest.mark.parametrize(
    "make",
    [
        np.array,
        pd.DataFrame,
        lambda rows: np.array(rows, dtype=float),
        lambda rows: pl.DataFrame(rows, orient="row"),
    ],
)
def test_promise_05_arrays_that_look_like_triples_are_refused(make, rows):
    with pytest.raises(FormatError, match=r"may hold \(task, worker, label\)"):
        as_annotations(make(rows))
    assert Annotations.from_matrix(np.array(rows)).n_workers == 3


def test_promise_05_four_rows_in_order_are_refused():
    with pytest.raises(FormatError, match=r"may hold \(task, worker, label\)"):
        as_annotations([[1, 1, 0], [1, 2, 0], [2, 1, 1], [2, 2, 1]])


@pytest.mark.parametrize("k", [2, 3, 5, 100])
def test_promise_05_labels_of_three_workers_in_an_array_are_read(k):
    rng = np.random.default_rng(k)
    truth = rng.integers(0, k, 60)
    wrong = rng.random((60, 3)) < 0.3
    labels = np.where(wrong, rng.integers(0, k, (60, 3)), truth[:, None])
    assert as_annotations(labels).shape == (60, 3)
    assert as_annotations(pd.DataFrame(labels)).shape == (60, 3)


def test_promise_05_rows_named_like_workers_are_refused():
    wide = pd.DataFrame([[0, 1, 1], [0, 1, 0]], index=pd.Index(["ann", "bob"], name="worker"))
    with pytest.raises(AnnotationError, match=r"like workers(.|\n)*transpose"):
        as_annotations(wide.rename(columns=str))
    assert as_annotations(wide.rename(columns=str).T.rename_axis("task")).shape == (3, 2)


@pytest.mark.parametrize("blank", ["", " ", "\t "])
def test_promise_06_blank_labels_are_missing(blank, tmp_path):
    frame = pd.DataFrame({"task": [1, 1, 2], "worker": list("aba"), "label": ["x", blank, "y"]})
    frame.to_csv(tmp_path / "votes.csv", index=False)
    with pytest.warns(UserWarning, match="taken as missing: '' 1"):
        found = as_annotations(frame)
    for votes in (found, read(tmp_path / "votes.csv")):
        assert (votes.classes.tolist(), votes.n_annotations) == (["x", "y"], 2)
    assert read(frame, missing=None).classes.tolist() == [blank, "x", "y"]


@pytest.mark.parametrize("weight", [1e-60, 1e-39, 1e39])
def test_promise_16_a_weight_that_single_precision_lacks_is_refused(weight):
    frame = pd.DataFrame({"task": [1, 1], "worker": list("ab"), "label": list("xy")})
    with pytest.raises(AnnotationError, match="1 weight that cannot be used"):
        as_annotations(frame.assign(weight=[0.0, weight]))
    with pytest.raises(AnnotationError, match="of weight cannot be used"):
        Annotations.from_codes([0, 0], [0, 1], [0, 1], weight=[0.0, weight])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["1", "1.0", "b"], "'1' and '1.0'"),
        (["001", "1", "b"], "'001' and '1'"),
        (["a", "a\u200b", "b"], "'a'"),
        (["123456789012345678", "123456789012345679", "b"], ""),
        (["52_0", "5_20", "520"], ""),  # numbers to Python, names to people
        (["1e5", "10e4", "100000"], ""),  # parts of hashes
    ],
)
def test_promise_09_tasks_that_look_alike_are_reported(names, said):
    frame = pd.DataFrame({"task": names, "worker": list("uvw"), "label": list("xyx")})
    alike = [note for note in as_annotations(frame).notes if "tasks differ only" in note]
    assert len(alike) == bool(said)
    assert said in "".join(alike)


def test_promise_09_labels_that_read_like_several_others_are_reported():
    frame = pd.DataFrame({"task": [1, 1, 2, 2], "worker": list("abab")})
    notes = as_annotations(frame.assign(label=["x;y", "x", "y", "x; y"])).notes
    assert "2 labels read like several others together, such as 'x; y'" in notes
    notes = as_annotations(frame.assign(label=["w;y", "x", "y", "and/or"])).notes
    assert "together" not in " ".join(notes)


TEXT = "\n".join(" ".join(map(str, row)) for row in TRIPLES) + "\n"
COUNTED = "0,1,2\n" + TEXT.replace(" ", ",")  # as pandas writes an array without its index


@pytest.mark.parametrize(("name", "text"), [("v.txt", TEXT), ("v.csv", COUNTED)])
def test_promise_05_files_that_look_like_triples_are_refused(name, text, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(FormatError, match=r"may hold \(task, worker, label\)(.|\n)*the format: "):
        read(path)
    assert read(path, "matrix" if name == "v.txt" else "wide").n_workers == 3


def test_promise_05_arrays_in_files_and_frames_of_triples_are_refused(tmp_path):
    np.save(tmp_path / "v.npy", np.array(TRIPLES))
    with pytest.raises(FormatError, match=r"may hold \(task, worker, label\)"):
        read(tmp_path / "v.npy")
    for columns in (range(3), [0, 1, 2]):
        with pytest.raises(FormatError, match=r"may hold \(task, worker, label\)"):
            read(pd.DataFrame(TRIPLES, columns=columns))


@pytest.mark.parametrize(
    "text",
    [
        "17,23\n0,0\n1,1\n0,1\n",
        "1,0\n0,0\n1,1\n0,1\n",
        "x,y\ny,y\nx,x\n",
        "q1,x,y\nq2,y,x\nq3,x,y\n",
    ],
)
def test_promise_05_a_first_line_that_may_be_data_is_refused(text, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(text)
    with pytest.raises(AnnotationError, match=r"first line of .* may be data"):
        read(path)
    assert read(path, "wide").n_workers == 2
    read(path, "wide").to_matrix().to_csv(path)
    assert read(path, "wide").n_workers == 2


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (["ann", "bob"], ["task_1", "task_2", "task_3"]),
        (["rater1", "rater2"], ["a", "b", "c"]),
        (["worker 1", "worker 2"], ["image 1", "image 2", "image 3"]),
    ],
)
def test_promise_05_a_wide_table_with_workers_as_rows_is_refused(rows, columns, tmp_path):
    wide = pd.DataFrame([list("xyx"), list("yyx")], index=rows, columns=columns)
    path = tmp_path / "votes.csv"
    wide.to_csv(path)
    for use, source in ((read, path), (as_annotations, wide)):
        with pytest.raises(AnnotationError, match=r"one row per worker(.|\n)*transpose"):
            use(source)
    wide.T.to_csv(path)
    assert read(path).shape == as_annotations(wide.T).shape == (3, 2)
    wide.to_csv(path)
    assert read(path, worker="*").shape == (2, 3)


@pytest.mark.parametrize("name", ["majority", "Majority Vote", "consensus", "final_label", "total"])
def test_promise_08_a_summary_of_the_others_is_no_worker(name, tmp_path):
    path = tmp_path / "votes.csv"
    frame = pd.DataFrame({"task": [1, 2, 3], "a": [0, 1, 1], "b": [1, 1, 0], name: [1, 1, 0]})
    frame.to_csv(path, index=False)
    for votes in (read(path), as_annotations(frame)):
        assert votes.workers.tolist() == ["a", "b"]
        assert f"columns left out: {name!r}" in votes.notes
    votes = read(path, worker="*a*")  # those that are named
    assert votes.workers.tolist() == ["a", *[name] * ("a" in name)]
    assert votes.n_tasks == 3


def test_promise_08_floats_beside_whole_numbers_are_labels_of_workers(tmp_path):
    path = tmp_path / "votes.csv"
    pd.DataFrame({"task": [1, 2, 3], "a": [1, None, 0], "b": [0, 1, 1]}).to_csv(path, index=False)
    assert read(path).classes.tolist() == [0, 1]


def test_promise_08_columns_of_a_long_table_that_are_not_used_are_reported(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("task,annotator,reviewer,label,weight,count\n1,a,r,x,1,3\n1,b,r,y,2,1\n")
    assert "columns left out: 'reviewer', 'count'" in read(path).notes
    path.write_text("task,worker,label,\n1,a,x,\n1,b,y,\n")
    assert "left out" not in " ".join(read(path).notes)


def test_promise_08_questions_that_share_no_answer_are_doubted(tmp_path):
    path, when = tmp_path / "form.csv", "2024/05/31 3:07:14 PM GMT+2"
    rows = [f"{when},{who}@x.org,Yes,{'YN'[k % 2]},{20 + k}" for k, who in enumerate("abc")]
    path.write_text("\n".join(["Timestamp,Email Address,Is 1 a cat?,Is 2 a cat?,Your age", *rows]))
    with pytest.warns(UserWarning, match=r"may not be tasks: 'Is 1(.|\n)*'Your age'(.|\n)*--task"):
        read(path)
    assert read(path, task="Is*").n_tasks == 2
    path.write_text("Timestamp,Email Address,Is 1 a cat?\n,a@x.org,Yes\n,b@x.org,No\n")
    assert read(path, "google_forms").n_annotations == 2


def test_promise_09_lists_written_as_text_are_reported():
    frame = pd.DataFrame({"task": [1, 1, 2, 2], "worker": list("abab")})
    for lists in (["['x', 'y']", '["x"]', "x", "y"], ['{"choice": "x"}', "[1, 2]", "x", "y"]):
        notes = as_annotations(frame.assign(label=lists)).notes
        assert any("labels that are lists, written as text: 2" in note for note in notes)
    notes = as_annotations(frame.assign(label=["[unclear]", "{x}", "x", "[sic]"])).notes
    assert "lists" not in " ".join(notes)


def test_promise_09_case_and_spaces_are_counted_together():
    frame = pd.DataFrame({"task": [1, 1, 2, 2], "worker": list("abab")})
    notes = as_annotations(frame.assign(label=["yes", " yes", "Yes", "no"])).notes
    assert any(
        "in case, spaces or spelling, such as ' yes' and 'Yes' (kept apart)" in x for x in notes
    )


def test_promise_09_truths_with_several_right_labels_are_counted(tmp_path):
    path = tmp_path / "full.csv"
    rows = ['1,w1,true,good,"good\nbad"', '1,w2,true,bad,"good\nbad"', "2,w1,false,bad,good"]
    head = "_unit_id,_worker_id,_golden,mood,mood_gold"
    path.write_text("\n".join([head, *rows, "3,w1,true,bad,good\n"]))
    notes = read(path).notes
    assert "truths of several right labels left out: 1" in notes
    assert "truths of units that are no test questions left out: 1" in notes


def test_promise_09_workers_of_another_type_are_not_strangers():
    frame = pd.DataFrame(
        {
            "task": np.repeat(range(20), 3),
            "worker": [1, 2, 3] * 20,
            "label": ["x", "x", "x", "y", "y", "x"] * 10,
        }
    )
    model = DawidSkene(max_iter=1000).fit(frame)
    texts = frame.astype({"worker": str})
    with pytest.raises(
        AnnotationError, match=r"3 workers .*another type(.|\n)*'1', in the model 1"
    ):
        model.predict(texts)
    X = pd.DataFrame({"x": np.arange(20.0)})
    with pytest.raises(AnnotationError, match=r"3 workers .*another type"):
        TwoStage().fit(X, frame).score(X, texts)
    assert (
        len(model.predict(frame.assign(worker=frame["worker"] + 10))) == 20
    )  # new ones are no error


@pytest.mark.parametrize(
    "head", ["StartDate,EndDate,ResponseId,Q1", "Respondent ID,Collector ID,Email Address,Q1"]
)
def test_promise_21_surveys_are_refused_by_name(head, tmp_path):
    path = tmp_path / "survey.csv"
    path.write_text(f"{head}\n,,,Is this a cat?\n1,1,a@x.org,Yes\n1,1,b@x.org,No\n")
    with pytest.raises(FormatError, match=r"a survey of Qualtrics or SurveyMonkey"):
        read(path)


def test_promise_09_a_label_that_is_an_object_names_no_worker():
    rows = [{"task": 1, "annotator": who, "label": {"value": "y"}} for who in ("ann", "bob")]
    with pytest.raises(FormatError, match="a dict where the label should be"):
        read(rows)
    rows = [{"id": k, "source": "web", "label": {"ann": "y", "bob": "n"}} for k in (1, 2)]
    assert read(rows).workers.tolist() == ["ann", "bob"]


@pytest.mark.parametrize("role", ["task", "worker"])
def test_promise_09_names_that_a_spreadsheet_rounded_are_reported(role, tmp_path):
    path = tmp_path / "votes.csv"
    frame = pd.DataFrame({"task": list("112"), "worker": list("aba"), "label": list("xyx")})
    said = (
        f"{role}s with names like numbers that a spreadsheet has rounded: 1, such as '1.23457E+16'"
    )
    frame.assign(**{role: ["1.23457E+16", "1.23457E+16", "b"]}).to_csv(path, index=False)
    assert said in read(path).notes
    frame.assign(**{role: ["1.5e10", "2E+07", "1.2.3E+10"]}).to_csv(path, index=False)
    assert "rounded" not in " ".join(read(path).notes)
    frame[role] = [1.234567890123457e16 + 0.0, 1.5, "b"]  # as a workbook has them
    assert "rounded: 1" in " ".join(read(frame.to_dict("records")).notes)


@pytest.mark.parametrize("role", ["task", "worker", "label"])
def test_promise_09_updates_with_names_of_another_type_are_refused(role):
    frame = pd.DataFrame({"task": [1, 1, 2, 2], "worker": [1, 2, 1, 2], "label": [0, 1, 1, 1]})
    model = DawidSkene().update(frame)
    texts = frame.assign(**{"task": frame["task"] + (role != "task") * 10}).astype({role: str})
    with pytest.raises(AnnotationError, match=rf"{role}s? of the model would be new here"):
        model.update(texts)
    assert model.update(frame.assign(task=frame["task"] + 10)).probas_.shape == (4, 2)
