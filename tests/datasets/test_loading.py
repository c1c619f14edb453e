"""Loading a set that exists nowhere but here: what is logged, downloaded, renamed and kept."""

import logging
import re
import subprocess
import sys

import pytest

from crowdwise import datasets, progress
from crowdwise.datasets import registry
from crowdwise.datasets.loading import megabytes
from crowdwise.errors import DownloadError, ParameterError

LABELS = b"item,worker,label\n7,ann,1\n7,bob,0\n9,bob,2\n12,ann,0\n9,cy,2\n"
TRUTH = b"item,truth\n7,1\n9,2\n99,0\n"

pytestmark = pytest.mark.usefixtures("cache", "tiny")


@pytest.fixture
def tiny(shelf, monkeypatch):
    """A set of two files on a server, and nothing else; its registry can be changed."""
    files = {}
    for path, content in (("label.csv", LABELS), ("truth.csv", TRUTH)):
        file = shelf.put(path, content)
        files[path] = {"size": file.size, "sha256": file.sha256}
    row = {"title": "Tiny", "about": "For tests.", "parser": "fact_eval", "workers": "people"}
    row |= {"files": ["here:*"], "counts": {"tasks": 3}, "citation": ["Somebody (2020)."]}
    source = {"base": f"{shelf.address}/", "license": "not stated", "citation": "Else (2021)."}
    tables = {"sources": {"here": {**source, "files": files}}, "sets": {"tiny": row}}
    monkeypatch.setattr(registry, "_registry", lambda: tables)
    registry.info.cache_clear()
    yield tables
    registry.info.cache_clear()


def test_one_line_gives_the_crowd():
    crowd = datasets.load("tiny")
    assert isinstance(crowd, datasets.Crowd)
    rows = crowd.annotations.to_frame()
    assert rows["task"].tolist() == [7, 7, 9, 9, 12]
    assert rows["label"].tolist() == [1, 0, 2, 2, 0]
    assert crowd.truth.to_dict() == {7: 1, 9: 2, 99: 0}
    assert crowd.info is datasets.info("tiny")
    assert crowd.info.citation == ("Somebody (2020).", "Else (2021).")
    assert repr(crowd) == "<tiny: 5 annotations of 3 tasks by 3 workers, 3 classes; truth of 3>"


def test_people_become_running_numbers():
    rows = datasets.load("tiny").annotations.to_frame()
    assert rows["worker"].tolist() == [0, 1, 1, 2, 0]


def test_slots_keep_their_names(tiny):
    tiny["sets"]["tiny"]["workers"] = "slots"
    assert datasets.load("tiny").annotations.workers.tolist() == ["ann", "bob", "cy"]


def test_a_second_load_fetches_nothing(shelf):
    first = datasets.load("tiny")
    second = datasets.load("tiny", download=False)
    assert first.annotations.equals(second.annotations)
    assert len(shelf.requests) == 2


def test_downloads_and_missing_licenses_are_logged(cache, caplog):
    datasets.load("tiny")
    (license, fetching) = (record.getMessage() for record in caplog.records)
    assert license == "tiny: license: not stated"
    assert fetching.startswith("tiny: downloading 0.1 kB in 2 files")
    assert str(cache) in fetching
    assert "/label.csv" in fetching
    assert all(record.levelno == logging.WARNING for record in caplog.records)


def test_a_stated_license_needs_no_warning(tiny, caplog):
    tiny["sources"]["here"]["license"] = "MIT"
    datasets.fetch("tiny")
    caplog.clear()
    datasets.load("tiny")
    assert caplog.records == []


def test_nothing_is_fetched_that_was_not_allowed(shelf, cache):
    with pytest.raises(
        DownloadError, match=r"tiny is not in the cache, and download=False"
    ) as caught:
        datasets.load("tiny", download=False)
    assert "2 of 2 files missing" in str(caught.value)
    assert "crowdwise datasets fetch tiny" in str(caught.value)
    assert shelf.requests == []
    assert not cache.exists()


def test_fetch_and_where_name_the_same_files(cache):
    before = datasets.where("tiny")
    assert list(before) == ["label.csv", "truth.csv"]
    assert not any(path.exists() for path in before.values())
    assert datasets.fetch("tiny") == before
    assert before["label.csv"].read_bytes() == LABELS
    assert {path.parent for path in before.values()} == {cache}


def test_a_wrong_choice_is_refused_before_anything_is_fetched(shelf):
    with pytest.raises(ParameterError, match="no variant 'raw'"):
        datasets.load("tiny", variant="raw")
    assert shelf.requests == []


def test_one_bad_file_spoils_the_set_but_not_the_cache(shelf, cache):
    shelf.faults["/truth.csv"] = ["other"]
    with pytest.raises(DownloadError, match=r"truth\.csv could not be fetched"):
        datasets.load("tiny")
    assert [path.suffix for path in cache.iterdir()] == [".csv"]  # the good one stays
    assert len(datasets.load("tiny").truth) == 3


def test_a_bar_is_drawn_only_where_it_is_asked_for(capsys):
    def fetched(**options):
        for path in datasets.where("tiny").values():
            path.unlink(missing_ok=True)
        datasets.load("tiny", **options)
        printed = capsys.readouterr()
        assert printed.out == ""
        return printed.err

    assert fetched() == ""
    left = r"\d\d:\d\d<(\d\d:\d\d|\?), +(\?|[\d.]+)k?B/s"
    assert re.search(rf"tiny: +\d+%\|.*/[\d.]+ \[{left}\]", fetched(progress=True))
    with progress.shown(delay=0):
        assert "tiny: " in fetched()
        assert fetched(progress=False) == ""


def test_sizes_are_readable():
    assert [megabytes(n) for n in (0, 99_949, 100_000, 2_803_011)] == [
        "0.0 kB",
        "99.9 kB",
        "0.1 MB",
        "2.8 MB",
    ]


def test_names_are_sorted(tiny):
    tiny["sets"]["another"] = tiny["sets"]["tiny"]
    assert datasets.names() == ["another", "tiny"]


def test_listing_and_fetching_need_no_pandas():
    program = (
        "import sys; from crowdwise import datasets, progress; datasets.where('dog'); "
        "print('pandas' in sys.modules)"
    )
    output = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert output == "False\n"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = datasets.nothing
