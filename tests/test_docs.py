"""README, docs and examples run, and their generated parts are up to date."""

import importlib.util
import re
import runpy
import shlex
import sys
import types
from pathlib import Path

import pytest

from crowdwise.cli import build_parser

pytestmark = pytest.mark.usefixtures("quick_default")
ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted({*(ROOT / "examples").glob("*.py")} - {ROOT / "examples" / "demo.py"})
GENERATED = re.compile(r"<!-- ([^:>]+): made by docs/build.py -->.*?<!-- end of \1 -->", re.S)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)
# What looks like a result: a share with three digits or four, not a version and not a setting.
FIGURE = re.compile(r"(?<![\w./-])0?\.\d{3,4}(?![\w.])")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType(f"page_{page.stem.replace('-', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # so that its classes can be pickled
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S):
        exec(compile(block, page.name, "exec"), vars(module))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_examples_run(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out


@pytest.fixture(scope="module")
def build():
    pytest.importorskip("griffe", reason='no griffe: pip install "crowdwise[docs]"')
    spec = importlib.util.spec_from_file_location("docs_build", ROOT / "docs" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_generated_parts_are_up_to_date(page, build):
    assert build.refresh(page.read_text()) == page.read_text(), "run: make docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_marks_are_known(page, build):
    marks = re.findall(r"<!-- ([^:>]+): made by", page.read_text())
    assert set(marks) <= set(build.PARTS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not link.startswith("http"):
            assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_written_as_they_are_understood(page, capsys):
    text = GENERATED.sub("", page.read_text())
    for block in re.findall(r"```(?:bash|sh)\n(.*?)```", text, flags=re.S):
        for line in block.splitlines():
            program, *words = shlex.split(line, comments=True) or [""]
            if program == "crowdwise":
                try:
                    build_parser(words[0]).parse_args(words)
                except SystemExit:
                    pytest.fail(f"{line}\n{capsys.readouterr().err}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_come_from_files(page, build):
    """No result is typed: one outside of generated parts stands in a committed file."""
    typed = CODE.sub("", GENERATED.sub("", page.read_text()))
    known = {f"{value:.{n}f}".lstrip("0") for value in build.measured.figures() for n in (3, 4)}
    loose = {found.lstrip("0") for found in FIGURE.findall(typed)} - known
    assert not loose, f"not in benchmarks/results: {sorted(loose)}"


def test_every_method_says_when_it_works_and_when_it_fails(build):
    for family in build.pages.methods().values():
        for name, cls in family.items():
            text = build.pages.notes(name, cls)
            assert re.search("```(math|text)\n", text), name  # typeset, or as in the docstring
            for part in ("### When it works", "### When it fails"):
                assert part in text, (name, part)


def test_formulas_are_typeset_and_only_those_of_methods(build):
    assert set(build.pages.formulas()) <= set(build.pages.names())
    text = build.pages.notes("DawidSkene", build.pages.methods()["aggregate"]["DawidSkene"])
    assert text.startswith("```math\n")
    assert "```text" not in text


def test_a_method_without_a_formula_shows_the_one_in_its_docstring(build, monkeypatch):
    monkeypatch.setattr(build.pages, "formulas", dict)
    text = build.pages.notes("DawidSkene", build.pages.methods()["aggregate"]["DawidSkene"])
    assert "```text\nP(truth of i = k)" in text


def test_docstrings_become_markdown(build):
    text = "Like :class:`~crowdwise.io.Gold` with ``a`` and doi:10.1/x.\n\nSo::\n\n    1 + 1\n"
    assert build.pages.markdown(text) == (
        "Like `Gold` with `a` and [doi:10.1/x](https://doi.org/10.1/x).\n\n"
        "So:\n\n```text\n1 + 1\n```\n\n"
    )


def test_method_pages_show_what_was_measured(build):
    page = dict(build.pages.of_methods())["methods/DawidSkene.md"]
    assert "::: crowdwise.aggregate.dawid_skene.DawidSkene" in page
    assert "\\prod_w C^w_{k\\,y_{iw}}" in page
    assert "- its objective never falls" in page
    assert "| `bluebirds` |" in page


def test_reference_pages_list_what_is_public(build):
    pages = dict(build.pages.of_reference())
    learn = pages["reference/crowdwise.learn.md"]
    assert "[`SpeeLFC`](../methods/SpeeLFC.md)" in learn
    assert re.search(r"^::: crowdwise\.\S+\.Training$", learn, flags=re.M)
    assert not re.search(r"^::: \S+\.SpeeLFC$", learn, flags=re.M)
    assert "[`crowdwise.learn`](crowdwise.learn.md)" in pages["reference/index.md"]


def test_a_single_run_has_no_error(build):
    line = {"mean": 0.5, "error": 0.01, "runs": 2}
    assert build.measured.ours(line, 3) == "0.500 ± 0.010"
    assert build.measured.ours({**line, "runs": 1}, 3) == "0.500"


def test_pages_show_accuracies_and_what_was_published(build, monkeypatch):
    rows = [("accuracy", None), ("recall", None), ("kappa", 0.25)]
    line = {"row": "DS", "column": "set", "mean": 0.5, "error": None, "runs": 1}
    lines = [{**line, "metric": metric, "published": value} for metric, value in rows]
    stored = {"summary": lines, "settings": {"DS on set": "DawidSkene()"}}
    monkeypatch.setattr(build.measured, "stored", lambda _: stored)
    found = build.measured.figures_of.__wrapped__("a-table")
    assert [line["metric"] for _, line in found] == ["accuracy", "kappa"]
    assert {made_with for made_with, _ in found} == {"DawidSkene()"}
    assert build.measured.figures_of.__wrapped__("a-settings") == []


def test_places_are_by_value(build):
    values = {"a": 0.9, "b": 0.8, "c": 0.8, "d": 0.7}
    places = [build.measured.rank_in(values, name) for name in "abcd"]
    assert places == [1, 2, 2, 4]


def test_a_figure_belongs_to_the_embedder_or_to_the_outermost_method(build):
    known, embedders = ["DawidSkene", "Triplet", "TwoStage"], ["Triplet"]

    def whose(made_with):
        return build.measured.method_of(made_with, known, embedders)

    assert whose("DawidSkene(max_iter=5)") == "DawidSkene"
    assert whose("TwoStage(aggregator=DawidSkene())") == "TwoStage"
    assert whose("Probe(aggregator=DawidSkene(), embedder=Triplet())") == "Triplet"
    assert whose("Probe(aggregator=DawidSkene())") is None


def test_means_are_over_methods_that_can_do_all_sets(build, monkeypatch):
    values = {"one": {"a": 0.5, "b": 0.9, "c": 0.8}, "two": {"a": 0.7, "b": 0.2}}
    monkeypatch.setattr(build.measured, "by_set", lambda *_: values)
    assert build.measured.means() == [("a", pytest.approx(0.6)), ("b", pytest.approx(0.55))]
    assert [name for name, _ in build.measured.means(most=False)] == ["b", "a"]
    assert [name for name, _ in build.measured.means(["one"])] == ["b", "c", "a"]
