"""The Makefile: what it promises is there."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")


def smoke_tests():
    return [Path(name) for name in re.search(r"^SMOKE := (.*)$", TEXT, re.MULTILINE)[1].split()]


def test_the_smoke_tests_exist():
    assert not [str(name) for name in smoke_tests() if not (ROOT / "tests" / name).is_file()]


def test_every_package_has_a_smoke_test():
    folders = {file.parent.name for file in (ROOT / "tests").glob("*/test_*.py")} - {"laws"}
    assert folders == {name.parts[0] for name in smoke_tests() if len(name.parts) > 1}


def test_every_target_says_what_it_does():
    phony = re.search(r"^\.PHONY: (.*)$", TEXT, re.MULTILINE)[1].split()
    helped = re.findall(r"^([a-z-]+):.*## [A-Z]", TEXT, re.MULTILINE)
    assert sorted(phony) == sorted(helped)


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
@pytest.mark.parametrize(
    "changed", [None, "src/crowdwise/_native_glad.c", "src/crowdwise/_native.h", "setup.py"]
)
def test_a_changed_c_file_is_compiled(tmp_path, changed):
    (tmp_path / ".ready").touch()
    flags = [f"--what-if={changed}"] * (changed is not None)
    command = ["make", "--dry-run", *flags, f"VENV={tmp_path}", str(tmp_path / ".ready")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ("pip" in done.stdout) == (changed is not None)
