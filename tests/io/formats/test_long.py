"""Long tables, with all the words there are for task, worker and label."""

import numpy as np
import pytest

import crowdwise as cw
from crowdwise.errors import AnnotationError, FormatError


@pytest.fixture
def read(tmp_path):
    def from_text(text, name="table.csv", **options):
        path = tmp_path / name
        path.write_text(text)
        return cw.read(path, **options)

    return from_text


def test_recognizes_synonyms_and_says_so(export, triples, gold):
    annotations = export("long.csv")
    assert triples(annotations) == [("q1", "ann", "yes"), ("q2", "ann", "no")]
    assert gold(annotations) == {"q1": "yes"}
    assert annotations.time[0] == np.datetime64("2024-05-01T10:00")
    assert annotations.notes == (
        "read as long",
        "task from column 'question'",
        "worker from column 'annotator_id'",
        "label from column 'answer'",
        "time from column 'completeTime'",
        "gold from column 'truth'",
        "labels taken as missing: 'NA' 1"
        " (missing=None in Python and --missing '' in a shell keep them)",
        "rows without a label left out: 2",
    )


@pytest.mark.parametrize(
    "header",
    [
        "item,worker,label", "taskId,workerId,answer", "example,annotator,value",
        "orig_id,!amt_worker_ids,response",
        "comment_id,rater_id,rating", "HITId,user,choice", "unit,coder,category", "id,model,score",
    ],
)  # fmt: skip
def test_knows_the_words_other_tools_use(header, read, triples):
    assert triples(read(f"{header}\n1,2,3\n1,4,5\n")) == [(1, 2, 3), (1, 4, 5)]


def test_what_is_named_overrules_what_is_recognized(read, triples):
    text = "task,worker,label,item,who,said,w,t\n1,2,3,a,b,c,0.5,7\n"
    annotations = read(text, task="item", worker="who", label="said", weight="w", time="t")
    assert triples(annotations) == [("a", "b", "c")]
    assert annotations.weight.tolist() == [0.5]
    assert annotations.time.tolist() == [7]


def test_row_numbers_are_no_tasks(read, triples):
    rows = triples(read("id,text,annotator,label\n1,x,a,yes\n2,x,b,no\n3,y,a,no\n"))
    assert rows == [("x", "a", "yes"), ("x", "b", "no"), ("y", "a", "no")]


def test_ids_that_repeat_are_tasks_even_beside_a_text(read, triples):
    assert triples(read("id,text,annotator,label\n1,x,a,yes\n1,x,b,no\n"))[0] == (1, "a", "yes")


def test_integers_only_if_the_whole_column_is(read):
    annotations = read("task,worker,label\n01,7,1.0\n02,8,2\n")
    assert annotations.tasks.tolist() == ["01", "02"]
    assert annotations.workers.tolist() == [7, 8]
    assert annotations.classes.tolist() == [1, 2]


def test_labels_and_gold_have_one_type(read, gold):
    annotations = read("task,worker,label,gold\n1,7,1,?\n1,8,0,?\n2,7,0,0\n")
    assert annotations.classes.tolist() == ["0", "1", "?"]
    assert gold(annotations) == {1: "?", 2: "0"}


def test_missing_says_which_labels_are_none(read, triples):
    assert triples(read("task,worker,label\nq,a,NA\nq,b,x\n", missing="NA")) == [("q", "b", "x")]
    assert triples(read("task,worker,label\nq,a,-1\nq,b,1\n", missing=-1)) == [("q", "b", 1)]
    assert triples(read("task,worker,label\nq,a,-1\nq,b,1\n", missing="-1")) == [("q", "b", 1)]


def test_declared_classes_are_spelled_as_declared(read):
    text = "task,worker,label\nq,a,1\nq,b,0\n"
    assert read(text, classes=["0", "1", "unsure"]).classes.tolist() == ["0", "1", "unsure"]
    assert read(text, classes=[1, 0]).classes.tolist() == [1, 0]
    with pytest.raises(AnnotationError, match=r"unknown label occurs in 1 of 2"):
        read(text, classes=[1, 2])


def test_a_weight_column_is_used_and_must_hold_numbers(read):
    assert read("task,worker,label,weight\n1,2,3,0.5\n").weight.tolist() == [0.5]
    with pytest.raises(
        AnnotationError,
        match=r"1 weight that cannot be used(.|\n)*row 1: weight='much'(.|\n)*correct",
    ):
        read("task,worker,label,weight\n1,2,3,much\n")


def test_times_that_cannot_be_read_matter_only_if_asked_for(read):
    text = "task,worker,label,time\n1,2,3,soon\n"
    assert "times left out: they cannot be read" in read(text).notes
    with pytest.raises(AnnotationError, match="times that cannot be read"):
        read(text, time="time")


def test_gold_that_is_none_matters_only_if_asked_for(read):
    clash = "task,worker,label,gold\n1,2,a,a\n1,3,b,b\n"
    assert "gold left out: more than one for a task" in read(clash).notes
    with pytest.raises(AnnotationError, match="two different gold labels"):
        read(clash, gold="gold")
    strange = "task,worker,label,gold\n1,2,a,TRUE\n"
    assert "gold left out: no worker gave these labels" in read(strange).notes
    assert read("task,worker,label,gold\n1,2,a,\n").gold is None


def test_repeats_can_be_resolved(read, triples):
    text = "task,worker,label,time\n1,2,a,9\n1,2,b,3\n"
    assert triples(read(text, repeats="first")) == [(1, 2, "b")]
    assert read(text).n_repeats == 1


def test_probabilities_are_soft_labels(read):
    annotations = read("task,worker,label,proba_0,proba_1\n1,2,1,0.25,0.75\n")
    assert annotations.classes.tolist() == [0, 1]
    assert annotations.soft.tolist() == [[0.25, 0.75]]


def test_says_what_is_missing_and_what_is_there(read):
    with pytest.raises(
        AnnotationError, match=r"no column for the worker(.|\n)*task, label(.|\n)*worker="
    ):
        read("task,label\n1,2\n")
    with pytest.raises(AnnotationError, match=r"no column 'whom' for the worker(.|\n)*spelling"):
        read("task,worker,label\n1,2,3\n", worker="whom")


def test_refuses_a_column_name_that_is_used_twice(read):
    with pytest.raises(FormatError, match="column 'label' more than once"):
        read("task,worker,label,label\n1,2,3,4\n")
    assert read("task,worker,label,note,note\n1,2,3,4,5\n").n_annotations == 1


def test_refuses_a_label_without_task_or_worker(read):
    with pytest.raises(AnnotationError, match=r"task is missing in 1 of 2 annotations"):
        read("task,worker,label\n,2,3\n1,2,3\n")
    with pytest.raises(AnnotationError, match=r"worker is missing in 1 of 2 annotations"):
        read("task,worker,label\n1,,3\n1,2,3\n")


def test_a_row_without_a_label_may_lack_its_worker(read):
    annotations = read("task,worker,label\n1,2,3\n4,,\n,,\n")
    assert annotations.tasks.tolist() == [1, 4]
    assert "blank rows left out: 1" in annotations.notes


def test_reads_json_records_with_their_types(tmp_path, triples):
    path = tmp_path / "rows.json"
    path.write_text(
        '[{"task": "1", "worker": 2, "label": true}, {"task": "1", "worker": 3, "label": null}]'
    )
    annotations = cw.read(path)
    assert triples(annotations) == [("1", 2, True)]
    assert annotations.workers.tolist() == [2, 3]


def test_reads_columns_and_wrapped_records(triples):
    columns = {"task": [1, 1], "worker": ["a", "b"], "label": ["x", "y"]}
    rows = [{"task": 1, "worker": "a", "label": "x"}, {"task": 1, "worker": "b", "label": "y"}]
    assert triples(cw.read(columns)) == triples(cw.read({"data": rows}))


def test_refuses_lists_in_cells():
    with pytest.raises(FormatError, match="has a dict where the task should be"):
        cw.read([{"task": {"a": 1}, "worker": 2, "label": 3}])
