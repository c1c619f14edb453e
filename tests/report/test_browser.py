"""The page in a real browser: it opens, sorts, searches, draws, and nothing gets in."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from crowdwise.annotations import Annotations
from crowdwise.report import write_report

pytest.importorskip("playwright", reason='no Playwright: pip install "crowdwise[test]"')
import page_checks

BAD = "</script><script>window.hurt=1</script><img src=x onerror='window.hurt=2'>\"'&lt;\u202e"
PHONE = {"width": 360, "height": 740}
LOOKS = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "phone": PHONE,
    "phone, dark": {**PHONE, "color_scheme": "dark"},
}


@pytest.fixture(scope="module")
def url(crowd, tmp_path_factory):
    """A report of the small crowd."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    X = np.random.RandomState(0).random_sample((160, 3))
    write_report(crowd[0], path, X=X, truth=crowd[1], title="Clips", methods=("MajorityVote",))
    return path.as_uri()


@pytest.fixture
def page(chromium, url):
    with page_checks.opened(chromium, url) as opened:
        yield opened


def column(page, table, place):
    cells = page.locator(f"[data-table={table}] > .scroll tbody tr td:nth-child({place + 1})")
    return cells.all_text_contents()


def style(page, selector, name):
    return page.locator(selector).first.evaluate(f"(node) => getComputedStyle(node).{name}")


def download(page, selector):
    """Click what saves a file: its name and its text."""
    with page.expect_download() as found:
        page.locator(selector).first.click()
    return found.value.suggested_filename, Path(found.value.path()).read_text()


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_is_wrong_with_it(chromium, url, look):
    with page_checks.opened(chromium, url, **LOOKS[look]) as page:
        assert page_checks.problems_of(page) == []


def test_dark_is_dark_and_light_is_light(chromium, url):
    with page_checks.opened(chromium, url, color_scheme="dark") as page:
        assert style(page, "body", "backgroundColor") == "rgb(17, 22, 28)"
        page.emulate_media(color_scheme="light")
        assert style(page, "body", "backgroundColor") == "rgb(255, 255, 255)"


def test_tables_sort_both_ways_and_say_so(page):
    head = page.locator("[data-table=workers] > .scroll th")
    for direction, falling in (("descending", True), ("ascending", False)):
        head.nth(2).get_by_role("button").click()
        assert head.nth(2).get_attribute("aria-sort") == direction
        found = [int(text.split("%")[0]) for text in column(page, "workers", 2)]
        assert found == sorted(found, reverse=falling)
    others = [one.get_attribute("aria-sort") for one in head.all()]
    assert others.count("none") == len(others) - 1
    assert "sorted by Accuracy, ascending" in page.locator("#said").text_content()


def test_tasks_are_found_by_name_and_by_label(page):
    count = page.locator("[data-table=tasks] .count")
    search = page.locator("[data-table=tasks] [data-search]")
    choose = page.locator("[data-table=tasks] [data-choose]")
    assert count.text_content() == "160 rows"
    search.fill("LIP 15")
    assert set(column(page, "tasks", 0)) == {"clip 15", *(f"clip {k}" for k in range(150, 160))}
    assert count.text_content() == "11 of 160 rows"
    search.fill("")
    assert choose.locator("option").all_text_contents() == ["all", "cat", "dog", "eel"]
    choose.select_option("eel")
    assert set(column(page, "tasks", 1)) == {"eel"}
    search.fill("zzz")
    assert column(page, "tasks", 0) == []


def test_pages_of_a_table_turn(page):
    first = column(page, "tasks", 0)
    assert len(first) == 25
    pager = page.locator("[data-table=tasks] .pager")
    pager.get_by_role("button").last.click()
    assert not set(first) & set(column(page, "tasks", 0))
    assert "26 to 50 of 160" in pager.text_content()


def test_a_worker_s_mistakes_are_shown_on_demand(page):
    page.locator("[data-table=workers] tbody button").first.click()
    details = page.locator(".details")
    assert "Confusion matrix of" in details.inner_text()
    assert details.locator("td").count() == 9
    assert page_checks.problems_of(page) == []


def test_marks_show_their_numbers_under_the_mouse_and_by_keys(page):
    tip = page.locator(".tip")
    assert tip.is_hidden()
    page.locator("#chart-accuracy .mark").first.hover()
    assert re.search(r"\w+: \d+% of \d+", tip.inner_text())
    page.mouse.move(1, 1)
    assert tip.is_hidden()
    page.locator("#chart-curve svg").focus()
    page.keyboard.press("ArrowRight")
    one = tip.inner_text()
    page.keyboard.press("ArrowRight")
    assert tip.inner_text() not in ("", one)
    assert page.locator("#said").text_content().startswith("forecast, 2")
    assert page.locator(".mark.here").count() == 1
    page.keyboard.press("Escape")
    assert tip.is_hidden()


def test_keys_reach_every_control_in_order(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.hash") == "#summary"
    head = "[data-table=workers] > .scroll th"
    page.locator(f"{head} button").first.focus()
    assert style(page, ":focus", "outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.locator(head).first.get_attribute("aria-sort") == "ascending"
    stops = "[...document.querySelectorAll('[tabindex]')].every((node) => node.tabIndex === 0)"
    assert page.evaluate(stops)


def test_numbers_of_a_chart_open_as_a_table(page):
    numbers = page.locator("[data-numbers=agreement]")
    numbers.locator("summary").click()
    numbers.locator("tbody tr").first.wait_for()
    assert numbers.locator("tbody tr").count() == 5
    assert page_checks.problems_of(page) == []


def test_charts_and_tables_can_be_taken_along(page):
    name, text = download(page, "[data-save=csv][data-of=agreement]")
    assert name == "agreement.csv"
    assert text.splitlines()[0] == "measure,value,low,high,tasks"
    assert len(text.splitlines()) == 6
    name, text = download(page, "[data-save-table=workers]")
    assert name == "workers.csv"
    assert len(text.splitlines()) == 7
    name, text = download(page, "[data-save=svg][data-of=curve]")
    assert name == "curve.svg"
    fills = {node.get("fill") for node in ElementTree.fromstring(text).iter()}
    assert "rgb(0, 114, 178)" in fills  # colors go along, the style sheet does not


def test_it_prints(chromium, url):
    with page_checks.opened(chromium, url, width=800) as page:
        page.emulate_media(media="print")
        assert page.locator("nav").first.is_hidden()
        assert page.locator(".controls").first.is_hidden()
        assert page.pdf().startswith(b"%PDF")


def test_hostile_names_are_inert(chromium, tmp_path):
    data = Annotations.from_dict(
        {
            f"{BAD}{i}": {f"=cmd()|{BAD}{j}": f"{BAD}{(i * j) % 3}" for j in range(5)}
            for i in range(40)
        }
    )
    path = tmp_path / "hostile.html"
    truth = {task: data.classes[0] for task in data.tasks[:9].tolist()}
    write_report(data, path, truth=truth, title=BAD, methods=("MajorityVote",))
    with page_checks.opened(chromium, path.as_uri()) as page:
        for head in page.locator("[data-table=tasks] > .scroll th button").all()[:4]:
            head.click()
        page.locator("[data-table=workers] tbody button").first.click()
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        page.wait_for_timeout(100)
        assert page.evaluate("window.hurt") is None
        assert page.evaluate("document.images.length") == 0
        assert page.evaluate("document.scripts.length") == 2
        assert page_checks.problems_of(page) == []
        name = page.locator("[data-table=workers] tbody bdi").first.get_attribute("title")
        assert name.startswith("=cmd()|</script>")
        assert "\n'=cmd()" in download(page, "[data-save-table=workers]")[1].replace('"', "")
        ElementTree.fromstring(download(page, "[data-save=svg][data-of=accuracy]")[1])


def test_an_injected_script_would_not_run(page):
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), "
        "{textContent: 'window.hurt = 3'}))"
    )
    assert page.evaluate("window.hurt") is None
    assert any("Content Security Policy" in text for text in page_checks.noticed(page))


def test_the_checks_find_what_is_wrong(page):
    page.evaluate(
        "const bad = document.createElement('div'); bad.id = 'main'; bad.textContent = 'x'; "
        "bad.style.width = '3000px'; bad.style.color = '#eee'; "
        "document.querySelector('main').append(bad, document.createElement('button'), "
        "document.createElement('h3'), document.createElement('table')); console.error('oops')"
    )
    found = " ".join(page_checks.problems_of(page))
    for words in ("console", "without a name", "outside the page", "contrast", "id twice",
                  "caption", "pixels wider"):  # fmt: skip
        assert words in found


def test_the_checks_notice_what_is_fetched_and_what_is_thrown(page):
    page.evaluate("setTimeout(() => { throw new Error('thrown'); })")
    page.evaluate("document.body.append(Object.assign(new Image(), {src: 'x.png', alt: 'x'}))")
    for _ in range(200):  # both come when the browser has time for them
        found = " ".join(page_checks.noticed(page))
        if "thrown" in found and "x.png" in found:
            return
        page.wait_for_timeout(50)
    pytest.fail(found)


def test_a_real_crowd_looks_well(chromium, real_crowd, tmp_path):
    crowd = real_crowd("bluebirds")
    path = tmp_path / "bluebirds.html"
    write_report(crowd.annotations, path, truth=crowd.truth, methods=("MajorityVote",))
    for look in LOOKS.values():
        with page_checks.opened(chromium, path.as_uri(), **look) as page:
            assert page_checks.problems_of(page) == []


@pytest.mark.parametrize("kind", ["two workers", "one class", "one label per task"])
def test_poor_data_still_look_well(chromium, tmp_path, kind):
    labels = {str(k): {"w": k % 2, "v": k % 3 % 2} for k in range(12)}
    if kind == "one class":
        labels = {task: dict.fromkeys(each, 0) for task, each in labels.items()}
    if kind == "one label per task":
        labels = {task: {"w": each["w"]} for task, each in labels.items()}
    path = tmp_path / "poor.html"
    write_report(labels, path, methods=("MajorityVote",))
    with page_checks.opened(chromium, path.as_uri()) as page:
        assert page_checks.problems_of(page) == []
