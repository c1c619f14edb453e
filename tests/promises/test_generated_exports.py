"""Random exports of every tool are read with nothing lost; `make fuzz` reads many more."""

from pathlib import Path

import pytest
from exports import FOREIGN, WRITERS, Export, Pen, check, draw_export, read_as
from exports.check import read_one

from crowdwise import Annotations
from crowdwise.io.formats import FORMATS
from crowdwise.io.formats.refused import REFUSED

SEEDS = range(30)  # times ten exports each
TESTS = Path(__file__).parents[1] / "io" / "formats"


@pytest.mark.parametrize("seed", SEEDS)
def test_promise_00_every_record_of_an_export_is_accounted_for(seed):
    exports = [draw_export(WRITERS, 10 * seed + k) for k in range(10)]
    assert [wrong for wrong in map(check, exports) if wrong] == []


@pytest.mark.parametrize("tool", sorted(WRITERS))
def test_promise_00_a_clean_export_is_read_or_refused_by_name(tool):
    for seed in range(3):
        export = WRITERS[tool](Pen(seed))
        assert bool(export.foreign) == (tool in FOREIGN)
        assert check(export) == ""


@pytest.mark.parametrize("tool", sorted(WRITERS))
def test_promise_00_no_format_trips_over_a_foreign_export(tool):
    names = [form.name for form in FORMATS]
    assert read_as(WRITERS[tool](Pen(0, 0.2)), *names) == ""


def long(rows, **known):
    text = "\n".join(["task,worker,label", *rows, ""])
    return Export("long", "x.csv", text.encode(), **known)


@pytest.mark.parametrize(
    ("export", "says"),
    [
        (long(["1,a,x"], records=2), "2 records, but 1 annotations and 0 noted"),
        (long(["1,a,x"], records=1, clean=[("1", "a", "y")]), "lost"),
        (long(["1,a,x"], records=1, clean=[], votes=[]), "made up"),
        (long(["1,a,x"], foreign="COCO"), "read, but must be refused"),
        (long(["1,,x"], clean=[(1, 2, 3)], votes=[(1, 2, 3)], records=1), "refused, but clean"),
        (long(["1,,x"], foreign="COCO"), "refused, but not as 'COCO'"),
    ],
)
def test_the_check_finds_what_is_wrong(export, says):
    assert says in check(export)


def test_the_check_finds_tracebacks(monkeypatch):
    monkeypatch.setattr("crowdwise.io.reader.recognize_format", lambda *_: 1 / 0)
    assert "traceback: ZeroDivisionError" in check(long(["1,a,x"]))


def test_every_format_is_written_or_has_tests_of_its_own_and_every_refusal_is_written():
    readings = [read_one(WRITERS[tool](Pen(seed))) for tool in WRITERS for seed in range(3)]
    read = {one.notes[0] for one in readings if isinstance(one, Annotations)}
    names = {note.removeprefix("read as ").split(",")[0] for note in read}
    tested = {path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py")}
    assert {form.name for form in FORMATS} - names <= tested
    assert {form.name for form in REFUSED} <= FOREIGN.keys()


def test_a_seed_stands_for_one_export():
    first, again = (draw_export(WRITERS, 7) for _ in range(2))
    assert first == again
