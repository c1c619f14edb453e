"""The compiled loops: used if they were built from the sources beside them, and missed aloud."""

import re
import shutil
from pathlib import Path

import pytest

from crowdwise import compiled

HOME = Path(compiled.__file__).parent


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
def test_they_are_there():
    assert compiled.native is not None, "build them: pip install -e . needs a C compiler"


def test_they_can_be_turned_off(monkeypatch):
    monkeypatch.setenv("CROWDWISE_NATIVE", "0")
    assert compiled.load() is None


@pytest.mark.skipif(compiled.native is None, reason="there are no compiled loops here")
class TestBuild:
    def test_every_loop_that_is_asked_for_is_there(self):
        code = "".join(path.read_text(encoding="utf-8") for path in HOME.rglob("*.py"))
        names = set(re.findall(r"compiled\.find\(\"(\w+)\"\)", code))
        assert len(names) > 5
        assert not [name for name in names if compiled.find(name) is None]

    def test_another_build_is_not_used_and_a_warning_names_the_fix(self, monkeypatch):
        monkeypatch.setattr(compiled.native, "SOURCES", 1)
        with pytest.warns(RuntimeWarning, match=r"slower numpy .* pip install --editable \."):
            assert compiled.load() is None

    def test_a_build_that_knows_no_sources_is_not_used(self, monkeypatch):
        monkeypatch.delattr(compiled.native, "SOURCES")
        with pytest.warns(RuntimeWarning, match="other sources"):
            assert compiled.load() is None

    def test_without_sources_beside_it_a_build_is_used(self, monkeypatch, tmp_path):
        monkeypatch.setattr(compiled, "__file__", str(tmp_path / "compiled.py"))
        monkeypatch.setattr(compiled.native, "SOURCES", 1)
        assert compiled.load() is compiled.native


def test_a_changed_c_file_is_another_build(tmp_path):
    for path in HOME.glob("_native*.[ch]"):
        shutil.copy(path, tmp_path)
    assert compiled.checksum(tmp_path) == compiled.checksum(HOME)
    with (tmp_path / "_native_glad.c").open("a") as file:
        file.write("\n")
    assert compiled.checksum(tmp_path) != compiled.checksum(HOME)
