"""Who answers what, against plain loops and on crowds drawn from the model."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.metrics import roc_auc_score
from torch import nn

from crowdwise import Annotations
from crowdwise.errors import AnnotationError, ParameterError
from crowdwise.learn import EM, LIA, ResponseModel, Training
from crowdwise.learn.response import ResponseLoss, ResponseNet

SIZE = 3


def make_objective(lopsided, depends):
    data = lopsided.data_of(lopsided.votes().without_repeats("first"))
    torch.manual_seed(0)
    task = nn.Linear(lopsided.n_in, SIZE)
    net = ResponseNet(nn.Identity(), task, data, SIZE, depends=depends)
    share = np.random.default_rng(2).dirichlet(np.ones(3), lopsided.n_tasks)
    objective = ResponseLoss(lopsided.jiggled(net), data, torch.as_tensor(share), 2)
    return objective, data, share


def slow_chance(lopsided, net, x, worker, share, depends):
    """P(worker answers), the truth summed out."""
    vector = lopsided.numbers(net.task.weight) @ x + lopsided.numbers(net.task.bias)
    mine = lopsided.numbers(net.worker.weight)[worker]
    logit = vector @ mine[:-1] + mine[-1]
    return (
        share @ expit(logit + lopsided.numbers(net.shift.weight)[worker])
        if depends
        else expit(logit)
    )


@pytest.mark.parametrize("depends", [False, True])
def test_the_loss_over_all_pairs_is_the_likelihood_of_them_all(lopsided, depends):
    """With every pair in the sample once, nothing is estimated any more."""
    objective, data, share = make_objective(lopsided, depends)
    x = data.features.source.double().numpy()
    answered = set(zip(data.task.tolist(), data.worker.tolist(), strict=True))
    value = 0.0
    for task in range(lopsided.n_tasks):
        for worker in range(lopsided.n_workers):
            chance = slow_chance(lopsided, objective.net, x[task], worker, share[task], depends)
            value += np.log(chance if (task, worker) in answered else 1 - chance)
    at = torch.arange(lopsided.n_tasks).repeat_interleave(lopsided.n_workers)
    worker = torch.arange(lopsided.n_workers).repeat(lopsided.n_tasks)
    loss = objective.sampled(lopsided.double(data.whole()), at, worker, data.n_annotations)
    assert_allclose(float(loss.detach()), -value / data.n_annotations)


@pytest.mark.parametrize("depends", [False, True])
def test_the_sampled_loss_is_right_on_average(lopsided, depends):
    objective, data, _ = make_objective(lopsided, depends)
    batch = lopsided.double(data.whole())
    at = torch.arange(lopsided.n_tasks).repeat_interleave(lopsided.n_workers)
    worker = torch.arange(lopsided.n_workers).repeat(lopsided.n_tasks)
    with torch.no_grad():
        exact = float(objective.sampled(batch, at, worker, data.n_annotations))
        torch.manual_seed(0)
        draws = np.array([float(objective.loss(batch)) for _ in range(400)])
    assert abs(draws.mean() - exact) < 4 * draws.std() / np.sqrt(400)


def test_batches_of_tasks_add_up_to_the_whole(lopsided):
    objective, data, _ = make_objective(lopsided, True)
    total = 0.0
    for tasks in (torch.arange(5), torch.arange(5, lopsided.n_tasks)):
        batch = lopsided.double(data.of_tasks(tasks))
        at = torch.arange(len(tasks)).repeat_interleave(lopsided.n_workers)
        worker = torch.arange(lopsided.n_workers).repeat(len(tasks))
        part = objective.sampled(batch, at, worker, objective.per_task * len(tasks))
        total += float(part.detach()) * len(tasks)
    at = torch.arange(lopsided.n_tasks).repeat_interleave(lopsided.n_workers)
    worker = torch.arange(lopsided.n_workers).repeat(lopsided.n_tasks)
    whole = objective.sampled(lopsided.double(data.whole()), at, worker, data.n_annotations)
    assert_allclose(total / lopsided.n_tasks, float(whole.detach()))


@pytest.mark.parametrize("depends", [False, True])
def test_gradients_are_right(lopsided, depends):
    objective, data, _ = make_objective(lopsided, depends)
    at, worker = torch.tensor([0, 3, 3, 13]), torch.tensor([4, 0, 2, 1])

    def fixed(objective, batch):
        return objective.sampled(batch, at, worker, 40)

    assert lopsided.gradients_are_right(objective, lopsided.double(data.whole()), fixed)


@pytest.fixture(scope="module")
def simulated():
    """Workers with a taste for features, and one more for the truth."""
    rng = np.random.default_rng(0)
    X, truth = rng.normal(size=(900, 4)), rng.integers(0, 2, 900)
    taste, shift = rng.normal(size=(4, 8)), rng.normal(size=(8, 2)) * 1.5
    chance = expit(X @ taste - 1.0 + shift[:, truth].T)
    answered = rng.random((900, 8)) < chance
    task, worker = np.nonzero(answered)
    right = rng.random(len(task)) < 0.9
    label = np.where(right, truth[task], 1 - truth[task])
    votes = Annotations.from_codes(task, worker, label, tasks=np.arange(900), classes=[0, 1])
    return X, truth, votes, answered, chance, shift


@pytest.mark.parametrize("n_restarts", [1, 3])
def test_finds_who_will_answer(simulated, n_restarts):
    X, _, votes, answered, _, _ = simulated
    training = Training(learning_rate=0.05, epochs=60, n_restarts=n_restarts)
    model = ResponseModel(training=training, random_state=0).fit(X[:600], votes[:600])
    found = model.predict_proba(X[600:])
    assert found.shape == (300, 8)
    assert roc_auc_score(answered[600:].ravel(), found.ravel()) > 0.78
    rate = answered[600:].mean(axis=0)
    assert_allclose(found.mean(axis=0), rate, atol=0.08)  # chances, not only an order
    assert_allclose(model.rate_, answered[:600].mean(axis=0))


def test_silence_speaks_of_the_truth(simulated):
    X, truth, votes, answered, chance, shift = simulated
    known = np.eye(2)[truth]
    model = ResponseModel(mechanism="mnar", random_state=0).fit(X, votes, truth=known)
    found = model.shift_[:, 1] - model.shift_[:, 0]
    assert np.corrcoef(found, shift[:, 1] - shift[:, 0])[0, 1] > 0.95
    assert_allclose(model.predict_proba(X, truth=known), chance, atol=0.25)
    evidence = model.evidence(X, votes)
    assert (evidence.argmax(axis=1) == truth).mean() > 0.75
    blind = ResponseModel(random_state=0).fit(X, votes)
    assert_allclose(blind.shift_, 0)
    assert np.ptp(blind.evidence(X, votes), axis=1).max() < 1e-6
    auc = [
        roc_auc_score(answered.ravel(), proba.ravel())
        for proba in (model.predict_proba(X, truth=known), blind.predict_proba(X))
    ]
    assert auc[0] > auc[1] + 0.02


def test_evidence_equals_the_plain_loops(simulated):
    X, truth, votes, answered, _, _ = simulated
    training = Training(learning_rate=0.05, epochs=5)
    model = ResponseModel(mechanism="mnar", training=training, random_state=0)
    model.fit(X, votes, truth=np.eye(2)[truth])
    found = model.evidence(X[:20], votes[:20])
    for task in range(20):
        for k in range(2):
            chance = model.predict_proba(X[[task]], truth=np.eye(2)[[k]])[0]
            value = np.log(np.where(answered[task], chance, 1 - chance)).sum()
            assert_allclose(found[task, k], value, rtol=1e-5)


def test_a_new_worker_is_the_average_one(simulated):
    X, _, votes, _, _, _ = simulated
    model = ResponseModel(training=Training(epochs=3), random_state=0).fit(X, votes)
    found = model.predict_proba(X[:4], np.array([3, "nobody"], dtype=object))
    assert_allclose(found[:, 0], model.predict_proba(X[:4])[:, 3])
    table = model.net_.worker.weight.detach()
    assert_allclose(table[-1], table[:-1].mean(dim=0))


def test_an_answer_counts_once(simulated):
    X, _, votes, *_ = simulated
    twice = Annotations.from_codes(
        np.tile(votes.task, 2),
        np.tile(votes.worker, 2),
        np.concatenate([votes.label, 1 - votes.label]),
        tasks=np.arange(900),
        classes=[0, 1],
    )
    training = Training(epochs=3)
    once, again = (
        ResponseModel(training=training, random_state=0).fit(X, given).predict_proba(X[:5])
        for given in (votes, twice)
    )
    assert_allclose(again, once)


def test_refuses_truths_of_another_shape(simulated):
    X, truth, votes, *_ = simulated
    with pytest.raises(AnnotationError, match=r"shape \(900, 2\)"):
        ResponseModel(mechanism="mnar").fit(X, votes, truth=truth)


# -- beside LIA --------------------------------------------------------------------------------

QUICK = {
    "objective": EM(1, 2, marginal_epochs=2),
    "training": Training(device="cpu"),
    "random_state": 3,
}


@pytest.mark.parametrize("mechanism", ["mar", "mnar"])
def test_lia_learns_who_answers_beside_its_own_model(simulated, mechanism):
    X, _, votes, answered, _, _ = simulated
    training = Training(learning_rate=0.05, epochs=60)
    response = ResponseModel(mechanism=mechanism, training=training)
    model = LIA(response=response, **QUICK).fit(X[:600], votes[:600])
    plain = LIA(**QUICK).fit(X[:600], votes[:600])
    assert plain.response_ is None
    assert not hasattr(response, "net_")  # what was given stays as it was
    assert_allclose(model.posterior_, plain.posterior_)
    assert_allclose(model.predict_worker_proba(X[:5]), plain.predict_worker_proba(X[:5]))
    alone = ResponseModel(mechanism=mechanism, training=training, random_state=3)
    alone.fit(X[:600], votes[:600], truth=plain.posterior_)
    found = model.predict_response(X[600:])
    truth = plain.predict_proba(X[600:])
    assert_allclose(found, alone.predict_proba(X[600:], truth=truth))
    assert roc_auc_score(answered[600:].ravel(), found.ravel()) > 0.78


def test_lia_says_it_of_the_workers_asked_for(simulated):
    X, _, votes, *_ = simulated
    brief = ResponseModel(training=Training(epochs=2), random_state=0)
    told = np.random.default_rng(0).normal(size=(8, 2))
    model = LIA(response=brief, **QUICK).fit(X, votes, worker_features=told)
    everyone = model.predict_response(X[:4])
    assert everyone.shape == (4, 8)
    asked = np.array([5, "nobody", 2], dtype=object)
    some = model.predict_response(X[:4], asked)
    assert_allclose(some[:, [0, 2]], everyone[:, [5, 2]])
    others = model.for_workers(["x", "y"], told[:2])
    assert_allclose(others.predict_response(X[:4]), some[:, [1, 1]])
    assert model.predict_response(X[:0]).shape == (0, 8)
    assert model.fit(X, votes).response_.random_state == 0  # its own seed, where it has one


def test_what_lia_cannot_say_is_named(simulated):
    X, _, votes, *_ = simulated
    with pytest.raises(ParameterError, match=r"(?s)This LIA.*response=ResponseModel"):
        LIA(**QUICK).fit(X, votes).predict_response(X)
    with pytest.raises(ParameterError, match="there are none"):
        LIA(response=ResponseModel(), **QUICK).fit(None, votes)
    brief = ResponseModel(training=Training(epochs=1)).fit(X, votes)
    with pytest.raises(AnnotationError, match="X has 3 features"):
        brief.predict_proba(X[:, :3])
