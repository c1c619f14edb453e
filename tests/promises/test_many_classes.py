"""What docs/promises.md says of very many classes."""

import resource
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from crowdwise import aggregate, embed, evaluate, learn, load, memory
from crowdwise.annotations import Annotations, tied
from crowdwise.cli import main
from crowdwise.errors import AnnotationError, CrowdwiseError
from crowdwise.inference import CompactPosterior
from crowdwise.simulate import confused_crowd, one_coin_confusion

COMPACT = [name for name in aggregate.__all__ if getattr(aggregate, name).traits.compact]


@pytest.fixture
def lopsided():
    """Weights, a liar, ties, tasks without labels, gold on labeled and unlabeled tasks."""
    confusion = one_coin_confusion([0.95, 0.8, 0.6, 0.4, 0.02, 0.5], 5)
    votes = confused_crowd(confusion, 70, 3, random_state=2).annotations
    kept = votes.filter((votes.task > 4) & ~np.isin(votes.task, (20, 40)))
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], kept.n_annotations)
    gold = {votes.tasks[i]: votes.classes[i % 5] for i in (0, 7, 8, 20, 60)}
    return replace(kept, weight=weight.astype(np.float32)), gold


def test_promise_17_the_votes_and_the_one_coin_family_are_compact():
    assert {"MajorityVote", "Wawa", "ZeroBasedSkill", "OneCoin", "ZenCrowd"} <= set(COMPACT)


@pytest.mark.parametrize("with_gold", [False, True])
@pytest.mark.parametrize("method", COMPACT)
def test_promise_17_compact_results_are_the_same(method, with_gold, lopsided, monkeypatch):
    votes, gold = lopsided
    settings = [{}]
    if method == "OneCoin":
        settings += [{"class_prior": "estimate"}, {"class_prior": [0.1, 0.3, 0.2, 0.25, 0.15]}]
    for params in settings:
        make = partial(getattr(aggregate, method), **params)
        usual = make().fit(votes, gold if with_gold else None)
        with monkeypatch.context() as patch:
            patch.setattr(memory, "LARGE", 0)
            compact = make().fit(votes, gold if with_gold else None)
            other, labels = (
                compact._infer(votes[10:30], "average")[0],
                compact.predict(votes[10:30]),
            )
        assert isinstance(compact.posterior_, CompactPosterior)
        assert_allclose(compact.posterior_.toarray(), usual.posterior_, atol=1e-9)
        assert_allclose(compact.posterior_[3:9], usual.posterior_[3:9], atol=1e-9)
        assert_allclose(compact.posterior_[8], usual.posterior_[8], atol=1e-9)
        assert_allclose(compact.posterior_.max(axis=1), usual.posterior_.max(axis=1), atol=1e-9)
        assert_allclose(compact.posterior_.sum(axis=1), 1)
        assert_array_equal(compact.labels_, usual.labels_)
        if hasattr(usual, "skills_"):
            assert_allclose(compact.skills_, usual.skills_, atol=1e-9)
        if hasattr(usual, "objective_"):
            assert_allclose(compact.objective_, usual.objective_)
        assert_allclose(other.toarray(), usual.predict_proba(votes[10:30]), atol=1e-9)
        assert_array_equal(labels, usual.predict(votes[10:30]))


@pytest.mark.parametrize("ties", ["abstain", "random"])
def test_promise_17_ties_are_broken_as_asked(ties, lopsided, monkeypatch):
    votes, _ = lopsided
    usual = aggregate.MajorityVote(ties=ties, random_state=0).fit(votes)
    monkeypatch.setattr(memory, "LARGE", 0)
    compact = aggregate.MajorityVote(ties=ties, random_state=0).fit(votes)
    if ties == "abstain":
        assert_array_equal(compact.label_codes_, usual.label_codes_)
    best = tied(usual.posterior_)
    codes = compact.label_codes_
    assert best[np.arange(len(codes)), codes][codes >= 0].all()
    assert compact.score(votes, votes.classes[usual.posterior_.argmax(axis=1)]) == pytest.approx(
        (1 / best.sum(axis=1)).mean()
    )


@pytest.fixture(scope="module")
def huge():
    """A hundred thousand tasks and classes, two labels a task."""
    rng, n = np.random.default_rng(0), 100_000
    task = np.repeat(np.arange(n), 2)
    truth = rng.permutation(n)
    label = np.where(rng.random(2 * n) < 0.7, truth[task], rng.integers(0, n, 2 * n))
    worker = rng.integers(0, 500, 2 * n)
    return Annotations.from_codes(task, worker, label, classes=np.arange(n)), truth


@pytest.mark.parametrize(
    "method", ["MajorityVote", "Wawa", "ZeroBasedSkill", "OneCoin", "ZenCrowd"]
)
def test_promise_17_a_hundred_thousand_classes_fit_into_little_memory(method, huge, tmp_path):
    votes, truth = huge
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = getattr(aggregate, method)().fit(votes)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 300_000  # kB; an array would take 80 GB
    assert model.score(votes, truth) > 0.65
    assert_allclose(model.posterior_.sum(axis=1), 1)
    assert_allclose(model.posterior_[:2].sum(axis=1), 1)
    model.save(tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").labels_, model.labels_)
    with pytest.raises(AnnotationError, match=r"80 GB(.|\n)*posterior_\[rows\]"):
        _ = model.probas_


@pytest.mark.parametrize("method", sorted(set(aggregate.__all__) - set(COMPACT) - {"KOS"}))
def test_promise_17_other_methods_say_what_they_would_need(method, huge):
    expected = r"about [\d.,]+ [GTP]B of memory: 100,000 tasks, 500 workers and 100,000 classes"
    with pytest.raises(AnnotationError, match=rf"{method} would need {expected}(.|\n)*OneCoin"):
        getattr(aggregate, method)().fit(huge[0])


@pytest.mark.parametrize("method", ["MajorityVote", "OneCoin"])
def test_promise_17_compact_results_are_judged_like_others(method, lopsided, monkeypatch):
    votes, gold = lopsided
    usual = getattr(aggregate, method)().fit(votes)

    def judge(model):
        model = clone(model).fit(votes)
        methods, known = {"one": clone(usual)}, {"truth": gold, "n_resamples": 0}
        compared = evaluate.compare_methods(votes, methods, **known)
        yield compared.table.drop(columns=["seconds", "note"])
        yield evaluate.score(model, gold, n_resamples=0)
        yield evaluate.worker_quality(votes, model).drop(columns="flag")
        yield evaluate.reliability_table(model, gold, n_bins=2)

    expected = list(judge(usual))
    monkeypatch.setattr(memory, "LARGE", 0)
    for frame, other in zip(judge(usual), expected, strict=True):
        assert_allclose(frame.to_numpy(float), other.to_numpy(float), atol=1e-9)


def test_promise_17_what_takes_every_class_says_what_it_would_need(huge):
    votes, truth = huge
    model = aggregate.OneCoin().fit(votes)
    some = dict(enumerate(truth[:10].tolist()))
    assert evaluate.score(model, some, n_resamples=0).loc["accuracy", "n_tasks"] == 10
    for use in (
        votes.votes,
        lambda: evaluate.compare_methods(votes, ["OneCoin"]),
        lambda: evaluate.worker_quality(votes, model),
        lambda: evaluate.uncertainty(votes, model),
        lambda: evaluate.certainty(votes),
        lambda: evaluate.replaceable(some, votes),
        lambda: evaluate.krippendorff_alpha(votes, level="ordinal"),
        lambda: aggregate.OneCoin().update(votes),
    ):
        with pytest.raises(
            CrowdwiseError, match=r"would need about [\d,.]+ [GT]B of memory: 100,000"
        ):
            use()


@pytest.mark.parametrize("make", [learn.SpeeLFC, learn.TwoStage, embed.Triplet])
def test_promise_17_learners_and_embedders_say_what_they_would_need(make, huge):
    with pytest.raises(AnnotationError, match=r"would need about(.|\n)*merge rare classes"):
        make().fit(np.zeros((100_000, 1)), huge[0])


def test_promise_17_the_command_writes_labels_not_columns(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(memory, "LARGE", 0)
    votes, out = tmp_path / "votes.csv", tmp_path / "out.csv"
    votes.write_text("task,worker,label\na,x,1\na,y,1\nb,x,2\nb,y,3\nb,z,3\n")
    command = ["aggregate", str(votes), "--method", "OneCoin", "-o", str(out)]
    assert main(command) == 0
    assert list(pd.read_csv(out)) == ["task", "label", "confidence", "votes"]
    assert main([*command, "--proba"]) == 2
    assert "leave it out" in capsys.readouterr().err
