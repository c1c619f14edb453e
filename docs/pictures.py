"""Make the pictures of README and docs/labeling-project.md in a real browser.

python docs/pictures.py
"""

import os
import re
import sys
import tempfile
import threading
import time
from pathlib import Path

import uvicorn
from playwright.sync_api import Browser, sync_playwright

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "benchmarks"))
from page_checks import find_chromium  # noqa: E402

from crowdwise.report import write_report  # noqa: E402
from crowdwise.serve.app import create_app  # noqa: E402
from crowdwise.simulate import classroom  # noqa: E402

PHONE = {"viewport": {"width": 360, "height": 620}, "device_scale_factor": 1.5, "has_touch": True}
DESK = {"viewport": {"width": 1100, "height": 900}}
SCREEN = {"viewport": {"width": 1100, "height": 620}}
ASSETS = DOCS / "assets"
ROUNDS = 13  # of one label by each, so that there is something left to do
BLOCK = re.compile(r"```python\n(.*?)```", re.S)


def run_page() -> dict[str, object]:
    """The page's code up to where labels are given, and some of them."""
    names: dict[str, object] = {}
    blocks = BLOCK.findall((DOCS / "labeling-project.md").read_text())
    for block in blocks[:2]:
        exec(compile(block, "labeling-project.md", "exec"), names)
    for _ in range(ROUNDS):
        for worker in names["people"]:
            names["label_once"](worker)
    return names


def picture_project(browser: Browser) -> None:
    """The labeling page on a phone, and the dashboard."""
    service = run_page()["service"]
    server = uvicorn.Server(uvicorn.Config(create_app(service), port=0, log_level="warning"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started or service.observer.plan.n_labels < len(service.board.task):
        time.sleep(0.1)
    url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    page = browser.new_page(**PHONE)
    page.goto(f"{url}/label")
    page.wait_for_selector("#choices button")
    page.screenshot(path=ASSETS / "labeling-page.png")
    page = browser.new_page(**DESK)
    page.goto(url)
    page.wait_for_selector("#workers table")
    page.screenshot(path=ASSETS / "dashboard.png")
    server.should_exit = True
    service.close()


def picture_report(browser: Browser) -> None:
    """The first screen of a report on the labels of the demo, without their truth."""
    crowd = classroom(random_state=0)
    write_report(crowd.annotations, "report.html", title="Classroom clips")
    page = browser.new_page(**SCREEN)
    page.goto(Path("report.html").absolute().as_uri())
    page.screenshot(path=ASSETS / "report.png")


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        os.chdir(scratch)
        options = {"executable_path": find_chromium(), "args": ["--no-sandbox"]}
        browser = playwright.chromium.launch(**options)
        picture_report(browser)
        picture_project(browser)
        browser.close()


if __name__ == "__main__":
    main()
