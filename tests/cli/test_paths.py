"""What a command reads is still there when it is done."""

import pytest

from crowdwise.cli import main

HERE = {
    "annotations": ("aggregate", "votes.csv", "-o", "votes.csv"),
    "another spelling": ("workers", "votes.csv", "-o", "../{folder}/votes.csv"),
    "a link": ("agreement", "votes.csv", "-o", "link.csv"),
    "a page": ("report", "votes.csv", "-o", "votes.csv"),
    "truth": ("report", "votes.csv", "--truth", "truth.csv", "-o", "truth.csv"),
    "gold": ("aggregate", "votes.csv", "--gold", "truth.csv", "-o", "truth.csv"),
    "gold file": ("aggregate", "votes.csv", "--gold-file", "truth.csv", "-o", "truth.csv"),
    "compared": ("compare", "votes.csv", "--truth", "truth.csv", "-o", "truth.csv"),
    "fit": ("fit", "votes.csv", "--features", "X.csv", "-o", "X.csv"),
    "embed": ("embed", "votes.csv", "--features", "X.csv", "-o", "e.csv", "--model", "X.csv"),
    "predict": ("predict", "model", "X.csv", "-o", "model"),
    "folder": ("aggregate", ".", "-o", "votes.csv"),
    "converted": ("convert", "votes.csv", "votes.csv"),
    "convert": ("convert", "votes.csv", "truth.csv", "--gold-file", "truth.csv"),
}


@pytest.fixture
def home(files, monkeypatch):
    (files.folder / "model").write_text("no model")
    (files.folder / "link.csv").symlink_to(files.votes)
    monkeypatch.chdir(files.folder)
    return files.folder


@pytest.mark.parametrize("words", HERE.values(), ids=HERE)
def test_an_input_is_never_overwritten(words, home, fails):
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    message = fails(*(word.format(folder=home.name) for word in words), status=2)
    assert "is an input, and would be overwritten" in message
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before


@pytest.mark.parametrize(
    "words",
    [
        ("aggregate", "votes.csv", "-o", "labels.csv"),
        ("aggregate", "votes.csv", "-o", "/dev/null"),
        ("aggregate", "votes.csv", "-o", "-"),
    ],
    ids=["new", "device", "screen"],
)
@pytest.mark.usefixtures("home")
def test_other_outputs_are_written(words):
    assert main([*words, "--quiet"]) == 0


@pytest.mark.usefixtures("home")
def test_an_old_result_is_replaced():
    words = ["aggregate", "votes.csv", "-o", "labels.csv", "--quiet"]
    assert main(words) == main(words) == 0


def test_a_page_in_the_folder_that_is_read_is_replaced(files, tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "votes.csv").write_bytes(files.votes.read_bytes())
    words = ["report", str(inside), "-o", str(inside / "page.html"), "--quiet"]
    words += ["--method", "MajorityVote"]
    assert main(words) == main(words) == 0


@pytest.mark.parametrize("path", ["x" * 300, "a\0b"], ids=["long", "nul"])
def test_what_can_be_no_path_is_no_bug(path, fails):
    fails("aggregate", path, "-o", "labels.csv")


@pytest.mark.parametrize("title", ["x" * 300, "~draft", "nul\0"], ids=["long", "home", "nul"])
@pytest.mark.usefixtures("home")
def test_what_is_no_path_is_not_looked_for(title):
    assert main(["report", "votes.csv", "-o", "page.html", "--title", title, "--quiet"]) == 0


@pytest.mark.parametrize("flags", [("fit", "-o", "-"), ("embed", "-o", "-")], ids=["fit", "embed"])
def test_what_is_no_text_does_not_go_to_the_screen(flags, home, fails):
    command, *rest = flags
    message = fails(command, "votes.csv", "--features", "X.csv", *rest, status=2)
    assert "cannot be printed" in message
    assert not (home / "-").exists()


@pytest.mark.parametrize("output", ["no/such/folder/labels.csv", "labels.txt"])
@pytest.mark.parametrize(
    "words",
    [
        ("aggregate", "unread.csv"),
        ("workers", "unread.csv"),
        ("agreement", "unread.csv"),
        ("compare", "unread.csv"),
        ("plan", "unread.csv"),
        ("judges", "unread.csv"),
        ("predict", "unread", "unread.csv"),
    ],
    ids=lambda words: words[0],
)
def test_an_output_that_cannot_be_written_is_refused_before_any_work(words, output, fails):
    message = fails(*words, "-o", output, status=2 if output.endswith(".txt") else 1)
    assert "written" in message
    assert "unread" not in message
