"""What a reader walks through to follow a call grows only on purpose."""

import pytest

pytest.importorskip("torch")

import walk


@pytest.fixture(scope="module")
def calls():
    return walk.walks()


@pytest.mark.parametrize(("name", "most"), walk.MOST_FILES.items(), ids=walk.MOST_FILES)
def test_the_main_calls_are_followed_through_few_files(calls, name, most):
    files = walk.follow(*calls[name]).own.files
    assert len(files) <= most, files
    assert len(files) > 5  # else nothing was traced


def test_no_package_imports_a_private_module_of_another():
    assert walk.private_imports() == []
