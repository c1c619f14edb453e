"""What several test files share: real crowds and a browser, where this machine has them."""

from functools import cache

import numpy as np
import pytest
import real_crowds

from crowdwise.inference.simplex import tied

cached = cache(real_crowds.load)


@pytest.fixture(scope="session")
def real_crowd():
    """Load a real crowd by name; the test is skipped on a machine without it."""

    def load(name, **options):
        if name not in real_crowds.names():
            pytest.skip(f"the real crowd {name!r} is not here: set CROWDWISE_DATA")
        return cached(name, **options)

    return load


@pytest.fixture(scope="session")
def real_accuracy(real_crowd):
    """Fit a method to a real crowd: the share of truths it finds, by 1 / m where m are tied."""

    def score(method, name):
        crowd = real_crowd(name)
        probas = method.fit(crowd.annotations).probas_.loc[crowd.truth.index]
        best = tied(probas.to_numpy())
        found = best[np.arange(len(best)), probas.columns.get_indexer(crowd.truth)]
        return (found / best.sum(axis=1)).mean()

    return score


@pytest.fixture
def triples():
    """The rows (task, worker, label) of annotations."""

    def rows(annotations):
        frame = annotations.to_frame()
        return list(zip(frame["task"], frame["worker"], frame["label"], strict=True))

    return rows


@pytest.fixture(scope="module")
def chromium():
    """A headless Chromium, driven by Playwright."""
    pytest.importorskip("playwright", reason='no Playwright: pip install "crowdwise[test]"')
    import page_checks

    path = page_checks.find_chromium()
    if path is None:
        pytest.skip("no Chromium here: apt-get install chromium, or set CHROMIUM to its path")
    with page_checks.launched(path) as browser:
        yield browser
