"""Completion: made from the parsers, and tried in a real shell."""

import shutil
import subprocess
from contextlib import redirect_stdout

import pytest

from crowdwise import aggregate, datasets, embed, learn
from crowdwise.cli import COMMANDS, main
from crowdwise.cli.completion import SHELLS
from crowdwise.cli.options import method_names
from crowdwise.simulate import SETS


def in_order(names):
    """The order in which methods are listed: that of a dictionary."""
    return sorted(names, key=str.casefold)


@pytest.fixture(scope="module")
def completed(tmp_path_factory):
    """What bash offers after some words, in a folder with one file and one folder."""
    if shutil.which("bash") is None:
        pytest.skip("there is no bash here")
    folder = tmp_path_factory.mktemp("completion")
    script = folder / "script.bash"
    with script.open("w") as file, redirect_stdout(file):
        assert main(["completion", "bash"]) == 0
    place = folder / "place"
    (place / "folder").mkdir(parents=True)
    (place / "file.csv").touch()

    def ask(*words):
        line = " ".join(f"'{word}'" for word in words)
        code = (
            f"source '{script}'; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1};"
            '_shtab_crowdwise 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"; complete -p crowdwise'
        )
        done = subprocess.run(
            ["bash", "--norc", "-c", code], capture_output=True, text=True, check=True, cwd=place
        )
        *offers, registered = done.stdout.splitlines()
        assert "-F _shtab_crowdwise" in registered
        return [offer for offer in offers if offer]

    return ask


def test_commands(completed):
    assert completed("crowdwise", "") == list(COMMANDS)
    assert completed("crowdwise", "agg") == ["aggregate"]
    assert completed("crowdwise", "--quiet", "wor") == ["workers"]
    assert "--version" in completed("crowdwise", "--")


def test_flags_of_a_command(completed):
    assert completed("crowdwise", "fit", "v.csv", "--feature") == [
        "--features",
        "--feature-id",
        "--feature-columns",
    ]
    assert "--proba" not in completed("crowdwise", "workers", "--")
    assert completed("crowdwise", "aggregate", "--proba", "--meth") == ["--method"]


def test_methods_are_those_of_the_command(completed):
    methods = completed("crowdwise", "aggregate", "v.csv", "--method", "")
    assert methods == in_order(aggregate.__all__)
    assert completed("crowdwise", "fit", "--method", "") == in_order(learn.LEARNERS)
    assert completed("crowdwise", "embed", "--method", "") == in_order(embed.EMBEDDERS)
    assert completed("crowdwise", "methods", "Raykar") == ["Raykar"]
    assert completed("crowdwise", "compare", "v.csv", "--methods", "SpeeLFC") == [
        "SpeeLFC",
        "SpeeLFCD",
    ]


def test_other_names(completed):
    levels = ["nominal", "ordinal", "interval", "ratio"]
    assert completed("crowdwise", "agreement", "--level", "") == levels
    assert completed("crowdwise", "datasets", "in") == ["info"]
    assert completed("crowdwise", "datasets", "info", "") == datasets.names()
    assert completed("crowdwise", "datasets", "fetch", "labelme", "mg") == ["mgc"]
    assert completed("crowdwise", "simulate", "") == list(SETS)
    assert completed("crowdwise", "completion", "z") == ["zsh"]


def test_files_and_folders(completed):
    assert set(completed("crowdwise", "aggregate", "")) == {"folder", "file.csv"}
    assert completed("crowdwise", "fit", "v.csv", "--features", "fi") == ["file.csv"]
    assert completed("crowdwise", "predict", "m", "fi") == ["file.csv"]
    assert completed("crowdwise", "convert", "v.csv", "fi") == ["file.csv"]
    assert completed("crowdwise", "simulate", "-o", "") == ["folder"]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell(shell, capsys):
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    for name in COMMANDS:
        assert name in out
    assert "SpeeLFC" in out
    if shell != "tcsh" and shutil.which(shell):
        check = subprocess.run([shell, "-n"], input=out, text=True, check=False)
        assert check.returncode == 0


def test_an_unknown_shell(fails):
    assert "'cmd'" in fails("completion", "cmd", status=2)


def test_names_are_known_without_importing():
    assert method_names("aggregate") == in_order(aggregate.__all__)
    assert method_names("learn") == in_order(learn.LEARNERS)
