"""The page in a real browser: it opens, sorts, searches, draws, and nothing gets in."""

import re
from xml.etree import ElementTree

import numpy as np
import page_checks
import pytest

from crowdwise.annotations import Annotations
from crowdwise.report import write_report

BAD = "</script><script>window.hurt=1</script><img src=x onerror='window.hurt=2'>\"'&lt;\u202e"
LOOKS = {
    "light": {"width": 1200},
    "dark": {"width": 1200, "dark": True},
    "phone": {"width": 360, "height": 740},
    "phone, dark": {"width": 360, "height": 740, "dark": True},
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
    with chromium.page(url) as opened:
        yield opened


def column(page, table, place):
    rows = f'[...document.querySelectorAll("[data-table={table}] tbody tr")]'
    return page.run(f"{rows}.map((row) => row.cells[{place}].textContent)")


def click(page, selector):
    page.run(f"document.querySelector({selector!r}).click()")


def wait(page, milliseconds=100):
    page.run(f"new Promise((done) => setTimeout(done, {milliseconds}))")


def count(page, table):
    return page.run(f"document.querySelector('[data-table={table}] .count').textContent")


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_is_wrong_with_it(chromium, url, look):
    with chromium.page(url, **LOOKS[look]) as page:
        assert page_checks.problems_of(page) == []


def test_dark_is_dark_and_light_is_light(chromium, url):
    paper = "getComputedStyle(document.body).backgroundColor"
    with chromium.page(url, dark=True) as page:
        assert page.run(paper) == "rgb(17, 22, 28)"
        page.look(dark=False)
        assert page.run(paper) == "rgb(255, 255, 255)"


def test_tables_sort_both_ways_and_say_so(page):
    first = "[data-table=workers] th:nth-child(3) button"
    click(page, first)
    found = [int(text.split("%")[0]) for text in column(page, "workers", 2)]
    assert found == sorted(found, reverse=True)
    aria = "document.querySelector('[data-table=workers] th:nth-child(3)').ariaSort"
    assert page.run(aria) == "descending"
    click(page, first)
    assert page.run(aria) == "ascending"
    found = [int(text.split("%")[0]) for text in column(page, "workers", 2)]
    assert found == sorted(found)
    others = "[...document.querySelectorAll('[data-table=workers] th')].map((th) => th.ariaSort)"
    assert page.run(others).count("none") == len(page.run(others)) - 1
    assert "sorted by Accuracy, ascending" in page.run(
        "document.querySelector('#said').textContent"
    )


def test_tasks_are_found_by_name_and_by_label(page):
    assert count(page, "tasks") == "160 rows"
    search = "document.querySelector('[data-table=tasks] [data-search]')"
    page.run(f"{search}.value = 'LIP 15'; {search}.dispatchEvent(new Event('input'))")
    assert set(column(page, "tasks", 0)) == {"clip 15", *(f"clip {k}" for k in range(150, 160))}
    assert count(page, "tasks") == "11 of 160 rows"
    page.run(f"{search}.value = ''; {search}.dispatchEvent(new Event('input'))")
    choose = "document.querySelector('[data-table=tasks] [data-choose]')"
    options = page.run(f"[...{choose}.options].map((option) => option.textContent)")
    assert options == ["all", "cat", "dog", "eel"]
    page.run(f"{choose}.selectedIndex = 3; {choose}.dispatchEvent(new Event('change'))")
    assert set(column(page, "tasks", 1)) == {"eel"}
    page.run(f"{search}.value = 'zzz'; {search}.dispatchEvent(new Event('input'))")
    assert column(page, "tasks", 0) == []


def test_pages_of_a_table_turn(page):
    first = column(page, "tasks", 0)
    assert len(first) == 25
    click(page, "[data-table=tasks] .pager button:last-child")
    second = column(page, "tasks", 0)
    assert not set(first) & set(second)
    assert "26 to 50 of 160" in page.run(
        "document.querySelector('[data-table=tasks] .pager').textContent"
    )


def test_a_worker_s_mistakes_are_shown_on_demand(page):
    click(page, "[data-table=workers] tbody button")
    told = page.run("document.querySelector('.details').innerText")
    assert "takes for what" in told
    assert page.run("document.querySelectorAll('.details td').length") == 9
    assert page_checks.problems_of(page) == []


def test_marks_tell_their_numbers_under_the_mouse_and_by_keys(page):
    box = page.run(
        "(() => { const mark = document.querySelector('#chart-accuracy .mark'); "
        "mark.scrollIntoView({block: 'center', behavior: 'instant'}); "
        "const box = mark.getBoundingClientRect(); "
        "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    wait(page)  # scrolling hides what is told
    tip = "document.querySelector('.tip')"
    assert page.run(f"{tip}.hidden")
    page.hover(*box)
    assert not page.run(f"{tip}.hidden")
    assert re.search(r"\w+: \d+% of \d+", page.run(f"{tip}.textContent"))
    page.hover(1, 1)
    assert page.run(f"{tip}.hidden")
    page.run("document.querySelector('#chart-curve svg').focus()")
    page.press("ArrowRight")
    one = page.run(f"{tip}.textContent")
    page.press("ArrowRight")
    assert page.run(f"{tip}.textContent") not in ("", one)
    assert page.run("document.querySelector('#said').textContent").startswith("forecast, 2")
    assert page.run("document.querySelectorAll('.mark.here').length") == 1
    page.press("Escape")
    assert page.run(f"{tip}.hidden")


def test_keys_reach_every_control_in_order(page):
    page.press("Tab")
    assert page.run("document.activeElement.textContent") == "Skip to the report"
    page.press("Tab")
    assert page.run("document.activeElement.hash") == "#summary"
    page.run("document.querySelector('[data-table=workers] th button').focus()")
    assert page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.press("Enter")
    assert page.run("document.querySelector('[data-table=workers] th').ariaSort") == "ascending"
    stops = "[...document.querySelectorAll('[tabindex]')].every((node) => node.tabIndex === 0)"
    assert page.run(stops)


def test_numbers_of_a_chart_open_as_a_table(page):
    page.run("document.querySelector('[data-numbers=agreement]').open = true")
    wait(page)
    rows = page.run("document.querySelectorAll('[data-numbers=agreement] tbody tr').length")
    assert rows == 5
    assert page_checks.problems_of(page) == []


def saved(page, folder, name):
    """Wait for a file that the page saves."""
    for _ in range(60):
        if (folder / name).exists():
            return (folder / name).read_text()
        wait(page, 50)
    raise AssertionError(f"{name} was not saved")


def test_charts_and_tables_can_be_taken_along(page, tmp_path):
    page.save_to(tmp_path)
    click(page, "[data-save=csv][data-of=agreement]")
    lines = saved(page, tmp_path, "agreement.csv").splitlines()
    assert lines[0] == "measure,value,low,high,tasks"
    assert len(lines) == 6
    click(page, "[data-save-table=workers]")
    assert len(saved(page, tmp_path, "workers.csv").splitlines()) == 7
    click(page, "[data-save=svg][data-of=curve]")
    picture = ElementTree.fromstring(saved(page, tmp_path, "curve.svg"))
    fills = {node.get("fill") for node in picture.iter()}
    assert "rgb(0, 114, 178)" in fills  # colours go along, the style sheet does not


def test_it_prints(chromium, url):
    with chromium.page(url, width=800, media="print") as page:
        hidden = "getComputedStyle(document.querySelector('nav')).display"
        assert page.run(hidden) == "none"
        assert page.run("getComputedStyle(document.querySelector('.controls')).display") == "none"
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
    with chromium.page(path.as_uri()) as page:
        for th in range(1, 5):
            click(page, f"[data-table=tasks] th:nth-child({th}) button")
        click(page, "[data-table=workers] tbody button")
        page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        wait(page)
        assert page.run("window.hurt") is None
        assert page.run("document.images.length") == 0
        assert page.run("document.scripts.length") == 2
        assert page_checks.problems_of(page) == []
        name = page.run("document.querySelector('[data-table=workers] tbody bdi').title")
        assert name.startswith("=cmd()|</script>")
        page.save_to(tmp_path)
        click(page, "[data-save-table=workers]")
        assert "\n'=cmd()" in saved(page, tmp_path, "workers.csv").replace('"', "")
        click(page, "[data-save=svg][data-of=accuracy]")
        ElementTree.fromstring(saved(page, tmp_path, "accuracy.svg"))


def test_an_injected_script_would_not_run(chromium, url):
    with chromium.page(url) as page:
        page.run(
            "document.body.append(Object.assign(document.createElement('script'), "
            "{textContent: 'window.hurt = 3'}))"
        )
        assert page.run("window.hurt") is None
        assert any("Content Security Policy" in text for text in page.problems())


def test_the_checks_find_what_is_wrong(chromium, url):
    with chromium.page(url) as page:
        page.run(
            "const bad = document.createElement('div'); bad.id = 'main'; bad.textContent = 'x'; "
            "bad.style.width = '3000px'; bad.style.color = '#eee'; "
            "document.querySelector('main').append(bad, document.createElement('button'), "
            "document.createElement('h3'), document.createElement('table')); console.error('oops')"
        )
        told = " ".join(page_checks.problems_of(page))
    for words in ("console", "without a name", "outside the page", "contrast", "id twice",
                  "caption", "pixels wider"):  # fmt: skip
        assert words in told


def test_a_real_crowd_looks_well(chromium, real_crowd, tmp_path):
    crowd = real_crowd("bluebirds")
    path = tmp_path / "bluebirds.html"
    write_report(crowd.annotations, path, truth=crowd.truth, methods=("MajorityVote",))
    for look in LOOKS.values():
        with chromium.page(path.as_uri(), **look) as page:
            assert page_checks.problems_of(page) == []


@pytest.mark.parametrize("kind", ["two workers", "one class", "one label a task"])
def test_poor_data_still_look_well(chromium, tmp_path, kind):
    labels = {str(k): {"w": k % 2, "v": k % 3 % 2} for k in range(12)}
    if kind == "one class":
        labels = {task: dict.fromkeys(each, 0) for task, each in labels.items()}
    if kind == "one label a task":
        labels = {task: {"w": each["w"]} for task, each in labels.items()}
    path = tmp_path / "poor.html"
    write_report(labels, path, methods=("MajorityVote",))
    with chromium.page(path.as_uri()) as page:
        assert page_checks.problems_of(page) == []
