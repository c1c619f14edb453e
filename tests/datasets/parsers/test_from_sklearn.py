"""The sets of scikit-learn: bundled, or fetched by it, cut down, checked and kept."""

import hashlib

import numpy as np
import pandas as pd
import pytest

from crowdwise import datasets
from crowdwise.datasets.parsers import from_sklearn
from crowdwise.errors import DownloadError

pytestmark = pytest.mark.usefixtures("cache")


def test_digits_need_no_network(cache):
    crowd = datasets.load("digits", download=False)
    assert crowd.X.shape == (1797, 64)
    assert crowd.annotations.shape == (1797, 0)
    assert crowd.annotations.tasks.tolist() == crowd.X_tasks.tolist() == crowd.truth.index.tolist()
    assert crowd.annotations.classes.tolist() == list(range(10))
    assert not cache.exists()


@pytest.fixture
def openml(monkeypatch):
    """MNIST of 30 images, four pixels each."""
    rng = np.random.default_rng(0)
    pixels, digits = rng.integers(0, 256, (30, 4)).astype(float), rng.integers(3, 10, 30)
    calls = []

    def fetch_openml(name, **options):
        calls.append((name, options["version"]))
        return pixels, digits.astype(str)

    monkeypatch.setattr(from_sklearn, "fetch_openml", fetch_openml)
    monkeypatch.setattr(from_sklearn, "PER_CLASS", 2)
    rows = [row for digit in (4, 9) for row in np.flatnonzero(digits == digit)[:2]]
    expected = pd.Series(digits[rows], index=[f"mnist-train-{row}" for row in rows])
    return calls, pixels[rows], expected


def test_mnist49_is_cut_checked_and_kept(openml, monkeypatch):
    calls, pixels, expected = openml
    monkeypatch.setattr(
        from_sklearn, "PIXELS", hashlib.sha256(pixels.astype("u1").tobytes()).hexdigest()
    )
    crowd = datasets.load("mnist49")
    np.testing.assert_array_equal(crowd.X, pixels)
    assert crowd.X.dtype == np.uint8
    assert crowd.truth.to_dict() == expected.to_dict()
    datasets.load("mnist49", download=False)
    (path,) = datasets.fetch("mnist49").values()
    assert path.exists()
    assert calls == [("mnist_784", 1)]


@pytest.mark.usefixtures("openml")
def test_other_pixels_than_mnists_are_refused(cache):
    with pytest.raises(DownloadError, match="different pixels than expected; nothing was kept"):
        datasets.load("mnist49")
    assert not cache.exists()


def test_mnist49_is_not_fetched_unasked_nor_without_network(openml, monkeypatch):
    calls, _, _ = openml
    with pytest.raises(DownloadError, match="download=False"):
        datasets.load("mnist49", download=False)
    assert calls == []

    def no_network(*_, **__):
        raise OSError("no route to host")

    monkeypatch.setattr(from_sklearn, "fetch_openml", no_network)
    with pytest.raises(DownloadError, match="no route to host"):
        datasets.load("mnist49")
