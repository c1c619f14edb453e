"""Completion: made from the parsers, and tried in a real shell."""

import shutil
import subprocess

import pytest

from crowdwise import aggregate, learn
from crowdwise.cli import COMMANDS, main
from crowdwise.cli.method import names_of


@pytest.fixture(scope="module")
def completed(tmp_path_factory):
    """What bash offers after some words; None stands for files."""
    if shutil.which("bash") is None:
        pytest.skip("there is no bash here")
    script = tmp_path_factory.mktemp("completion") / "crowdwise.bash"
    from contextlib import redirect_stdout

    with script.open("w") as file, redirect_stdout(file):
        assert main(["completion", "bash"]) == 0

    def ask(*words):
        line = " ".join(f"'{word}'" for word in words)
        code = (
            f"source '{script}'; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1};"
            '_crowdwise; printf "%s\\n" "${COMPREPLY[@]}"; complete -p crowdwise'
        )
        done = subprocess.run(
            ["bash", "--norc", "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        *offers, registered = done.stdout.splitlines()
        assert "-F _crowdwise" in registered
        assert "-o default" in registered
        return [offer for offer in offers if offer]

    return ask


def test_commands(completed):
    assert set(completed("crowdwise", "")) == {*COMMANDS, "--help", "--version"}
    assert completed("crowdwise", "agg") == ["aggregate"]
    assert completed("crowdwise", "--quiet", "wor") == ["workers"]


def test_flags_of_a_command(completed):
    assert completed("crowdwise", "fit", "v.csv", "--feature") == [
        "--features",
        "--feature-id",
        "--feature-columns",
    ]
    assert "--proba" not in completed("crowdwise", "workers", "--")
    assert completed("crowdwise", "aggregate", "--proba", "--meth") == ["--method"]


def test_values(completed):
    assert completed("crowdwise", "fit", "--method", "Spee") == ["SpeeLFC", "SpeeLFCD"]
    assert completed("crowdwise", "fit", "--method", "=", "LI") == ["LIA"]
    assert completed("crowdwise", "aggregate", "v.csv", "--method", "Maj") == ["MajorityVote"]
    assert completed("crowdwise", "agreement", "--level", "") == [
        "nominal",
        "ordinal",
        "interval",
        "ratio",
    ]


def test_words(completed):
    assert completed("crowdwise", "datasets", "in") == ["info"]
    assert completed("crowdwise", "methods", "Raykar") == ["Raykar"]
    assert completed("crowdwise", "completion", "z") == ["zsh"]


def test_files_are_left_to_the_shell(completed):
    assert completed("crowdwise", "aggregate", "") == []
    assert completed("crowdwise", "fit", "v.csv", "--features", "") == []
    assert completed("crowdwise", "fit", "v.csv", "-o", "") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells(shell, capsys):
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    for name in COMMANDS:
        assert name in out
    assert "SpeeLFC" in out
    if shutil.which(shell):
        check = subprocess.run([shell, "-n"], input=out, text=True, check=False)
        assert check.returncode == 0


def test_an_unknown_shell(fails):
    assert "'powershell'" in fails("completion", "powershell", status=2)


def test_names_are_known_without_importing():
    assert names_of("aggregate") == aggregate.__all__
    assert names_of("learn") == learn.LEARNERS
