"""What a hostile reader found to be read in silence, and the parts of every error."""

import ast
import json
import re
from pathlib import Path

import pytest

import crowdwise
from crowdwise import Annotations
from crowdwise.errors import AnnotationError, FormatError

SOURCE = Path(crowdwise.__file__).parent


@pytest.fixture
def read(tmp_path):
    """Read what is written to a file of this name."""

    def read(text, name="votes.csv", **options):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return crowdwise.read(path, **options)

    return read


def lines(*records):
    return "\n".join(map(json.dumps, records))


def test_promise_09_names_that_look_alike_are_reported(read):
    head = "task,worker,label\n"
    for one, other in (("Yes", "yes"), ("No ", "no"), ("caf\u00e9", "cafe\u0301"), ("1.0", "01")):
        votes = read(f"{head}1,a,{one}\n1,b,{other}\n2,a,maybe\n")
        assert any(note.startswith("2 labels differ only in case or spell") for note in votes.notes)
    assert not any("differ" in note for note in read(f"{head}1,a,x\n1,b,y\n").notes)
    votes = read([{"task": 1, "worker": w, "label": k} for w, k in ((1, 3), ("1", "3"))], "v.json")
    assert any(
        "2 workers differ only in case or spelling, such as 1 and '1'" in x for x in votes.notes
    )


def test_promise_09_repeated_annotations_are_reported(read):
    votes = read("task,worker,label\n1,a,x\n1,a,y\n1,b,x\n2,a,x\n2,a,x\n")
    assert votes.n_annotations == 5
    assert "annotations of a task by a worker who had labeled it: 2" in votes.notes


def test_promise_09_a_header_among_the_rows_is_no_annotation(read):
    votes = read("task,worker,label\n1,a,x\ntask,worker,label\n2,b,y\n")
    assert votes.tasks.tolist() == [1, 2]
    assert "rows that repeat the header left out: 1" in votes.notes
    assert read("task,worker,label\n1,a,label\n2,worker,x\n").n_annotations == 2


def test_promise_09_a_label_that_reads_like_several_is_refused(read):
    chosen = [["a", "b"], ["a + b"]]
    rows = lines(*({"id": 1, "text": "t", "label": own, "user": n} for n, own in enumerate(chosen)))
    with pytest.raises(FormatError, match="looks like several labels"):
        read(rows, "d.jsonl")


def test_promise_03_files_of_one_name_are_reported(tmp_path):
    for name in ("anna.jsonl", "anna.ndjson"):
        (tmp_path / name).write_text(lines({"id": 1, "text": "t", "label": ["x"]}))
    votes = crowdwise.read(tmp_path)
    assert any(note.startswith("files that name the same worker: ") for note in votes.notes)


def label_studio(result=None, **beside):
    own = {"from_name": "q", "value": {"choices": ["a"]}} | (result or {})
    made = {"id": 1, "completed_by": 1, "result": [own]}
    return [{"id": 1, "data": {}, "annotations": [made], **beside}]


def test_promise_04_answers_about_one_of_several_items_are_refused(read):
    for own in ({"parentID": "r1"}, {"item_index": 0}):
        with pytest.raises(FormatError, match="marks parts of a task"):
            read(label_studio(own), "ls.json")


def test_promise_04_predictions_and_drafts_are_counted(read):
    votes = read(label_studio(predictions=[{"result": []}] * 2, drafts=[{}]), "ls.json")
    assert {"predictions left out: 2", "drafts left out: 1"} <= set(votes.notes)


def test_promise_16_a_weight_that_overflows_is_refused(read):
    with pytest.raises(AnnotationError, match="1 weight that cannot be used"):
        read("task,worker,label,weight\n1,a,x,1e300\n1,b,y,1\n")


def test_promise_21_addresses_in_any_language_are_workers(read):
    sheet = "Zeitstempel,E-Mail-Adresse,A 1\n01.01.2024 10:00:00,{}@x.org,cat\n"
    votes = read(sheet.format("ann") + "01.01.2024 10:05:00,bob@x.org,dog\n", "forms.csv")
    assert votes.workers.tolist() == ["ann@x.org", "bob@x.org"]
    assert votes.tasks.tolist() == ["A 1"]


class TestJudges:
    """Logs of judges: one question, one grader, one filter at a time."""

    @staticmethod
    def event(data, run="r", kind="match", sample="s1"):
        return {"run_id": run, "event_id": 0, "sample_id": sample, "type": kind, "data": data}

    def test_promise_21_runs_and_fields_of_openai_stay_apart(self, read):
        two = [self.event({"correct": True}, "r1"), self.event({"correct": False}, "r2")]
        assert read(lines(*two), "log.jsonl").workers.tolist() == ["r1", "r2"]
        mixed = [self.event({"correct": True}), self.event({"score": 0.3}, kind="metrics")]
        with pytest.raises(FormatError, match="2 fields to read labels from"):
            read(lines(*mixed), "log.jsonl")
        assert read(lines(*mixed), "log.jsonl", question="score").classes.tolist() == [0.3]

    def test_promise_21_what_passed_is_no_text(self, read):
        results = [{"name": "g", "passed": "false"}, {"name": "h", "passed": True}]
        item = {"object": "eval.run.output_item", "datasource_item_id": 1, "results": results}
        assert set(read({"data": [item]}, "run.json").classes.tolist()) == {"false", 1}

    @staticmethod
    def sample(answer, target="1", **more):
        return {"doc_id": 0, "filtered_resps": answer, "target": target, **more}

    def test_promise_21_filters_and_choices_of_lm_eval(self, read):
        both = [self.sample(["A"], filter="strict"), self.sample(["B"], filter="loose")]
        with pytest.raises(FormatError, match="2 filters to read labels from"):
            read(lines(*both), "m/samples_x.jsonl")
        votes = read(lines(*both), "m/samples_x.jsonl", question="loose")
        assert votes.classes.tolist()[-1] == "B"
        assert "answers of other filters left out: 1" in votes.notes
        choices = self.sample([["-2", "False"], ["-1", "True"]])
        votes = read(lines(choices, choices | {"doc_id": 1}), "m/samples_x.jsonl")
        assert votes.classes.tolist() == [1]  # not the text that the harness writes of a truth
        votes = read(lines(self.sample([["nan", 1], ["-1", 1]]), choices), "m/samples_x.jsonl")
        assert votes.n_annotations == 1

    def test_promise_21_rubrics_of_promptfoo_are_graders(self, read):
        parts = [
            {"score": score, "assertion": {"type": "llm-rubric", "value": value}}
            for value, score in (("polite", 1), ("short", 0))
        ]
        row = {"testIdx": 0, "provider": "p", "gradingResult": {"componentResults": parts}}
        votes = read({"results": {"results": [row]}}, "out.json")
        assert votes.workers.tolist() == ["llm-rubric: polite", "llm-rubric: short"]


# -- files larger than memory are read by the same rules -----------------------------------------


@pytest.fixture
def reopen(tmp_path):
    pytest.importorskip("pyarrow")

    def reopen(text):
        (tmp_path / "big.csv").write_text(text)
        stored = Annotations.open(tmp_path / "big.csv")
        return stored, [name for some in stored.task_names() for name in some.tolist()]

    return reopen


def test_promise_06_words_are_missing_on_disk_too(reopen):
    stored, tasks = reopen("task,worker,label\n1,a,x\n1,b,NA\n2,a,nan\n2,b,\n3,a,y\n")
    assert (stored.classes.tolist(), tasks, stored.n_left_out) == (["x", "y"], [1, 3], 3)


def test_promise_09_names_stay_apart_on_disk_too(reopen):
    for names in (["001", "01", "1"], ["9007199254740992", "9007199254740993", str(10**20)]):
        rows = "".join(f"{name},w{name},{name}\n" for name in names)
        stored, tasks = reopen(f"task,worker,label\n{rows}task,worker,label\n")
        assert sorted(tasks) == sorted(names) == stored.classes.tolist()
        assert stored.n_left_out == 1
    stored, tasks = reopen("task,worker,label\n7,1,10\n8,2,9\n")
    assert (tasks, stored.workers.tolist(), stored.classes.tolist()) == ([7, 8], [1, 2], [9, 10])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,worker,label\n1,a,x\n1,,y\n", "The worker is missing"),
        ("task,worker,label\n,a,x\n1,b,y\n", "The task is missing"),
        ("task,worker,label,weight\n1,a,x,-1\n", "1 weight cannot be used"),
        ("task,worker,label\n1,a,\n", "There are no annotations"),
    ],
)
def test_promise_16_what_cannot_stay_on_disk_is_refused(reopen, text, message):
    with pytest.raises(AnnotationError, match=rf"{message}(.|\n)*fix: "):
        reopen(text)


# -- every error says what to do ---------------------------------------------------------------

ERRORS = {"AnnotationError", "CrowdwiseError", "DownloadError", "FileError", "FormatError",
          "ParameterError", "TrainingError"}  # fmt: skip
MADE = re.compile(rf"\b(?:{'|'.join(sorted(ERRORS))})\(")
# What is wrong inside the file of a model: crowdwise.load adds the other parts.
OF_MODELS = {"refuse_misfits", "_refuse_forged", "__post_init__"}


def says_what_to_do(node):
    return any(
        (isinstance(part, ast.keyword) and part.arg in ("fix", None))
        or (isinstance(part, ast.Constant) and "fix:" in str(part.value))
        for part in ast.walk(node)
    )


def find_bare_errors(path):
    """Places where an error is made without a word on what to do."""
    text = path.read_text(encoding="utf-8")
    made = [own.split("\n\n")[0] for own in MADE.split(text)[1:]]
    if all("fix=" in own or "fix:" in own for own in made):  # a quick look is enough
        return
    tree = ast.parse(text)
    inside = {}  # the innermost function around each error

    def look(node, function):
        for child in ast.iter_child_nodes(node):
            name = getattr(getattr(child, "func", None), "id", None)
            if name in ERRORS and child.args and function is not None:
                inside[child] = function
            look(child, child if isinstance(child, ast.FunctionDef) else function)

    look(tree, None)
    functions = {one.name: one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}
    for error, function in inside.items():
        message = error.args[0]
        maker = functions.get(getattr(getattr(message, "func", None), "id", None))
        of_model = path.parent.name == "persist" or function.name in OF_MODELS
        told = (
            says_what_to_do(error)
            or (error.func.id == "FormatError" and of_model)
            or (isinstance(message, ast.Name) and says_what_to_do(function))
            or (maker is not None and says_what_to_do(maker))
        )
        if not told:
            yield f"{path.relative_to(SOURCE)}:{error.lineno}"


def test_promise_20_every_error_in_the_source_says_what_to_do():
    paths = sorted(SOURCE.rglob("*.py"))
    assert [place for path in paths for place in find_bare_errors(path)] == []
