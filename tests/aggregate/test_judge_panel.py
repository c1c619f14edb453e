"""JudgePanel: copies count once, confidence comes from other families, gold calibrates."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from crowdwise.aggregate import DawidSkene, JudgePanel
from crowdwise.annotations import Annotations
from crowdwise.errors import CrowdwiseError


def log_loss(posterior, truth):
    return -np.log(posterior[np.arange(len(truth)), truth].clip(1e-12)).mean()


def smoothed_shares(votes):
    count = votes.votes() + 0.5
    return count / count.sum(axis=1, keepdims=True)


def independent(n_tasks, accuracy, share=0.5, seed=0):
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_tasks) < share).astype(int)
    right = rng.random((n_tasks, len(accuracy))) < accuracy
    return np.where(right, truth[:, None], 1 - truth[:, None]), truth


def blocks(n_tasks=1500, n_families=4, size=5, seed=0):
    """Judges of a family who share most of their errors."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_tasks) < 0.4).astype(int)
    family = np.repeat(np.arange(n_families), size)
    together = rng.random((n_tasks, n_families)) < 0.25
    alone = rng.random((n_tasks, len(family))) < 0.25
    wrong = np.where(rng.random(alone.shape) < 0.7, together[:, family], alone)
    return np.where(wrong, 1 - truth[:, None], truth[:, None]), truth, family


@pytest.mark.parametrize("copies", [1, 5])
def test_a_cloned_judge_changes_nothing(copies):
    labels, _ = independent(400, np.array([0.9, 0.8, 0.75, 0.7, 0.65]))
    alone = JudgePanel().fit(labels).posterior_
    cloned = np.hstack([labels, *[labels[:, :1]] * copies])
    assert_allclose(JudgePanel().fit(cloned).posterior_, alone, atol=1e-6)


def gaussian(n_tasks=400, seed=1):
    """Scores of judges who err independently, their skills, and the truth."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_tasks) < 0.5).astype(int)
    skill = np.array([2.0, 1.6, 1.4, 1.2, 1.0, 0.8])
    return skill * (truth[:, None] - 0.5) + rng.normal(size=(n_tasks, 6)), skill, truth


def scored(score):
    votes = Annotations.from_matrix((score > 0).astype(int))
    return replace(votes, score=score.ravel())


@pytest.mark.parametrize("copies", [1, 5])
def test_a_cloned_judge_changes_nothing_with_scores(copies):
    score, _, truth = gaussian()
    cloned = np.hstack([score, *[score[:, :1]] * copies])
    gold = dict(enumerate(truth[:60].tolist()))
    for known in (None, gold):
        alone = JudgePanel().fit(scored(score), known).posterior_
        assert_allclose(JudgePanel().fit(scored(cloned), known).posterior_, alone, atol=1e-6)


@pytest.mark.parametrize("scores", [False, True])
def test_clones_do_not_raise_confidence(scores):
    """Two judges and many copies of one of them."""
    score = gaussian()[0][:, :2]
    make = scored if scores else lambda s: Annotations.from_matrix((s > 0).astype(int))
    sure = [
        JudgePanel().fit(make(np.hstack([score, *[score[:, :1]] * k]))).posterior_.max(axis=1)
        for k in (0, 1, 8)
    ]
    assert_allclose(sure[1], sure[0], atol=1e-6)
    assert_allclose(sure[2], sure[0], atol=1e-6)


def test_independent_scores_give_what_the_true_model_gives():
    score, skill, truth = gaussian(3000)
    panel = JudgePanel(prior=0.5).fit(scored(score)).posterior_
    yes = 1 / (1 + np.exp(-score @ skill))  # equal variances: log-odds are linear
    exact = np.column_stack([1 - yes, yes])
    assert (panel.argmax(axis=1) == exact.argmax(axis=1)).mean() > 0.96
    assert log_loss(panel, truth) < log_loss(exact, truth) + 0.03


HOSTILE = {
    "all identical": np.repeat(np.arange(60)[:, None] % 2, 5, axis=1),
    "one judge": np.arange(60)[:, None] % 2,
    "one label": np.zeros((60, 4), dtype=int),
    "one who differs": np.column_stack([np.zeros((60, 3), dtype=int), np.arange(60) % 2]),
    "two tasks": np.array([[0, 1, 1], [1, 0, 1]]),
    "opposed": np.column_stack([np.arange(60) % 2, 1 - np.arange(60) % 2]),
    "never meet": np.where(
        np.arange(60)[:, None] % 4 == np.arange(4), np.arange(60)[:, None] % 2, -1
    ),
}


@pytest.mark.parametrize("scores", [False, True])
@pytest.mark.parametrize("gold", [None, 0, "both"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_panels_get_a_posterior(kind, gold, scores):
    labels = HOSTILE[kind]
    votes = Annotations.from_matrix(labels, classes=[0, 1])
    if scores:
        votes = replace(votes, score=votes.label * 7.0)
    n_gold = min(len(labels), 20)
    known = None if gold is None else dict.fromkeys(range(n_gold), 0)
    if gold == "both":
        known = {task: task % 2 for task in range(n_gold)}
    found = JudgePanel().fit(votes, known).posterior_
    assert np.isfinite(found).all()
    assert_allclose(found.sum(axis=1), 1)


def test_independent_judges_give_what_independent_models_give():
    labels, truth = independent(2000, np.linspace(0.6, 0.9, 12))
    panel, skene = JudgePanel().fit(labels), DawidSkene().fit(labels)
    assert (panel.labels_.to_numpy() == skene.labels_.to_numpy()).mean() > 0.97
    gap = log_loss(panel.posterior_, truth) - log_loss(skene.posterior_, truth)
    assert gap < 0.02


@pytest.mark.parametrize("named", [True, False])
def test_dependent_judges_are_not_believed_more_than_their_families(named):
    labels, truth, family = blocks()
    votes = Annotations.from_matrix(labels)
    families = dict(enumerate(family.tolist())) if named else None
    panel = JudgePanel(families=families).fit(votes)
    found = log_loss(panel.posterior_, truth)
    assert found < log_loss(smoothed_shares(votes), truth)
    assert found < 0.6 * log_loss(DawidSkene().fit(votes).posterior_, truth)
    groups = pd.crosstab(family, panel.families_.to_numpy())
    assert (groups > 0).sum(axis=1).tolist() == [1] * 4


def test_families_come_from_what_is_known_of_the_workers():
    labels, _, family = blocks(300)
    votes = Annotations.from_matrix(labels)
    about = pd.DataFrame({"family": family}, index=votes.workers)
    by_column = JudgePanel().fit(replace(votes, about_workers=about)).posterior_
    by_name = JudgePanel(families=dict(enumerate(family.tolist()))).fit(votes).posterior_
    assert_allclose(by_column, by_name)


def test_scores_say_more_than_labels():
    rng = np.random.default_rng(2)
    truth = (rng.random(2000) < 0.5).astype(int)
    score = truth[:, None] * 1.2 + rng.normal(size=(2000, 6))
    votes = Annotations.from_matrix((score > 0.6).astype(int))
    scored = replace(votes, score=score.ravel())
    by_label, by_score = (JudgePanel().fit(v).posterior_ for v in (votes, scored))
    assert log_loss(by_score, truth) < log_loss(by_label, truth) - 0.02
    turned = JudgePanel().fit(replace(votes, score=-score.ravel())).posterior_
    assert_allclose(turned, by_score, atol=1e-6)


def test_a_prior_moves_the_threshold():
    labels, _ = independent(2000, np.full(6, 0.65), share=0.2)
    free = JudgePanel().fit(labels).posterior_[:, 1]
    given = JudgePanel(prior=0.35).fit(labels).posterior_[:, 1]
    assert_allclose(given.mean(), 0.35, atol=1e-6)
    assert free.mean() < 0.3
    both = JudgePanel(prior=[0.65, 0.35]).fit(labels).posterior_[:, 1]
    assert_allclose(both, given)
    with pytest.raises(CrowdwiseError, match="does not match 2 classes"):
        JudgePanel(prior=[0.2, 0.3, 0.5]).fit(labels)


def test_gold_calibrates_and_finds_the_judge_who_is_right():
    """Four judges share a mistake; one is right, which only gold can tell."""
    rng = np.random.default_rng(3)
    truth = (rng.random(3000) < 0.5).astype(int)
    block = np.where(rng.random(3000) < 0.3, 1 - truth, truth)
    noise = rng.random((3000, 4)) < 0.1
    alone = np.where(rng.random(3000) < 0.05, 1 - truth, truth)
    labels = np.column_stack([np.where(noise, 1 - block[:, None], block[:, None]), alone])
    gold = dict(enumerate(truth[:200].tolist()))
    without, with_gold = (JudgePanel().fit(labels, known) for known in (None, gold))
    rest = slice(200, None)
    found = [model.posterior_[rest].argmax(axis=1) for model in (without, with_gold)]
    accuracy = [(label == truth[rest]).mean() for label in found]
    assert accuracy[1] > 0.93 > accuracy[0]
    assert with_gold.weights_.idxmax() == 4
    noisy = np.where(rng.random(200) < 0.2, 1 - truth[:200], truth[:200])
    gold = dict(enumerate(noisy.tolist()))
    trusting, wary = (JudgePanel(gold_accuracy=a).fit(labels, gold) for a in (1.0, 0.8))
    loss = [log_loss(model.posterior_[rest], truth[rest]) for model in (trusting, wary)]
    assert loss[1] < loss[0] - 0.05


def test_grades_are_taken_for_a_scale_where_they_behave_like_one():
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 4, 1500)
    shared = truth + 0.8 * rng.normal(size=1500)
    rating = shared[:, None] + 0.7 * rng.normal(size=(1500, 12))
    grades = Annotations.from_matrix(rating.round().clip(0, 3).astype(int))
    panel = JudgePanel().fit(grades)
    assert panel.ordered_
    assert log_loss(panel.posterior_, truth) < log_loss(smoothed_shares(grades), truth)
    kinds = np.where(rng.random((1500, 8)) < 0.6, truth[:, None], rng.integers(0, 4, (1500, 8)))
    plain = JudgePanel().fit(kinds)
    assert not plain.ordered_
    assert (plain.posterior_.argmax(axis=1) == truth).mean() > 0.95


def test_several_samples_of_a_judge_are_one_judge():
    labels, _ = independent(300, np.array([0.9, 0.8, 0.7, 0.65]))
    once = Annotations.from_matrix(labels)
    frame = once.to_frame()
    often = pd.concat([frame, frame[frame.worker == 0], frame[frame.worker == 0]])
    again = Annotations.from_frame(often, tasks=once.tasks, workers=once.workers)
    assert_allclose(
        JudgePanel().fit(again).posterior_, JudgePanel().fit(once).posterior_, atol=1e-9
    )


def test_one_judge_alone_is_believed_by_half():
    labels = np.repeat([[0], [1]], 20, axis=0)
    proba = JudgePanel().fit(labels).posterior_
    assert_allclose(proba.max(axis=1), 0.75)


def test_a_crowd_is_not_a_panel():
    votes = Annotations.from_codes(np.arange(1200), np.arange(1200), np.arange(1200) % 2)
    with pytest.raises(CrowdwiseError, match="1,200 judges"):
        JudgePanel().fit(votes)


def test_the_judges_of_civil_comments(real_crowd):
    """Figures of ``crowdwise bench judges``, on labels alone."""
    crowd = real_crowd("judges_civilcomments")
    truth = crowd.truth.loc[crowd.annotations.tasks].to_numpy().astype(int)
    found = JudgePanel().fit(crowd.annotations).posterior_
    shares = smoothed_shares(crowd.annotations)
    assert log_loss(found, truth) < log_loss(shares, truth)
    assert (found.argmax(axis=1) == truth).mean() > 0.70
    assert log_loss(DawidSkene().fit(crowd.annotations).posterior_, truth) > 2
