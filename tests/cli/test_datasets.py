"""``crowdwise datasets``: what there is, and where it goes."""

from dataclasses import replace
from hashlib import sha256

import pytest

from crowdwise import datasets
from crowdwise.cli import main
from crowdwise.datasets.registry import RemoteFile


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CROWDWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "datasets"


def said(capsys, *words):
    status = main(["datasets", *words])
    output = capsys.readouterr()
    return status, output.out, output.err


def test_list_has_a_line_for_every_set(capsys):
    status, out, err = said(capsys, "list")
    header, *lines = out.splitlines()
    assert (status, err) == (0, "")
    assert header.split() == [
        *("name", "tasks", "workers", "annotations", "classes", "truths"),
        *("megabytes", "license"),
    ]
    assert [line.split()[0] for line in lines] == datasets.names()
    licenses = {line.split()[0]: " ".join(line.split()[7:]) for line in lines}
    assert licenses["dog"] == "not stated"
    assert licenses["hotel"] == "MIT"
    assert licenses["spc"] == "not stated for all of it"
    assert next(line for line in lines if line.startswith("usps")).split()[:4] == [
        *("usps", "9,298", "-", "-"),
    ]


def test_info_tells_the_traps_the_choices_and_whom_to_cite(capsys):
    status, out, err = said(capsys, "info", "medical_treats")
    assert (status, err) == (0, "")
    about = datasets.info("medical_treats")
    for text in (about.title, about.about, about.license, *about.warnings, *about.citation):
        assert text in out
    assert "truth (the first is the default):\n  adjudicated: " in out
    assert "files: 48, " in out
    assert "https://raw" not in out
    assert about.files[0].sha256 in said(capsys, "info", "medical_treats", "--files")[1]


def test_an_unknown_set_is_one_clear_error(capsys):
    status, out, err = said(capsys, "info", "label_me")
    assert (status, out) == (2, "")
    assert err.startswith("crowdwise: There is no dataset 'label_me'.")
    assert "'labelme'" in err


def test_where_is_the_cache_or_the_files_in_it(capsys, cache):
    assert said(capsys, "where") == (0, f"{cache}\n", "")
    path = cache / datasets.info("wsd").files[0].stored_name
    assert said(capsys, "where", "wsd")[1] == f"{path}\twsd.standardized.tsv\tmissing\n"


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A folder to fetch one small set from, and nowhere else."""
    (tmp_path / "mirror").mkdir()
    content = b"!amt_worker_ids\torig_id\tresponse\tgold\n"
    file = RemoteFile(
        "http://host.invalid/wsd.tsv", len(content), sha256(content).hexdigest(), "", ""
    )
    tiny = replace(datasets.info("wsd"), files=(file,))
    monkeypatch.setattr("crowdwise.datasets.loading.info", lambda _: tiny)
    monkeypatch.setenv("CROWDWISE_MIRROR", str(tmp_path / "mirror"))
    (tmp_path / "mirror" / file.stored_name).write_bytes(content)
    return tmp_path / "mirror" / file.stored_name


def test_fetch_prints_paths_and_says_what_it_does(capsys, cache, mirror):
    status, out, err = said(capsys, "fetch", "wsd")
    assert (status, out) == (0, f"{cache / mirror.name}\n")
    assert err.startswith("wsd: license: MIT for the repository as a whole")
    assert "wsd: downloading 0.0 kB in 1 file into" in err


def test_fetch_can_be_quiet(capsys, cache, mirror):
    assert said(capsys, "fetch", "wsd", "--quiet") == (0, f"{cache / mirror.name}\n", "")


def test_a_failed_fetch_is_one_clear_error(capsys, cache, mirror):
    mirror.unlink()
    status, out, err = said(capsys, "fetch", "wsd")
    assert (status, out) == (1, "")
    assert "crowdwise: wsd.tsv could not be fetched; nothing was kept.\n" in err
    assert list(cache.iterdir()) == []


def test_without_an_action_it_says_which_there_are(capsys):
    status, _, err = said(capsys)
    assert status == 2
    assert "ACTION" in err
