"""crowdwise connect: what it asks of the tool, and the message for each mistake."""

import hashlib
import json

import pytest

from crowdwise import connect
from crowdwise.cli import main

WORDS = ("connect", "label-studio")
WHERE = ("--url", "http://localhost:1", "--project", "1")
TASKS = [
    {
        "id": i,
        "data": {"text": f"animal {i}"},
        "annotations": [
            {
                "id": 10 * i + j,
                "completed_by": {"id": f"w{j}"},
                "result": [
                    {
                        "from_name": "kind",
                        "to_name": "text",
                        "type": "choices",
                        "value": {"choices": ["dog" if i == j else "cat"]},
                    }
                ],
            }
            for j in (1, 2)
        ],
        "predictions": [],
        "total_annotations": 2,
        "overlap": 1,
        "is_labeled": True,
    }
    for i in range(1, 9)
]


@pytest.fixture
def studio(monkeypatch):
    """A project of eight tasks, of which two have labels that differ."""
    monkeypatch.setenv("LABEL_STUDIO_TOKEN", "0123")
    controls = {"kind": {"type": "Choices", "to_name": ["text"], "labels": ["cat", "dog"]}}
    project = {"parsed_label_config": controls, "task_number": 8}
    sent = []

    def ask(_, method, path, body=None, **__):
        if method != "GET":
            sent.append((method, path, body))
        if path.startswith("/api/tasks?"):
            return {"tasks": json.loads(json.dumps(TASKS))}
        return project

    monkeypatch.setattr(connect.LabelStudio, "ask", ask)
    return sent


@pytest.mark.parametrize("token", ["a\nb", "t\u00f6ken", "\x1b[31m"])
def test_promise_connect_a_token_that_cannot_be_sent_is_refused(token, monkeypatch, capsys):
    monkeypatch.setenv("LABEL_STUDIO_TOKEN", token)
    assert main([*WORDS, "pull", *WHERE]) == 2
    err = capsys.readouterr().err
    assert "characters that cannot be sent" in err
    assert token not in err


@pytest.mark.usefixtures("studio")
def test_promise_connect_files_are_read_and_written_like_others(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*WORDS, "pull", *WHERE, "-o", "-"]) == 2
    assert "cannot be printed" in capsys.readouterr().err
    labels = tmp_path / "labels.csv"
    for content, said in (
        (b"", "is empty"),
        (bytes(range(128, 256)), "labels.csv"),
        (b"1,cat,0.5\n", "no column"),
        (b"task,label,confidence\n1,NA,0.5\n", "found:    'NA'"),
        (b"task,label,confidence\n1,'=cat,0.5\n", "found:    '=cat'"),
    ):
        labels.write_bytes(content)
        assert main([*WORDS, "push", *WHERE, "--labels", "labels.csv"]) == 1
        assert said in capsys.readouterr().err
    labels.write_bytes("task,label,confidence\n1,cat,0.5\n".encode("utf-16"))
    assert main([*WORDS, "push", *WHERE, "--labels", "labels.csv"]) == 0
    for content in (b"garbage\n", b"{}\n", b"[1]\n", b"\xff\n"):
        mark = hashlib.sha256(b"http://localhost:1 1").hexdigest()[:8]
        (tmp_path / f"votes.jsonl.{mark}.part").write_bytes(content)
        assert main([*WORDS, "pull", *WHERE]) == 1
        assert "not what an interrupted pull leaves" in capsys.readouterr().err


@pytest.mark.usefixtures("studio")
def test_pulls_into_a_file_that_other_commands_read(tmp_path, capsys):
    target = tmp_path / "votes.jsonl"
    assert main([*WORDS, "pull", *WHERE, "-o", str(target)]) == 0
    assert "8 tasks of project 1" in capsys.readouterr().err
    assert main(["workers", str(target), "--method", "Wawa"]) == 0
    assert "w1" in capsys.readouterr().out


def test_pushes_consensus_and_orders_the_queue(studio, capsys):
    assert main([*WORDS, "push", *WHERE, "--order"]) == 0
    (_, path, predictions), (_, _, change) = studio
    assert path == "/api/projects/1/import/predictions"
    assert [one["task"] for one in predictions] == list(range(1, 9))
    assert change["model_version"] == predictions[0]["model_version"]
    assert "8 predictions new; model version crowdwise-" in capsys.readouterr().err


def test_pushes_labels_of_a_file(studio, tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("task,label,confidence\n3,dog,.75\n")
    assert main([*WORDS, "push", *WHERE, "--labels", str(labels), "--version-name", "v1"]) == 0
    (one,) = studio[0][2]
    assert (one["task"], one["score"], one["model_version"]) == (3, 0.75, "v1")


def test_opens_tasks_whose_labels_differ(studio, capsys):
    assert main([*WORDS, "overlap", *WHERE, "--target", ".97"]) == 0
    opened = {path for _, path, body in studio if not body["is_labeled"]}
    assert {"/api/tasks/1/", "/api/tasks/2/"} <= opened
    assert "8 labeled tasks" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--token-file", "nowhere"), "nowhere cannot be read"),
        (("--labels", "LABELS"), "no column confidence"),
    ],
)
@pytest.mark.usefixtures("studio")
def test_a_mistake_is_explained(words, said, tmp_path, capsys):
    labels = tmp_path / "labels.csv"
    labels.write_text("task,label\n3,dog\n")
    named = [str(labels) if word == "LABELS" else word for word in words]
    assert main([*WORDS, "push", *WHERE, *named]) in (1, 2)
    assert said in capsys.readouterr().err


def test_a_token_is_needed_and_is_no_argument(monkeypatch, capsys):
    monkeypatch.delenv("LABEL_STUDIO_TOKEN", raising=False)
    assert main([*WORDS, "pull", *WHERE]) == 2
    assert "personal access token" in capsys.readouterr().err


@pytest.mark.usefixtures("studio")
def test_the_backend_stays_on_this_machine(capsys):
    assert main([*WORDS, "serve", *WHERE, "--host", "0.0.0.0"]) == 2
    assert "other machines" in capsys.readouterr().err
