"""README, docs and examples run, and their generated parts are up to date."""

import html
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path

import pytest

from crowdwise.cli import build_parser

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
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
def test_examples_run(script, tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.fixture(scope="module")
def build():
    pytest.importorskip("markdown")
    spec = importlib.util.spec_from_file_location("docs_build", ROOT / "docs" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def highlight(build):
    assert build  # which makes the parts of the builder importable
    return importlib.import_module("sitegen.highlight")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_generated_parts_are_up_to_date(page, build):
    assert build.refreshed(page.read_text()) == page.read_text(), "run: make docs"


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
    pages = build.method_pages
    for family in pages.methods().values():
        for name, cls in family.items():
            text = pages.notes(build.Docstring.of(cls), name)
            for part in ("```maths\n", "### When it works", "### When it fails"):
                assert part in text, (name, part)


def test_method_pages_are_made_of_the_docstring(build):
    cls = build.method_pages.methods()["aggregate"]["DawidSkene"]
    page = build.method_pages.page("aggregate", "DawidSkene", cls)
    assert "- **smoothing** : *float or array" in page
    assert "- **confusion\\_** : *ndarray of shape" in page
    assert "[doi:10.2307/2346806](https://doi.org/10.2307/2346806)" in page
    assert "∝ prior[k] · ∏ over w of" in page
    assert "| `bluebirds` |" in page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_colours_change_no_letter_of_the_code(page, highlight):
    for language, code in re.findall(r"```(python|bash|sh|text)\n(.*?)```", page.read_text(), re.S):
        painted = highlight.block(code, language)
        assert html.unescape(re.sub("<[^>]+>", "", painted)) == code


def test_python_is_painted(highlight):
    painted = highlight.python('if x < 1:  # "why"\n    print("a" if y else f"{z}")\n')
    assert '<span class="k">if</span> x &lt; <span class="n">1</span>' in painted
    assert '<span class="c"># &quot;why&quot;</span>' in painted
    assert '<span class="b">print</span>(<span class="s">&quot;a&quot;</span>' in painted
    assert highlight.python("(") == "("


def test_places_are_by_value(build):
    values = {"a": 0.9, "b": 0.8, "c": 0.8, "d": 0.7}
    places = [build.crowds.rank_in(values, name) for name in "abcd"]
    assert places == [1, 2, 2, 4]


def test_a_figure_belongs_to_the_embedder_or_to_the_outermost_method(build):
    known, embedders = ["DawidSkene", "Triplet", "TwoStage"], ["Triplet"]

    def whose(made_with):
        return build.benched.method_of(made_with, known, embedders)

    assert whose("DawidSkene(max_iter=5)") == "DawidSkene"
    assert whose("TwoStage(aggregator=DawidSkene())") == "TwoStage"
    assert whose("Probe(aggregator=DawidSkene(), embedder=Triplet())") == "Triplet"
    assert whose("Probe(aggregator=DawidSkene())") is None


def test_means_are_over_methods_that_can_do_all_sets(build, monkeypatch):
    values = {"one": {"a": 0.5, "b": 0.9, "c": 0.8}, "two": {"a": 0.7, "b": 0.2}}
    monkeypatch.setattr(build.crowds, "by_set", lambda *_: values)
    assert build.crowds.means() == [("a", pytest.approx(0.6)), ("b", pytest.approx(0.55))]
    assert [name for name, _ in build.crowds.means(most=False)] == ["b", "a"]
    assert [name for name, _ in build.crowds.means(["one"])] == ["b", "c", "a"]
