"""The pages in a real browser: labels by keyboard and by touch, and a dashboard that is live."""

import struct
import zlib

import pytest

from crowdwise.serve.actions import AddLabels, AddTasks, IssueToken
from crowdwise.serve.keys import Role

pytest.importorskip("playwright", reason='no Playwright: pip install "crowdwise[test]"')
import page_checks
from playwright.sync_api import expect

BAD = "</script><script>hurt=1</script><img src=x onerror='hurt=2'>"
PHONE = {"width": 360, "height": 740}


def problems(page, url):
    """What is wrong with a page; only the service itself may be asked for anything."""
    asked = tuple(f"requested {start}" for start in (url, f"blob:{url}"))
    found = [one for one in page_checks.noticed(page) if not one.startswith(asked)]
    found += page.evaluate(page_checks.NAMES) + page.evaluate(page_checks.OUTSIDE)
    return found + page.evaluate(page_checks.CONTRAST)


def labels_of(service, worker):
    own = service.board.labeled[worker]
    return {service.board.tasks.list[task]: label for task, label in own.items()}


def press(page, key, count):
    """Press a key, and wait for what the page then says."""
    page.keyboard.press(key)
    expect(page.locator("#count")).to_have_text(count)


def test_nothing_is_wrong_with_any_page(chromium, service, url, wait_for):
    rows = [(f"t{i}", w, "cat") for i in range(3) for w in ("ann", "bob")]
    service.ask(AddLabels("lead", [*rows, ("t0", "cid", "dog")]))
    wait_for(lambda: service.observer.plan.n_labels == 7)
    pages = (("/", "#workers table"), ("/label", "#choices button"), ("/docs", "dl"))
    for look in ({}, {**PHONE, "color_scheme": "dark"}):
        for path, ready in pages:
            with page_checks.opened(chromium, url + path, **look) as page:
                page.wait_for_selector(ready)
                assert problems(page, url) == [], (path, look)


def test_labels_by_keyboard_with_undo_and_skip(chromium, service, url):
    with page_checks.opened(chromium, f"{url}/label") as page:
        page.wait_for_selector("#choices button")
        expect(page.locator("#text")).to_have_text("sentence 0")
        page.wait_for_timeout(100)
        press(page, "2", "1 label")
        expect(page.locator("#text")).to_have_text("sentence 1")
        page.wait_for_timeout(100)
        press(page, "1", "2 labels")
        press(page, "u", "1 label")
        expect(page.locator("#text")).to_have_text("sentence 1")
        page.wait_for_timeout(100)
        press(page, "2", "2 labels")
        expect(page.locator("#text")).to_have_text("sentence 2")
        page.wait_for_timeout(100)
        page.keyboard.press("s")
        expect(page.locator("#text")).to_have_text("sentence 3")
        page.keyboard.press("9")  # there is no ninth class
    assert labels_of(service, "me") == {"t0": 1, "t1": 1}
    assert service.board.skipped["me"] == {2}


def test_promise_service_nothing_in_the_data_runs_as_code(chromium, service, url, wait_for):
    service.ask(AddTasks("lead", [(BAD, {"text": BAD})]))
    service.ask(AddLabels("lead", [(BAD, BAD, "cat"), (BAD, "bob", "dog")]))
    wait_for(lambda: service.observer.plan.n_labels == 2)
    for path, ready in (("/", "#workers table"), ("/label", "#choices button")):
        with page_checks.opened(chromium, url + path) as page:
            page.wait_for_selector(ready)
            if path == "/":
                assert BAD in page.locator("#workers").text_content()
                assert BAD[:20] in page.locator("#contested").text_content()
            assert page.evaluate("window.hurt") is None
            assert problems(page, url) == []


def test_a_token_in_the_link_signs_in_and_does_not_stay_there(chromium, service, url):
    service.ask(IssueToken("test", "root", Role.ADMIN))
    token = service.ask(IssueToken("test", "ann", Role.WORKER))["token"]
    with page_checks.opened(chromium, f"{url}/label", **PHONE) as page:
        page.wait_for_selector("#sign-in[open]")
        page.locator("#token").fill("cw_wrong")
        page.locator("#sign-in button").click()
        expect(page.locator("#sign-in-problem")).to_have_text("That token is not valid.")
        page.goto("about:blank")
        page.goto(f"{url}/label#token={token}")
        page.wait_for_selector("#choices button")
        assert token not in page.url
        assert page.locator("#who").text_content() == "ann"
        page.locator("#choices button").nth(1).click()
        expect(page.locator("#count")).to_have_text("1 label")
    assert labels_of(service, "ann") == {"t0": 1}


def test_the_dashboard_follows_and_saves(chromium, service, url):
    with page_checks.opened(chromium, url) as page:
        page.wait_for_selector("#progress .cards")
        assert page.locator("#progress .cards b").first.text_content() == "0"
        service.ask(AddLabels("lead", [("t0", "ann", "cat")]))
        expect(page.locator("#progress .cards b").first).to_have_text("1")
        page.locator("#what").select_option("labels")
        with page.expect_download() as saved:
            page.locator("#save").click()
        assert saved.value.suggested_filename == "labels.csv"


def test_pictures_of_the_project_are_shown(chromium, service, serving, tmp_path):
    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", 3, 2, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0\1\2\3" * 2)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels)
    (tmp_path / "a.png").write_bytes(png + chunk(b"IEND", b""))
    service.ask(AddTasks("lead", [("pic", {"image": "a.png"})]))
    service.ask(AddLabels("lead", [(f"t{i}", "me", "cat") for i in range(6)]))
    with (
        serving(service, images=tmp_path) as url,
        page_checks.opened(chromium, f"{url}/label") as page,
    ):
        expect(page.locator("#picture img")).to_have_js_property("naturalWidth", 3)
        assert problems(page, url) == []
