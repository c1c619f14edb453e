"""What several test files share: real and small crowds, and a browser where there is one."""

import os
import tempfile
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path

import hypothesis
import numpy as np
import pytest
import real_crowds

from crowdwise import Annotations, compiled
from crowdwise.aggregate import BayesBag
from crowdwise.annotations import tied
from crowdwise.simulate import confused_crowd

TESTS = Path(__file__).parent
cached = cache(real_crowds.load)

# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("tests", deadline=None)
hypothesis.settings.load_profile("tests")

# Lopsided on purpose: errors lean to a class, truths are not equally frequent.
CAREFUL = [[0.85, 0.10, 0.05], [0.25, 0.70, 0.05], [0.05, 0.20, 0.75]]
SPAMMER = [[0.60, 0.30, 0.10]] * 3
LIAR = [[0.10, 0.85, 0.05], [0.70, 0.10, 0.20], [0.50, 0.40, 0.10]]

# The files that take longest; they start first, so that no core waits for one at the end.
LONG = ["spark/test_spark.py", "test_site.py", "laws/test_laws.py", "laws/test_learner_laws.py"]
LONG += ["test_docs.py", "promises/test_commands.py", "learn/test_torchrun.py", "test_demo.py"]
LONG += ["test_progress.py", "test_walk.py", "test_house.py"]


def pytest_collection_modifyitems(items):
    places = {f"{TESTS}/{name}": place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(str(item.path), len(places)))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for doctests in the package alone, not in each file of tests as well."""
    found = yield
    return [one for one in found if type(one).__name__ != "DoctestModule"]


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
def unprivileged(tmp_path):
    """A context in which the tests are not those of the superuser, who may read and write all."""
    nobody, home = 65534, Path(tempfile.gettempdir())
    above = [folder for folder in (tmp_path, *tmp_path.parents) if home in folder.parents]

    @contextmanager
    def become_nobody():
        modes = {folder: folder.stat().st_mode for folder in above}
        for folder, mode in modes.items():
            folder.chmod(mode | 0o011)
        os.seteuid(nobody)
        try:
            yield
        finally:
            os.seteuid(0)
            for folder, mode in modes.items():
                folder.chmod(mode)

    return become_nobody if hasattr(os, "geteuid") and os.geteuid() == 0 else nullcontext


@pytest.fixture
def triples():
    """The rows (task, worker, label) of annotations."""

    def rows(annotations):
        frame = annotations.to_frame()
        return list(zip(frame["task"], frame["worker"], frame["label"], strict=True))

    return rows


# How often what a default fit and its intervals draw is drawn, where only their use is tested.
FEW_DRAWS = {
    "aggregate.shared_errors": {"FEW": 4, "MOST": 4},
    "aggregate.families": {"N_CROWDS": 3},
    "evaluate.independence": {"FEWEST": 6, "MOST": 6},
    "evaluate.draws": {"FEWEST": 40, "MOST": 150},
}


@contextmanager
def draw_little():
    with pytest.MonkeyPatch.context() as patch:
        for module, numbers in FEW_DRAWS.items():
            for name, value in numbers.items():
                patch.setattr(f"crowdwise.{module}.{name}", value)
        yield patch


@pytest.fixture(scope="module")
def few_draws():
    """A dependence, a test of it and intervals from few draws."""
    with draw_little():
        yield


@pytest.fixture(scope="module")
def quick_default():
    """The default method with few bags, an assumed dependence and intervals from few draws."""
    with draw_little() as patch:
        for name, value in {"n_bags": 10, "dependence": 0.1}.items():
            patch.setitem(BayesBag.__init__.__kwdefaults__, name, value)
        yield


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


@pytest.fixture(params=["compiled", "plain"])
def either_loop(request, monkeypatch):
    """Run a test with the compiled loops, and with the plain ones."""
    if request.param == "plain":
        monkeypatch.setattr(compiled, "native", None)


@pytest.fixture(scope="session")
def voters():
    """Four careful workers, two spammers and a liar, some more active than others."""
    confusion = np.array([CAREFUL] * 4 + [SPAMMER] * 2 + [LIAR])
    activity = [4, 1, 3, 2, 3, 1, 2]
    return confused_crowd(
        confusion, 300, 4, prior=[0.5, 0.3, 0.2], activity=activity, random_state=0
    )


@pytest.fixture(scope="session")
def weighted_voters(voters):
    """The first of them, annotations counting unequally."""
    votes = voters.annotations[:80]
    weight = np.random.default_rng(1).uniform(0.2, 3.0, votes.n_annotations)
    return Annotations.from_codes(
        votes.task, votes.worker, votes.label, weight=weight, workers=np.arange(7)
    )


@pytest.fixture(scope="session")
def slow_vote():
    """A vote, one annotation at a time: too slow to ship, too plain to be wrong."""

    def vote(annotations, weights, gold=None):
        agreed, given = np.zeros(len(weights)), np.zeros(len(weights))
        for task in range(annotations.n_tasks):
            rows = range(annotations.indptr[task], annotations.indptr[task + 1])
            own = [
                1.0 if annotations.weight is None else float(annotations.weight[r]) for r in rows
            ]
            score = [0.0] * annotations.n_classes
            for row, weight in zip(rows, own, strict=True):
                score[annotations.label[row]] += weight * weights[annotations.worker[row]]
            best = [k for k, value in enumerate(score) if value > max(score) - 1e-9]
            if gold is not None and gold[task] >= 0:
                best = [gold[task]]
            for row, weight in zip(rows, own, strict=True):
                given[annotations.worker[row]] += weight
                if annotations.label[row] in best:
                    agreed[annotations.worker[row]] += weight / len(best)
        return agreed, given

    return vote


@pytest.fixture(scope="session")
def slow_shares():
    """Share of the weight for each class, one annotation at a time."""

    def shares(annotations, weights):
        found = np.zeros((annotations.n_tasks, annotations.n_classes))
        for row, task in enumerate(annotations.task):
            own = 1.0 if annotations.weight is None else float(annotations.weight[row])
            own = own * weights[annotations.worker[row]]
            for k in range(annotations.n_classes):
                if own >= 0 and k == annotations.label[row]:
                    found[task, k] += own
                if own < 0 and k != annotations.label[row]:
                    found[task, k] -= own
        for task in range(annotations.n_tasks):
            found[task] /= found[task].sum()
        return found

    return shares
