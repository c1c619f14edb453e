"""The registry is complete, consistent, and where there are publishers' bytes, true."""

import json
import re
import tomllib
from importlib.resources import files

import pytest

from crowdwise.datasets import info, names
from crowdwise.datasets.parsers import find_parser
from crowdwise.errors import ParameterError

ROWS = tomllib.loads(files("crowdwise.datasets").joinpath("registry.toml").read_text("utf-8"))
EVERY = pytest.mark.parametrize("name", names())


@EVERY
def test_every_set_says_what_it_is_and_on_which_terms(name):
    about = info(name)
    assert about.title
    assert about.about.endswith(".")
    assert about.license
    assert about.citation
    assert all(text.endswith(".") for text in (*about.citation, *about.warnings, about.features))
    assert about.workers in ("people", "slots", "none")
    assert about.counts["tasks"] > 0
    assert callable(find_parser(about.parser))


@EVERY
def test_every_file_has_an_address_a_size_and_a_hash(name):
    files = info(name).files
    assert len({file.name for file in files}) == len(files)  # parsers know files by their name
    for file in files:
        assert re.fullmatch(
            r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/.+", file.url
        )
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert file.size > 0
        assert file.license
        assert file.citation
    scikit_learn = ("digits", "mnist49")
    assert files or name in scikit_learn


def test_every_source_is_used():
    known = {row["base"] + path for row in ROWS["sources"].values() for path in row["files"]}
    assert known == {file.url for name in names() for file in info(name).files}


def test_a_set_without_a_stated_license_says_so():
    assert not info("dog").license_stated
    assert info("dog").license == "not stated"
    assert info("weather_amt").license_stated
    assert not info("spc").license_stated  # labels have one, sentences have none
    assert "orchidproject/active-crowd-toolkit: Apache-2.0" in info("spc").license
    assert "junchenzhi/Logic-LNCL: not stated" in info("spc").license


@pytest.mark.parametrize(
    ("name", "trap"),
    [
        ("labelme", "file names"),
        ("mgc", "file name"),
        ("product", "task id ends with the truth"),
        ("spc", "gives the truth away"),
        ("hotel", "The truth is the majority vote"),
        ("hotel", "A slot is not a person"),
        ("classroom_on_task", "The truth is the majority"),
        ("cifar10n", "slots, not people"),
        ("medical_causes", "mis-coded"),
        ("medical_treats", "IP addresses"),
        ("adult", "Only 333"),
        ("temp", "LDC"),
        ("mnist49", "not Gisette"),
    ],
)
def test_known_traps_are_named(name, trap):
    assert any(trap in warning for warning in info(name).warnings)


def test_the_headline_truth_of_the_medical_sets_is_the_adjudicated_one():
    for name in ("medical_causes", "medical_treats"):
        assert next(iter(info(name).truths)) == "adjudicated"
        assert {"expert", "lia_paper"} < set(info(name).truths)


def test_files_differ_by_variant_where_they_do():
    gsad = info("gsad")
    raw, standardized = gsad.files_of("raw"), gsad.files_of("standardized")
    assert gsad.files_of(None) == standardized
    assert not set(raw) & set(standardized)
    assert set(gsad.files) == {*raw, *standardized}
    assert info("wordsim").files_of("raw") == info("wordsim").files


def test_an_unknown_name_gets_near_ones():
    with pytest.raises(ParameterError, match="no dataset 'label_me'") as caught:
        info("label_me")
    assert "'labelme'" in str(caught.value)
    assert "crowdwise.simulate" in str(caught.value)


def test_an_unknown_choice_gets_the_known_ones():
    with pytest.raises(ParameterError, match=r"no truth 'gold'[^']*'adjudicated', 'expert'"):
        info("medical_treats").choose("truth", "gold")
    with pytest.raises(ParameterError, match="no choice: leave variant out"):
        info("dog").choose("variant", "raw")


def test_addresses_sizes_and_hashes_are_those_of_the_publishers(upstream):
    index = json.loads((upstream / "INDEX.json").read_text())
    for name in names():
        for file in info(name).files:
            published = index[file.url]
            assert name in published["dataset"]
            assert (file.stored_name, file.size) == (published["file"], published["bytes"])


def test_every_set_in_the_registry_is_published(upstream):
    index = json.loads((upstream / "INDEX.json").read_text())
    published = {name for row in index.values() for name in row["dataset"]}
    assert published | {"digits", "mnist49"} >= set(names())
