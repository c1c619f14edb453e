"""README, docs and examples run, and their generated parts are up to date."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S):
        exec(compile(block, page.name, "exec"), names)


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_generated_parts_are_up_to_date(page, build):
    assert build.refreshed(page.read_text()) == page.read_text(), "run: make docs"


def test_the_site_has_every_page_and_needs_no_network(build, tmp_path):
    build.build_site(tmp_path)
    for name in build.PAGES:
        text = (tmp_path / f"{name}.html").read_text()
        assert not re.search(r'(src|href)="(https?:)?//(?!doi\.org)', text)
        for link in re.findall(r'href="([\w-]+\.html)', text):
            assert (tmp_path / link).exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not link.startswith("http"):
            assert (page.parent / link).exists(), link
