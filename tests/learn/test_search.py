"""The search for penalty, prior and start by the labels of held-out tasks."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize as scipy_minimize
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from crowdwise.aggregate import IBCC
from crowdwise.laws.checks import save_and_load
from crowdwise.learn import (
    ICED,
    CrowdLayer,
    NetClassifier,
    SpeeLFC,
    SpeeLFCD,
    TraceReg,
    Training,
    WorkerConfusion,
)
from crowdwise.learn.search import PENALTIES, choose, deal, penalties_for
from crowdwise.learn.starting_points import LabelsAlone
from crowdwise.learn.voted_regression import RIDGES, VotedRegression
from crowdwise.nets.batches import as_data
from crowdwise.nets.features import as_features
from crowdwise.nets.minimize import minimize
from crowdwise.simulate import label_by_crowd, one_coin_confusion


@pytest.fixture(scope="module")
def crowd():
    """Few tasks, many features: without a penalty the noise of the labels is learned."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(360, 60)).astype(np.float32)
    truth = (X[:, :3].sum(axis=1) + 0.3 * rng.normal(size=360) > 0).astype(int)
    confusion = one_coin_confusion([0.9, 0.8, 0.7, 0.65, 0.6], n_classes=2)
    return X[:160], label_by_crowd(truth[:160], confusion, per_task=3, random_state=0), X, truth


def rosenbrock(rows):
    a, b = rows[:, 0], rows[:, 1]
    value = (1 - a) ** 2 + 100 * (b - a**2) ** 2
    slope = torch.stack([-2 * (1 - a) - 400 * a * (b - a**2), 200 * (b - a**2)], dim=1)
    return value, slope


def test_problems_side_by_side_end_where_each_would_alone():
    start = torch.tensor([[-1.2, 1.0], [0.0, 0.0], [2.0, -1.0]], dtype=torch.float64)
    together, path = minimize(rosenbrock, start, 300, tol=1e-12)
    assert_allclose(together, np.ones((3, 2)), atol=1e-4)
    assert all((later <= before).all() for before, later in pairwise(path))
    for row in range(3):
        alone, _ = minimize(rosenbrock, start[[row]], 300, tol=1e-12)
        assert_allclose(alone, [[1.0, 1.0]], atol=1e-4)


TRIED = [{"penalty": p, "prior": q} for q in (math.inf, 1.0) for p in (0.1, 0.01)]
PLAINNESS = [(c["penalty"], c["prior"]) for c in TRIED]


def test_of_equal_ones_the_plainest_is_chosen():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(4, 400))
    # As good as the best but for noise; worse for sure; the best; worse for sure.
    evidence = noise + np.array([-0.01, -1.0, 0.01, -1.0])[:, None]
    search, taken = choose(TRIED, PLAINNESS, evidence)
    assert taken == 0
    assert search.chosen == {"penalty": 0.1, "prior": math.inf}
    assert "simplest within one standard error" in search.why
    assert search.held_out[taken] < max(search.held_out)


def test_a_plainer_one_that_is_worse_for_sure_is_not_chosen():
    rng = np.random.default_rng(1)
    evidence = 0.1 * rng.normal(size=(4, 400)) + np.array([-1.0, -1.0, -1.0, 0.0])[:, None]
    search, taken = choose(TRIED, PLAINNESS, evidence)
    assert search.chosen == {"penalty": 0.01, "prior": 1.0}
    assert search.why.startswith("It predicts the labels of held-out tasks best")
    assert_allclose(search.error[taken], 0.0)


def test_folds_are_of_tasks_with_labels_whatever_their_order(crowd):
    X, votes, *_ = crowd
    votes = votes.filter(votes.task > 9)
    order = np.random.default_rng(2).permutation(len(X))
    folds = []
    for rows in (np.arange(len(X)), order):
        data = as_data(as_features(X[rows]), votes[rows], None, torch.device("cpu"))
        folds.append(deal(data, np.random.RandomState(0)))
    assert_array_equal(folds[1], folds[0][order])
    assert_array_equal(np.flatnonzero(folds[0] < 0), np.arange(10))
    assert_array_equal(np.bincount(folds[0][10:]), np.full(5, 30))


@pytest.mark.parametrize("method", [SpeeLFC, SpeeLFCD, CrowdLayer, TraceReg])
def test_a_penalty_by_held_out_labels_beats_none(crowd, method):
    X, votes, everything, truth = crowd
    model = method(random_state=0).fit(X, votes)
    free = method(training=Training(epochs=300), random_state=0).fit(X, votes)
    new = slice(160, None)
    assert model.score(everything[new], truth[new]) > free.score(everything[new], truth[new]) + 0.03
    assert model.search_.chosen["penalty"] >= 0.03
    assert model.search_.chosen in model.search_.candidates
    assert len(model.search_.held_out) == len(model.search_.error) == len(model.search_.candidates)
    assert free.search_ is None


def test_the_end_is_an_optimum(crowd):
    """With the noise held fast, what is learned is a logistic regression on all labels."""
    X, votes, *_ = crowd
    model = SpeeLFC(penalty=0.1, prior=math.inf, diagonal=30.0, off_diagonal=0.0).fit(X, votes)
    assert model.search_.why == "There was nothing to choose."
    scaled = StandardScaler().fit_transform(X)[votes.task]
    # Two classes of a softmax share what scikit-learn gives to one vector of weights.
    usual = LogisticRegression(C=1 / (0.05 * votes.n_annotations), tol=1e-8, max_iter=1000)
    usual.fit(scaled, votes.label)
    expected = usual.predict_proba(StandardScaler().fit_transform(X))
    assert_allclose(model.predict_proba(X), expected, atol=2e-3)


def test_what_is_fixed_is_not_searched(crowd):
    X, votes, *_ = crowd
    model = SpeeLFC(penalty=0.2, random_state=0).fit(X, votes)
    assert {c["penalty"] for c in model.search_.candidates} == {0.2}
    assert {c["prior"] for c in model.search_.candidates} == {math.inf, 10.0, 1.0, 0.1}
    assert {c["start"] for c in model.search_.candidates} == {"plain", "IBCC"}
    model = SpeeLFC(prior=3.0, random_state=0).fit(X, votes)
    assert {c["prior"] for c in model.search_.candidates} == {3.0}
    assert all("start" not in c for c in model.search_.candidates)
    model = CrowdLayer(start=2.0, penalty=0.1, random_state=0).fit(X, votes)
    assert all("start" not in c for c in model.search_.candidates)


def test_a_prior_holds_the_noise_to_its_start(crowd):
    X, votes, *_ = crowd
    start = np.asarray(SpeeLFC()._noise().diagonal - SpeeLFC()._noise().off_diagonal)
    right = np.exp(start) / (np.exp(start) + 1)
    gaps = []
    for prior in (math.inf, 10.0, 0.1):
        model = SpeeLFC(penalty=0.1, prior=prior, random_state=0).fit(X, votes)
        gaps.append(np.abs(model.confusion_[:, [0, 1], [0, 1]] - right).max())
    assert gaps[0] < 1e-6
    assert 1e-3 < gaps[1] < 0.3 * gaps[2]


@pytest.fixture(scope="module")
def biased():
    """Workers who are wrong about one class more often than right, and some who are not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 10)).astype(np.float32)
    truth = (X[:, 0] > 0).astype(int)
    lenient, fair = [[0.95, 0.05], [0.65, 0.35]], [[0.9, 0.1], [0.1, 0.9]]
    confusion = np.array([*[lenient] * 6, *[fair] * 3])
    return X, truth, label_by_crowd(truth[:150], confusion, per_task=9, random_state=0)


@pytest.mark.parametrize("method", [SpeeLFC, TraceReg])
def test_noise_starts_from_labels_alone_where_that_predicts_held_out_labels(biased, method):
    X, truth, votes = biased
    model = method(penalty=0.03, random_state=0).fit(X[:150], votes)
    assert model.search_.chosen["start"] == "IBCC"
    assert model.score(X[150:], truth[150:]) > 0.9


def test_what_labels_alone_say_is_inferred_without_held_out_tasks(biased):
    X, _, votes = biased
    keep = torch.arange(150) < 100
    labels = LabelsAlone(votes, None)
    found = labels.infer(keep)
    assert found is labels.infer(keep.double())
    expected = IBCC().fit(votes.filter(votes.task < 100))
    assert_allclose(labels.confusion(keep), expected.confusion_)
    assert_allclose(labels.posterior(keep), expected.posterior_)
    net = WorkerConfusion().build(as_data(as_features(X[:150]), votes, None, torch.device("cpu")))
    net.imitate(labels.confusion(keep))
    table = net(torch.zeros(1, 10), torch.zeros(9).long(), torch.arange(9)).exp()
    assert_allclose(table.detach(), expected.confusion_, rtol=1e-5)


def test_wide_features_get_larger_penalties():
    assert penalties_for(512) == penalties_for(None) == list(PENALTIES)
    assert_allclose(penalties_for(2048), 4 * np.array(PENALTIES))


def test_penalty_and_prior_count_in_training_of_ones_own(crowd):
    X, votes, *_ = crowd
    training = Training(epochs=200)
    sizes = []
    for penalty in (0.0, 1.0):
        model = SpeeLFC(penalty=penalty, training=training, random_state=0).fit(X, votes)
        sizes.append(float(model.net_.truth[0].weight.detach().square().sum()))
    assert sizes[1] < 0.1 * sizes[0]


def test_a_plain_classifier_chooses_its_penalty(crowd):
    X, _, everything, truth = crowd
    noisy = np.where(np.random.default_rng(3).random(160) < 0.25, 1 - truth[:160], truth[:160])
    model = NetClassifier(random_state=0).fit(X, noisy)
    assert model.learner_.search_.chosen["penalty"] >= 0.03
    assert len(model.learner_.search_.candidates) == 7
    free = NetClassifier(training=Training(epochs=300), random_state=0).fit(X, noisy)
    new = slice(160, None)
    assert model.score(everything[new], truth[new]) > free.score(everything[new], truth[new])


def test_the_search_is_saved_with_the_model(crowd):
    X, votes, *_ = crowd
    model = SpeeLFC(penalty=0.1, random_state=0).fit(X, votes)
    assert (model.history_.chosen, model.history_.why) == (model.search_.chosen, model.search_.why)
    again = save_and_load(model)
    assert again.search_ == model.search_
    assert again.history_.chosen == model.search_.chosen


def test_a_handful_of_tasks_is_enough():
    X = np.eye(3, dtype=np.float32)
    model = SpeeLFC(random_state=0).fit(X, [[0, 0], [1, 1], [0, 1]])
    assert np.isfinite(model.predict_proba(X)).all()
    one = SpeeLFC(random_state=0).fit(X[:1], [[0, 1]])
    assert one.search_.why == "There was nothing to choose."


def test_minimizers_agree(crowd):
    """Plain softmax regression by L-BFGS here and by scipy's."""
    X, _, _, truth = crowd
    x, y = torch.as_tensor(X).double(), torch.as_tensor(truth[:160])

    def slopes(rows):
        rows = rows.detach().requires_grad_()
        logits = torch.einsum("td,md->mt", x, rows)
        loss = torch.nn.functional.softplus(-logits * (2 * y - 1)).mean(dim=1)
        loss = loss + 0.05 * rows.square().sum(dim=1)
        return loss.detach(), torch.autograd.grad(loss.sum(), rows)[0]

    def one(flat):
        value, slope = slopes(torch.as_tensor(flat)[None])
        return float(value), slope[0].numpy()

    found, _ = minimize(slopes, torch.zeros(2, 60, dtype=torch.float64), 200, tol=1e-10)
    expected = scipy_minimize(one, np.zeros(60), jac=True, method="L-BFGS-B").x
    assert_allclose(found, np.stack([expected] * 2), atol=1e-3)


def test_iced_generates_tasks_only_where_that_predicts_labels_better():
    rng = np.random.default_rng(0)
    truth = (rng.random(300) < 0.15).astype(int)
    X = (rng.normal(size=(300, 8)) + 1.2 * truth[:, None]).astype(np.float32)
    confusion = one_coin_confusion([0.75, 0.7, 0.65, 0.6, 0.55], n_classes=2)
    votes = label_by_crowd(truth, confusion, per_task=5, random_state=0)
    model = ICED(rounds=3, random_state=0).fit(X, votes)
    assert [c["rounds"] for c in model.search_.candidates] == [0, 0, 3]
    assert model.search_.chosen["rounds"] == 0
    assert len(model.truths_) == 1
    assert len(model.n_new_) == 0
    assert np.mean(model.predict(X) == truth) > np.mean(votes.shares().argmax(axis=1) == truth)
    again = save_and_load(model)
    assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=1e-6)
    assert ICED(rounds=1, training=ICED.default_training).fit(X, votes).search_ is None


def test_iced_learns_majority_votes_where_em_does_not_predict_labels_better():
    """Nothing in the features, and hardly anything in the labels: EM would split the class."""
    rng = np.random.default_rng(0)
    truth = (rng.random(200) < 0.1).astype(int)
    X = rng.normal(size=(200, 100)).astype(np.float32)
    confusion = one_coin_confusion(rng.uniform(0.55, 0.7, 8), n_classes=2)
    votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    model = ICED(rounds=0, random_state=0).fit(X, votes)
    assert model.search_.chosen["truths"] == "majority"
    assert model.search_.chosen["ridge"] == VotedRegression().fit(X, votes).ridge_
    assert_allclose(
        model.predict_proba(X), VotedRegression().fit(X, votes).predict_proba(X), atol=1e-5
    )


def test_a_regression_on_votes_is_scikit_learns(crowd):
    X, votes, *_ = crowd
    model = VotedRegression(ridge=10.0).fit(X, votes)
    scaled = StandardScaler().fit_transform(X)
    # Two classes of a softmax share what scikit-learn gives to one vector of weights.
    usual = LogisticRegression(C=0.2, tol=1e-8, max_iter=1000)
    usual.fit(scaled, votes.shares().argmax(axis=1))
    assert_allclose(model.predict_proba(X), usual.predict_proba(scaled), atol=1e-3)
    chosen = VotedRegression().fit(X, votes)
    noise = VotedRegression().fit(np.random.default_rng(9).normal(size=X.shape), votes)
    assert noise.ridge_ > chosen.ridge_ > RIDGES[-1]
