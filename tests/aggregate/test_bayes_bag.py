from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import digamma
from sklearn.base import clone

import crowdwise
from crowdwise import Annotations, aggregate
from crowdwise.aggregate import (
    GLAD,
    IBCC,
    MACE,
    BayesBag,
    DawidSkene,
    LabelModel,
    MajorityVote,
    OneCoin,
)
from crowdwise.aggregate import bayes_bag as module
from crowdwise.aggregate.shared_errors import SharedErrors, believe
from crowdwise.cli import options
from crowdwise.errors import ParameterError
from crowdwise.evaluate.scores import log_loss
from crowdwise.inference import MemoryEngine, bag_sum, draw_weights
from crowdwise.inference.confidence import weigh
from crowdwise.laws.checks import save_and_load
from crowdwise.simulate import confused_crowd, one_coin_confusion


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(0)
    confusion = 0.5 * np.eye(3) + 0.5 * rng.dirichlet([2.0, 1.0, 0.5], (9, 3))
    return confused_crowd(confusion, 120, 4, prior=[0.5, 0.3, 0.2], random_state=0)


@pytest.fixture(scope="module")
def votes(crowd):
    return crowd.annotations


def slow_bag(votes, u, n_steps):
    """One bag as loops: too slow to ship, too plain to be wrong."""
    rows = list(zip(votes.task, votes.worker, votes.label, strict=True))
    z = votes.shares()
    for _ in range(n_steps):
        n = np.zeros((votes.n_workers, votes.n_classes, votes.n_classes))
        for i, w, label in rows:
            n[w, :, label] += u[w] * z[i]
        crowd = n.sum(axis=0) + 1.0 + 3.0 * np.eye(votes.n_classes)
        m = n + 3 * crowd / crowd.sum(axis=1, keepdims=True)
        table = digamma(m) - digamma(m.sum(axis=2, keepdims=True))
        prior = z.sum(axis=0) + 2.5
        joint = np.tile(np.log(prior / prior.sum()), (votes.n_tasks, 1))
        for i, w, label in rows:
            joint[i] += u[w] * table[w, :, label]
        z = np.exp(joint - joint.max(axis=1, keepdims=True))
        z /= z.sum(axis=1, keepdims=True)
    return z


@pytest.mark.usefixtures("either_loop")
def test_equals_the_plain_loops(votes):
    base = clone(BayesBag.default_base).set_params(max_iter=4, tol=0.0)
    model = BayesBag(base, n_bags=3, shares=0.2, dependence=0.3).fit(votes)
    whole, *bags = (slow_bag(votes, u, 4) for u in model.weights_)
    assert len(bags) == 3
    assert_array_equal(model.weights_[0], 1.0)
    mean = 0.95 * np.mean(bags, axis=0) + 0.05 * whole
    independent = votes.redundancy / (1 + (votes.redundancy - 1) * 0.3)
    sure = mean ** (independent / votes.redundancy)[:, None]
    sure /= sure.sum(axis=1, keepdims=True)
    assert_allclose(model.posterior_, 0.8 * sure + 0.2 * votes.shares())


def test_weights_are_exponential_and_independent(votes):
    many = np.concatenate([draw_weights(votes, 4000, seed) for seed in range(3)])
    assert_allclose(np.quantile(many, [0.1, 0.5, 0.9]), -np.log([0.9, 0.5, 0.1]), rtol=0.05)
    off = np.corrcoef(many.T) - np.eye(votes.n_workers)
    assert np.abs(off).max() < 0.05
    assert (draw_weights(votes, 5, 1) != draw_weights(votes, 5, 2)).all()


def test_each_round_of_weights_covers_the_distribution(votes):
    levels = np.exp(-draw_weights(votes, 23, 0))
    for some in (levels[:10], levels[10:20]):
        assert_array_equal(
            np.sort(np.floor(some * 10), axis=0).T, [np.arange(10)] * votes.n_workers
        )
    assert_array_equal(draw_weights(votes, 10, 0), draw_weights(votes, 23, 0)[:10])


def test_equal_workers_have_weights_of_their_own():
    same = Annotations.from_matrix([[0, 0, 0], [1, 1, 1]])
    weights = draw_weights(same, 4, 0)
    assert len(np.unique(weights)) == weights.size


def shuffled(votes):
    """The same annotations under other names and in another order, with the way back."""
    rng = np.random.default_rng(5)
    sizes = votes.n_tasks, votes.n_workers, votes.n_classes
    task, worker, label = (rng.permutation(n) for n in sizes)
    rows = rng.permutation(votes.n_annotations)
    moved = Annotations.from_codes(
        task[votes.task][rows],
        worker[votes.worker][rows],
        label[votes.label][rows],
        tasks=[f"task {i}" for i in rng.permutation(votes.n_tasks)],
        workers=[f"worker {i}" for i in range(votes.n_workers)],
        classes=[f"class {i}" for i in range(votes.n_classes)],
    )
    return moved, task, worker, label


def test_neither_names_nor_order_matter(votes):
    moved, task, worker, label = shuffled(votes)
    before, after = BayesBag(n_bags=10).fit(votes), BayesBag(n_bags=10).fit(moved)
    assert_array_equal(after.weights_[:, worker], before.weights_)
    assert_allclose(after.posterior_[task][:, label], before.posterior_, atol=1e-9)


def test_neither_names_nor_order_matter_with_gold(crowd, votes):
    moved, task, _, label = shuffled(votes)
    gold = dict(enumerate(crowd.truth[:40]))
    there = {moved.tasks[task[i]]: f"class {label[k]}" for i, k in gold.items()}
    before = BayesBag(n_bags=10).fit(votes, gold=gold)
    after = BayesBag(n_bags=10).fit(moved, gold=there)
    assert after.power_ == before.power_
    assert_allclose(after.shares_, before.shares_)
    assert_allclose(after.second_, before.second_)
    assert_allclose(after.posterior_[task][:, label], before.posterior_, atol=1e-9)


def test_a_repeated_row_is_a_weight_of_two_and_weight_zero_teaches_nothing(votes):
    twice = np.arange(votes.n_annotations) % 3 == 0
    weighted = replace(votes, weight=np.where(twice, 2.0, 1.0))
    rows = np.repeat(np.arange(votes.n_annotations), np.where(twice, 2, 1))
    columns = votes.task, votes.worker, votes.label
    repeated = Annotations.from_codes(*(column[rows] for column in columns))
    more = [np.append(column, last) for column, last in zip(columns, (0, 9, 2), strict=True)]
    nothing = Annotations.from_codes(*more, weight=np.append(weighted.weight, 0.0))
    expected = BayesBag(n_bags=10).fit(weighted)
    assert_allclose(BayesBag(n_bags=10).fit_predict_proba(repeated), expected.probas_)
    assert_allclose(BayesBag(n_bags=10).fit_predict_proba(nothing), expected.probas_)


def test_the_number_of_cores_changes_no_bit(votes, monkeypatch):
    found = []
    for cores in (1, 2, 7):
        monkeypatch.setattr(module, "count_threads", lambda cores=cores: cores)
        found.append(BayesBag(n_bags=12).fit(votes).posterior_)
    assert_array_equal(found[0], found[1])
    assert_array_equal(found[0], found[2])


def test_bags_end_when_the_answer_stands_still(votes, monkeypatch):
    assert len(BayesBag(n_bags=50).fit(votes).bags_) == 51
    monkeypatch.setattr(bag_sum, "STEADY", 0.03)
    model = BayesBag(n_bags=50).fit(votes)
    assert 11 < len(model.bags_) == len(model.weights_) < 51
    clear = replace(votes, label=(votes.task % 3).astype(np.int32))
    assert len(BayesBag().fit(clear).bags_) == 21


def test_a_small_crowd_has_more_bags_and_a_large_one_fewer():
    sizes = (10, 4_000, 8_000, 200_000, 400_000, 10**6)
    assert [module.suitable_bags(n) for n in sizes] == [200, 100, 50, 50, 25, 20]


def test_where_matrices_are_large_there_are_fewer_bags_or_one_coin_models(
    crowd, votes, monkeypatch
):
    cells = len(votes.pairs) * votes.n_classes
    monkeypatch.setattr(module, "LARGE", 8 * cells * 12)
    few = BayesBag().fit(votes)
    assert len(few.bags_) == 1 + 12
    assert type(few.bags_[1]) is DawidSkene
    assert len(BayesBag(n_bags=14).fit(votes).bags_) == 1 + 14  # as asked
    monkeypatch.setattr(module, "LARGE", 8 * cells * 9)
    light = BayesBag(n_bags=14).fit(votes, dict(zip(votes.tasks, crowd.truth, strict=True)))
    assert {type(bag) for bag in light.bags_} == {OneCoin}
    assert len(light.bags_) == 1 + 14  # no second base: it would be the same
    again = save_and_load(light)
    assert_allclose(again.predict_proba(votes), light.predict_proba(votes))
    matrices = BayesBag(DawidSkene(), n_bags=14).fit(votes)
    assert type(matrices.bags_[1]) is DawidSkene  # as asked


def test_matrices_of_bags_that_were_asked_for_count_as_memory(votes):
    engine, cells = MemoryEngine(votes), len(votes.pairs) * votes.n_classes
    more = BayesBag(n_bags=110)._memory(engine) - BayesBag(n_bags=10)._memory(engine)
    assert more == 100 * 8 * cells


def test_is_less_sure_of_itself_than_its_base():
    rng = np.random.default_rng(2)
    confusion = 0.4 * np.eye(3) + 0.6 * rng.dirichlet(np.ones(3), (40, 3))
    crowd = confused_crowd(confusion, 400, 4, random_state=2)
    truth = crowd.truth
    bag, base = BayesBag().fit(crowd.annotations), DawidSkene().fit(crowd.annotations)
    assert log_loss(bag.posterior_, truth) < 0.8 * log_loss(base.posterior_, truth)
    assert np.mean(bag.label_codes_ == truth) > np.mean(base.label_codes_ == truth) - 0.02


def test_how_far_workers_err_together_is_measured():
    """Half of the second crowd follow one of them: labels count less, and bags count more."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    right = rng.random((400, 10)) < np.linspace(0.6, 0.9, 10)
    label = np.where(right, truth[:, None], 1 - truth[:, None])
    apart = BayesBag(n_bags=20).fit(label)
    label[:, 1:6] = np.where(rng.random((400, 5)) < 0.6, label[:, :1], label[:, 1:6])
    together = BayesBag(n_bags=20).fit(label)
    assert apart.dependence_ < 0.02
    assert apart.independent_ > 0.6
    assert together.dependence_ > 0.05
    assert together.independent_ < 0.01
    given = BayesBag(n_bags=20, dependence=0.2).fit(label)
    assert (given.dependence_, given.independent_) == (0.2, 0.0)
    assert BayesBag(n_bags=2, dependence=0.0).fit(label).independent_ == 1.0


def test_what_is_believed_of_a_crowd():
    def crowd(excess, error, visible=1.0):
        drawn = error / np.sqrt(1 + 1 / 4) * np.array([-1.0, 1.0, -1.0, 1.0]) * np.sqrt(3 / 4)
        return SharedErrors(excess, drawn, drawn[:2] + visible * 0.12)

    assert believe(None) == (0.7 * 0.8 * 0.12, 0.2, 0.5)
    clear, none, vague = believe(crowd(0.1, 0.005)), believe(crowd(0, 0.005)), crowd(0.02, 1.0)
    assert_allclose(clear, (0.07, 0.0, 1.0), atol=2e-3)
    assert none.independent > 0.5
    assert none.shown < 0.1
    assert none.correlation < 0.01
    assert believe(crowd(-0.03, 0.005)) == believe(crowd(0, 0.005))
    assert_allclose(believe(vague).correlation, 0.7 * 0.8 * 0.12, atol=0.01)
    half, nothing = believe(crowd(0.05, 0.005, 0.5)), believe(crowd(0.05, 0.005, -0.1))
    assert_allclose(half, (0.07, 0.0, 1.0), atol=0.01)
    assert_allclose(nothing, (0.7 * 0.12, 0.0, 1.0), atol=0.01)


def test_gold_labels_teach_about_workers(crowd, votes):
    gold = dict(enumerate(crowd.truth[:60]))
    fitted, plain = BayesBag().fit(votes, gold=gold), BayesBag().fit(votes)
    assert_array_equal(fitted.labels_[:60], crowd.truth[:60])
    assert log_loss(fitted.posterior_[60:], crowd.truth[60:]) < log_loss(
        plain.posterior_[60:], crowd.truth[60:]
    )


def test_gold_tells_how_sure_to_be():
    """Traps, on which most are wrong together, make every model too sure."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 600)
    right = np.where(rng.random(600) < 0.3, 0.2, 0.8)  # of everybody, by task
    label = np.where(rng.random((600, 12)) < right[:, None], truth[:, None], 1 - truth[:, None])
    votes = Annotations.from_matrix(label)
    plain, taught = BayesBag(n_bags=20).fit(votes), BayesBag(n_bags=20)
    taught.fit(votes, gold=dict(enumerate(truth[:100].tolist())))
    assert (plain.power_, plain.shares_) == (1.0, 0.05)
    assert taught.power_ < 0.8
    loss = [log_loss(model.posterior_[100:], truth[100:]) for model in (taught, plain)]
    assert loss[0] < loss[1] - 0.1
    again = taught.predict_proba(votes[100:])
    assert_allclose(again, taught.posterior_[100:], atol=1e-9)


def test_gold_tells_which_base_to_trust():
    """Workers of one skill each who label little: matrices of their own know too little."""
    rng = np.random.default_rng(1)
    confusion = one_coin_confusion(rng.uniform(0.3, 0.95, 120), 6)
    crowd = confused_crowd(confusion, 500, 4, random_state=1)
    votes, truth = crowd.annotations, crowd.truth
    taught = BayesBag(n_bags=20).fit(votes, gold=dict(enumerate(truth[:200].tolist())))
    assert taught.n_second_ == 20
    assert len(taught.bags_) == len(taught.weights_) == 41
    assert taught.second_ > 0.15  # was 0.095 beforehand
    assert_allclose(taught.predict_proba(votes[200:]), taught.posterior_[200:], atol=1e-9)
    few = BayesBag(n_bags=5).fit(votes, gold=dict(enumerate(truth[:19].tolist())))
    assert (few.n_second_, few.second_, few.power_) == (0, 0.0, 1.0)


def test_weights_of_a_mixture_are_those_of_highest_probability():
    rng = np.random.default_rng(0)
    chance, given = rng.random((50, 3)), np.array([0.7, 0.2, 0.1])
    weights, value = weigh(chance, given)

    def objective(w):
        return np.log(chance @ w).sum() + 20 * given @ np.log(w)

    assert_allclose(value, objective(weights))
    for other in 0.9 * weights + 0.1 * rng.dirichlet(np.ones(3), 20):
        assert objective(other) < value + 1e-9
    assert weigh(chance, np.array([0.9, 0.0, 0.1]))[0][1] == 0.0


def test_a_task_without_labels_gets_the_prior(votes):
    more = Annotations.from_codes(
        votes.task, votes.worker, votes.label, tasks=np.arange(votes.n_tasks + 1)
    )
    model = BayesBag(n_bags=10, dependence=0.1).fit(more)
    without = BayesBag(n_bags=10, dependence=0.1).fit(votes)
    assert_allclose(model.posterior_[:-1], without.posterior_)
    whole = np.exp(model.bags_[0].log_prior_)
    mean = np.mean([bag.prior_ for bag in model.bags_[1:]], axis=0)
    assert_allclose(model.posterior_[-1], 0.05 * whole / whole.sum() + 0.95 * mean)


def test_bags_have_the_class_prior_of_the_whole_crowd(votes):
    model = BayesBag(n_bags=3).fit(votes)
    whole = IBCC(max_iter=40, tol=1e-4).fit(votes)
    assert_allclose(model.bags_[0].prior_, whole.prior_)
    for bag in model.bags_[1:]:
        assert_allclose(bag.prior_, 0.95 * whole.prior_ + 0.05 / 3)
    own = BayesBag(DawidSkene(pooling=3.0), n_bags=3).fit(votes).bags_
    assert not np.allclose(own[1].prior_, own[2].prior_)


def test_a_rare_class_is_not_lost_in_errors():
    right = one_coin_confusion(np.linspace(0.8, 0.97, 20), 2)
    crowd = confused_crowd(right, 1000, 5, prior=[0.98, 0.02], random_state=1)
    model = BayesBag(n_bags=20).fit(crowd.annotations)
    assert np.mean(model.label_codes_ == crowd.truth) > 0.99


def test_new_tasks_are_labeled_by_the_bags_that_were_fitted(votes):
    model = BayesBag(n_bags=10).fit(votes)
    alone = model.predict_proba(votes[7:12])
    assert_allclose(alone, model.posterior_[7:12], atol=1e-9)
    unknown = model.predict_proba({"new": {"somebody": 1}})
    assert_allclose(unknown.sum(axis=1), 1)
    assert unknown.loc["new"].idxmax() == 1


@pytest.mark.parametrize(
    "base", [None, IBCC(), GLAD(), MACE(n_restarts=2), MajorityVote()], ids=lambda b: str(b)[:6]
)
def test_models_survive_a_file(votes, base):
    model = BayesBag(base, n_bags=4).fit(votes, gold={3: 1})
    again = save_and_load(model)
    assert_allclose(again.predict_proba(votes), model.predict_proba(votes))
    assert_array_equal(again.posterior_, model.posterior_)


@pytest.mark.parametrize("name", ["belief_", "weights_"])
def test_a_file_with_bags_of_other_workers_is_refused(votes, tmp_path, name):
    model = BayesBag(n_bags=3).fit(votes)
    if name == "weights_":
        model.weights_ = model.weights_[:, :-1]
    else:
        bag, other = model.bags_[1], DawidSkene().fit([[0, 1], [1, 0], [2, 2]])
        bag.belief_ = other.belief_
    model.save(tmp_path / "model")
    message = "weights_" if name == "weights_" else "Pairs of worker"
    with pytest.raises(crowdwise.errors.CrowdwiseError, match=message):
        crowdwise.load(tmp_path / "model")


METHODS = [
    method
    for method in (getattr(aggregate, name) for name in aggregate.__all__)
    if method.traits.weighted and not method.traits.abstention_counts and method is not BayesBag
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_worker_weights_equal_weights_of_their_annotations(method, votes):
    if method.traits.binary_only:
        votes = replace(votes, classes=votes.classes[:2], label=np.minimum(votes.label, 1))
    gold = np.where(np.arange(votes.n_tasks) % 7 == 0, 1, -1)
    model = method(random_state=0) if method.traits.stochastic else method()
    weights = np.random.default_rng(3).exponential(size=votes.n_workers)
    weights = np.round(weights, 3) + 0.01
    weighted = MemoryEngine(votes, gold).reweighted(weights)
    heavy = MemoryEngine(replace(votes, weight=weights[votes.worker]), gold)
    for name in ("tally_pairs", "tally_votes", "tally_coins"):  # all bags begin alike
        vars(heavy)[name] = getattr(weighted, name)
    found, expected = (
        clone(model).fit_engine(engine, votes.classes) for engine in (weighted, heavy)
    )
    free = gold < 0
    assert_allclose(found[free], expected[free], rtol=1e-6, atol=1e-8)


def test_bags_begin_at_the_shares_of_plain_labels(votes):
    weights = np.random.default_rng(3).exponential(size=votes.n_workers)
    engine = MemoryEngine(votes)
    plain, bag = engine.tally_pairs(), engine.reweighted(weights).tally_pairs()
    assert_array_equal(bag.truths, plain.truths)
    assert_allclose(bag.counts, plain.counts * weights[engine.pairs.worker][:, None])
    coins = engine.reweighted(weights).tally_coins()
    assert_allclose(coins.right, weights * engine.tally_coins().right)
    assert_allclose(coins.given, weights * engine.tally_coins().given)


def test_refuses_a_base_without_weights(votes):
    with pytest.raises(ParameterError, match="LabelModel cannot be bagged"):
        BayesBag(LabelModel()).fit(votes)


def test_commands_know_the_default_by_its_name():
    assert aggregate.DEFAULT is BayesBag
    assert aggregate.DEFAULT.__name__ == options.DEFAULT


def test_bags_keep_only_what_predicting_needs():
    model = BayesBag(n_bags=2).fit([[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0]])
    for bag in model.bags_:
        assert not {"workers_", "classes_", "tasks_", "seen_"} & vars(bag).keys()
