"""The documentation's site: every link leads somewhere, and it works in a browser, from disk."""

import html
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest
from filelock import FileLock

pytest.importorskip("material", reason='no MkDocs: pip install "crowdwise[docs]"')
pytest.importorskip("torch")

ROOT = Path(__file__).parent.parent
SEEN = ["index.html", "methods/DawidSkene.html", "which-method.html", "formulas.html"]
SEEN += ["results/truth-inference.html", "examples/spammers.html"]
SEEN += ["reference/crowdwise.aggregate.html"]


@pytest.fixture(scope="module")
def site(tmp_path_factory, worker_id):
    """The site, built once, however many processes run these tests."""
    root = tmp_path_factory.getbasetemp()
    folder = (root if worker_id == "master" else root.parent) / "site"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            build(folder)
    return folder


def build(folder):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    done = subprocess.run(
        [*command, "--site-dir", str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def pages(site):
    found = {file: file.read_text() for file in sorted(site.rglob("*.html"))}
    return {file: text for file, text in found.items() if file.name != "404.html"}


def test_there_is_a_page_for_every_method_result_and_example(site):
    from crowdwise import aggregate, embed, learn

    names = {*aggregate.__all__, *learn.LEARNERS, *embed.EMBEDDERS, "LIAML", "ICED"}
    assert stems(site / "methods") == names
    assert stems(site / "examples") == {file.stem for file in (ROOT / "examples").glob("*.py")}
    results = (ROOT / "benchmarks" / "results").glob("*.md")
    assert stems(site / "results") == {file.stem for file in results}


def stems(folder):
    return {file.stem for file in folder.glob("*.html")} - {"index"}


def test_the_api_has_parameters_attributes_examples_and_references(site):
    text = (site / "methods" / "DawidSkene.html").read_text()
    for part in ("<code>smoothing</code>", "<code>confusion_</code>", "References",
                 'href="https://doi.org/10.2307/2346806"', "Dirichlet prior"):  # fmt: skip
        assert part in text, part
    assert "<math" in text
    assert "The maths" not in text


def test_formulas_are_typeset(pages):
    found = {file: re.findall("<math.*?</math>", text, flags=re.S) for file, text in pages.items()}
    for file, formulas in found.items():
        assert not [one for one in formulas if "\\" in one], f"unknown to latex2mathml: {file}"
    text = next(text for file, text in pages.items() if file.name == "formulas.html")
    assert "<mi>&#x003C0;</mi><mo>&#x0223C;</mo><mtext>Dirichlet</mtext>" in text
    assert '<p><span class="math">' in text  # a formula at the start of a line is still inline


def test_links_lead_to_pages_and_places_that_are_there(pages):
    places = {file: set(re.findall(r' id="([^"]+)"', text)) for file, text in pages.items()}
    broken = []
    for file, text in pages.items():
        for address in re.findall(r'(?:href|src)="([^"]*)"', text):
            target, _, place = unquote(html.unescape(address)).partition("#")
            if "://" in target or target.startswith(("data:", "javascript:")):
                continue
            aim = (file.parent / target).resolve() if target else file
            if not aim.exists() or (
                place and not target.endswith(".svg") and place not in places[aim]
            ):
                broken.append((file.name, address))
    assert not broken


@pytest.mark.parametrize(
    ("page", "aim"),
    [
        ("which-method.html", 'href="methods/DawidSkene.html"><code>DawidSkene</code>'),
        ("embedding.html", 'href="examples/embedding.html">examples/embedding.py'),
        ("results/index.html", 'href="truth-inference.html">Every aggregator'),
        ("methods/DawidSkene.html", 'href="../results/truth-inference.html">Every aggregator'),
        ("results/iced-figure2.html", 'src="iced-figure2.svg"'),
    ],
)
def test_files_of_the_repository_are_linked_as_pages(site, page, aim):
    assert aim in (site / page).read_text()


def test_nothing_is_fetched_from_elsewhere(pages):
    for file, text in pages.items():
        assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//', text), file


def test_every_page_has_one_title(pages):
    for file, text in pages.items():
        assert text.count("<h1") == 1, file
    assert len({re.search("<title>(.*?)</title>", text)[1] for text in pages.values()}) > 100


def test_no_mark_of_markdown_is_left(pages):
    for file, text in pages.items():
        words = re.sub(r"<(pre|code|script)\b.*?</\1>", "", text, flags=re.S)
        assert "```" not in words, file
        assert "$`" not in words, file
        assert ":class:" not in text, file
        assert not re.search(r"^\|.*\|$", words, flags=re.M), file


@pytest.mark.parametrize("name", SEEN)
def test_pages_open_without_errors_on_screens_of_any_size(site, chromium, name):
    import page_checks

    own = f"requested {site.as_uri()}"
    for look in ({"width": 1400}, {"width": 390, "color_scheme": "dark"}):
        with page_checks.opened(chromium, (site / name).as_uri(), **look) as page:
            noticed = page_checks.noticed(page)
            assert [one for one in noticed if not one.startswith(own)] == []
            assert f"{own}/assets/site.css" in noticed
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            assert page.evaluate(page_checks.CONTRAST) == []
            paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (paper != "rgb(255, 255, 255)") == ("color_scheme" in look)


def test_search_finds_a_method_and_says_when_it_finds_nothing(site, chromium):
    import page_checks
    from playwright.sync_api import expect

    with page_checks.opened(chromium, (site / "results/truth-inference.html").as_uri()) as page:
        field, found = page.locator(".md-search__input"), page.locator(".md-search-result__link")
        field.click()
        for words, aim in (
            ("DawidSkene", "methods/DawidSkene.html"),
            ("rll", "methods/RLL.html"),
            ("label studio", "label-studio.html"),
        ):
            field.fill("")
            field.press_sequentially(words)
            expect(found.first).to_have_attribute("href", re.compile(aim))
        field.fill("")
        field.press_sequentially("qqqq")
        page.get_by_text("No matching documents").wait_for()


def test_look_and_menu_can_be_changed(site, chromium):
    import page_checks

    with page_checks.opened(chromium, (site / "index.html").as_uri(), width=390) as page:
        entry = page.get_by_role("link", name="Which method should I use?").first
        assert entry.bounding_box()["x"] < 0
        page.locator('.md-header__button[for="__drawer"]').click()
        page.wait_for_timeout(500)  # it slides in
        assert entry.bounding_box()["x"] >= 0
    with page_checks.opened(chromium, (site / "index.html").as_uri()) as page:
        before = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.get_by_title("Switch to dark mode").click()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_it_prints_without_navigation(site, chromium):
    import page_checks

    with page_checks.opened(chromium, (site / "labels.html").as_uri()) as page:
        page.emulate_media(media="print")
        assert page.locator(".md-sidebar--primary").is_hidden()
        assert page.locator("h1").is_visible()
        assert page.pdf().startswith(b"%PDF")
