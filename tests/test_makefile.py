"""The Makefile: what it promises is there."""

import re
from pathlib import Path

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
