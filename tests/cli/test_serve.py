"""crowdwise serve: what it refuses, and what it does once and ends."""

import pytest

pytest.importorskip("fastapi", reason='no FastAPI: pip install "crowdwise[serve]"')

from crowdwise.cli import main


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.csv").write_text("task,text,gold\na,one,yes\nb,two,\n")
    (tmp_path / "votes.csv").write_text("task,worker,label\na,ann,yes\nb,ann,no\nb,bob,no\n")
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe{}")
    return tmp_path


def run(capsys, *words):
    status = main(["serve", *words])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.fixture
def serve_once(monkeypatch):
    """What would be served, without listening."""
    served = []
    monkeypatch.setattr(
        "crowdwise.serve.start.uvicorn.Server.run", lambda self, *_: served.append(self.config)
    )
    return served


def test_labels_and_tasks_begin_a_project(here, capsys, serve_once):
    status, _, err = run(capsys, "--project", "votes.csv", "--title", "Animals")
    assert (status, err) == (0, "2 tasks, 3 labels, 2 classes\nread as long\n")
    more = run(capsys, "--project", "tasks.csv", "--classes", "yes,no,maybe")
    kept = "2 tasks stored before with other content, which is kept"
    assert more[::2] == (0, f"2 tasks, 3 labels, 3 classes; {kept}\n")
    again = run(capsys, "--project", "votes.csv")[2]
    assert again == "2 tasks, 3 labels, 3 classes\nread as long\n"
    assert [config.host for config in serve_once] == ["127.0.0.1"] * 3
    assert (here / "crowdwise.db").is_file()


@pytest.mark.usefixtures("here")
def test_tokens_come_before_other_addresses(capsys, serve_once):
    start = ("--project", "tasks.csv", "--classes", "yes,no", "--host", "0.0.0.0")
    status, _, err = run(capsys, *start)
    assert status == 2
    assert "there are no tokens" in err
    assert run(capsys, "--token", "ann:worker")[0] == 2  # the first has to be an admin's
    status, out, _ = run(capsys, "--token", "ann:admin")
    assert status == 0
    assert out.startswith("cw_")
    assert run(capsys, *start)[0] == 0
    assert serve_once[0].host == "0.0.0.0"


@pytest.mark.usefixtures("serve_once")
def test_a_log_is_written_and_replayed(here, capsys):
    run(capsys, "--project", "votes.csv")
    assert run(capsys, "--audit", "log.jsonl")[0] == 0
    status, _, err = run(capsys, "--replay", "log.jsonl", "--database", "sqlite:///b.db")
    assert (status, err) == (0, "6 events replayed: 3 labels of 2 tasks\n")
    assert run(capsys, "--audit", "-", "--database", "sqlite:///b.db")[1] == (
        here / "log.jsonl"
    ).read_text(encoding="utf-8")
    assert run(capsys, "--replay", "log.jsonl")[0] == 1  # not into a database that has events


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--project", "tasks.csv"), "The project has 1 class"),
        (("--project", "none.csv"), "none.csv"),
        (("--database", "mysql://x"), "sqlite:///votes.db or postgresql://"),
        (
            ("--project", "tasks.csv", "--classes", "yes,no", "--target", "2"),
            "--target: '2' is not",
        ),
        (("--token", "ann:boss"), "NAME:ROLE"),
        (("--replay", "none.jsonl"), "none.jsonl cannot be read"),
        (("--database", "sqlite:///tasks.csv"), "tasks.csv cannot be the database"),
        (("--replay", "bytes.jsonl"), "bytes.jsonl cannot be read"),
    ],
)
def test_mistakes_are_explained(here, capsys, serve_once, words, message):
    status, _, err = run(capsys, *words)
    assert status in (1, 2)
    assert message in err
    assert not serve_once
    assert (here / "tasks.csv").read_text().startswith("task,text")
