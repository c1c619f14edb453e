"""The page as a file: whole, self-contained, and safe."""

import base64
import hashlib
import html
import html.parser
import json
import re

import pytest

from crowdwise.annotations import Annotations
from crowdwise.report import gather, to_html
from crowdwise.simulate import simulate_crowd

VOID = {"meta", "br", "input", "link", "img", "hr"}


class Outline(html.parser.HTMLParser):
    """Checks that elements close as they opened, and collects them."""

    def __init__(self, text):
        super().__init__()
        self.open, self.found = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(crowd):
    return to_html(gather(crowd[0], truth=crowd[1], title="Clips <of> cats"))


def test_it_is_well_formed_and_has_every_section(page):
    outline = Outline(page)
    sections = [own["id"] for tag, own in outline.found if tag == "section"]
    assert sections == ["summary", "data", "agreement", "labels", "workers", "pairs", "classes",
                        "curve", "plan", "methods", "about"]  # fmt: skip
    charts = {own["id"] for tag, own in outline.found if tag == "figure"}
    assert charts >= {
        f"chart-{name}"
        for name in ("per-task", "per-worker", "agreement", "confidence", "task-map", "accuracy",
                     "worker-map", "drift", "pairs", "balance", "confusion", "curve", "held-out",
                     "truth")
    }  # fmt: skip


def test_it_asks_for_nothing_outside_itself(page):
    for tag, own in Outline(page).found:
        assert "src" not in own, tag
        assert not own.get("href", "#").startswith(("http", "//")), own
        assert not any(key.startswith("on") for key in own), own
        assert "style" not in own, own
    style = re.search(r"<style>(.*?)</style>", page, re.S).group(1)
    assert "url(" not in style
    assert "@import" not in style


def test_only_its_own_script_and_style_may_run(page):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page).group(1)
    policy = html.unescape(policy)
    assert "default-src 'none'" in policy
    for tag in ("style", "script"):
        body = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
        assert len(body) == 1
        digest = base64.b64encode(hashlib.sha256(body[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_its_data_are_those_of_the_facts(page, crowd):
    block = re.search(r'<script type="application/json" id="facts">(.*?)</script>', page, re.S)
    found = json.loads(block.group(1))
    assert found["classes"] == ["cat", "dog", "eel"]
    names = found["tables"]["tasks"]["columns"][0]["values"]
    assert sorted(names) == sorted(crowd[0].tasks.tolist())
    assert len(found["confusion"]) == 6
    assert found["charts"]["curve"]["columns"][0] == "labels per task"


def test_the_title_is_text(page):
    assert "<h1><bdi>Clips &lt;of&gt; cats</bdi></h1>" in page
    assert "<of>" not in page


def test_hostile_names_stay_text():
    bad = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    data = Annotations.from_dict(
        {f"{bad}{i}": {f"{bad}w{j}": f"{bad}{(i + j) % 3}" for j in range(4)} for i in range(25)}
    )
    text = to_html(gather(data, truth={f"{bad}1": f"{bad}0"}, title=bad))
    tags = [tag for tag, _ in Outline(text).found]
    assert "img" not in tags
    assert tags.count("script") == 2
    assert "onerror" not in {key for _, own in Outline(text).found for key in own}


def test_a_hundred_thousand_annotations_fit_into_five_megabytes():
    crowd = simulate_crowd(20_000, 400, 5, 5, random_state=0)
    text = to_html(gather(crowd.annotations, method="MajorityVote", methods=()))
    assert len(text.encode()) < 5e6


def test_a_real_crowd(real_crowd):
    crowd = real_crowd("mgc")
    text = to_html(gather(crowd.annotations, truth=crowd.truth, methods=("MajorityVote",)))
    assert "2 of 44 workers answer as if at random: “" in text
    Outline(text)
