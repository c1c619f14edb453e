"""The documentation's site: every link leads somewhere, and it works in a browser, from disk."""

import html
import importlib.util
import re
from pathlib import Path
from urllib.parse import unquote

import browser
import page_checks
import pytest

ROOT = Path(__file__).parent.parent
SEEN = ["index.html", "methods/DawidSkene.html", "which-method.html", "command-line.html"]
SEEN += ["results/truth-inference.html", "examples/spammers.html"]
WIDER = "document.documentElement.scrollWidth - innerWidth"
TYPE = """(() => {
  const field = document.getElementById("search");
  field.value = %r;
  field.dispatchEvent(new Event("input"));
  return [...document.querySelectorAll("#found a")].map((link) => link.href);
})()"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("markdown")
    pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location("docs_build", ROOT / "docs" / "build.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    folder = tmp_path_factory.mktemp("site")
    build.build_site(folder)
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {file: file.read_text() for file in sorted(site.rglob("*.html"))}


@pytest.fixture(scope="module")
def chromium():
    path = browser.find()
    if path is None:
        pytest.skip("no Chromium here: apt-get install chromium, or set CHROMIUM to its path")
    with browser.started(path) as found:
        yield found


def test_there_is_a_page_for_every_method_result_and_example(site):
    from crowdwise import aggregate, embed, learn

    names = [*aggregate.__all__, *learn.LEARNERS, *embed.EMBEDDERS, "LIAML", "ICED"]
    assert {file.stem for file in (site / "methods").glob("*.html")} == set(names)
    for folder, kind in (("examples", "*.py"), ("benchmarks/results", "*.md")):
        sources = {file.stem for file in (ROOT / folder).glob(kind)}
        assert {f.stem for f in (site / Path(folder).name).glob("*.html")} == sources


def test_links_lead_to_pages_and_places_that_are_there(pages):
    places = {file: set(re.findall(r' id="([^"]+)"', text)) for file, text in pages.items()}
    broken = []
    for file, text in pages.items():
        for address in re.findall(r'(?:href|src)="([^"]*)"', text):
            target, _, place = unquote(html.unescape(address)).partition("#")
            if "://" in target or target.startswith("data:"):
                continue
            aim = (file.parent / target).resolve() if target else file
            if not aim.exists() or (place and place not in places[aim]):
                broken.append((file.name, address))
    assert not broken


def test_nothing_is_fetched_from_elsewhere(pages):
    for file, text in pages.items():
        assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//', text), file


def test_every_page_has_one_title_and_its_neighbours(pages):
    for file, text in pages.items():
        assert text.count("<h1") == 1, file
        assert 'aria-current="page"' in text, file
        assert '<nav class="around"' in text, file
    assert len({re.search("<title>(.*?)</title>", text)[1] for text in pages.values()}) > 60


def test_no_mark_of_markdown_is_left(pages):
    for file, text in pages.items():
        words = re.sub(r"<(pre|code)\b.*?</\1>", "", text, flags=re.S)
        assert "```" not in words, file
        assert ":class:" not in text, file
        assert not re.search(r"^\|.*\|$", words, flags=re.M), file


@pytest.mark.parametrize("name", SEEN)
def test_pages_open_without_errors_on_screens_of_any_size(site, chromium, name):
    for width, dark in ((1400, False), (390, True)):
        with chromium.page((site / name).as_uri(), width=width, dark=dark) as page:
            own = f"asked for {site.as_uri()}"
            assert [text for text in page.problems() if not text.startswith(own)] == []
            assert page.run(WIDER) <= 0
            assert page.run(page_checks.CONTRAST) == []
            assert page.run(page_checks.NAMES) == []
            dim = page.run("getComputedStyle(document.body).backgroundColor")
            assert (dim != "rgb(255, 255, 255)") == dark


def test_search_finds_a_method_and_says_when_it_finds_nothing(site, chromium):
    with chromium.page((site / "results" / "truth-inference.html").as_uri()) as page:
        found = page.run(TYPE % "DawidSkene")
        assert found[0] == (site / "methods" / "DawidSkene.html").as_uri()
        assert page.run(TYPE % "rll")[0].endswith("methods/RLL.html")  # no table
        assert page.run(TYPE % "label studio")[0].endswith("label-studio.html")
        assert page.run(TYPE % "qqqq") == []
        assert page.run("document.querySelector('#found .none').textContent") == "Nothing found."


def test_look_and_menu_can_be_changed(site, chromium):
    with chromium.page((site / "index.html").as_uri(), width=390) as page:
        shown = "getComputedStyle(document.getElementById('nav')).display"
        assert page.run(shown) == "none"
        page.run("document.getElementById('menu').click()")
        assert page.run(shown) == "block"
        before = page.run("getComputedStyle(document.body).backgroundColor")
        page.run("document.getElementById('look').click()")
        assert page.run("getComputedStyle(document.body).backgroundColor") != before


def test_it_prints_without_navigation(site, chromium):
    with chromium.page((site / "labels.html").as_uri(), media="print") as page:
        assert page.run("document.getElementById('nav').checkVisibility()") is False
        assert page.pdf().startswith(b"%PDF")
