"""ICED's parts equal plain loops, its rounds do what they say, and it learns rare classes."""

import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification
from torch import nn

import crowdwise
from crowdwise import Annotations
from crowdwise.aggregate import IBCC, DawidSkene, HardDawidSkene, MajorityVote
from crowdwise.errors import ParameterError
from crowdwise.learn import (
    ICED,
    MLP,
    Autoencoder,
    CertainWarmUp,
    CrowdSMOTE,
    FullWarmUp,
    Interpolation,
    LastLayerOnly,
    NoWarmUp,
    StagedWarmUp,
    Training,
)
from crowdwise.learn.confusion_learner import expect
from crowdwise.learn.iced import (
    columns,
    join,
    label_each,
    order_by_features,
    order_by_labels,
)
from crowdwise.learn.iced_parts import (
    EmbeddingNet,
    MixedFeatures,
    MixedRows,
    Reconstruction,
    SplitCrowd,
    break_ties,
    cut,
    mirror,
    unscale,
)
from crowdwise.learn.parts import CountedConfusionNet, CrowdNet
from crowdwise.nets.features import Features
from crowdwise.nets.modules import Standardize
from crowdwise.simulate import label_by_crowd

QUICK = Training(epochs=1, batch_size=32, learning_rate=3e-3)


@pytest.fixture(scope="module")
def rare():
    """300 tasks, one in ten of class 1, labeled by 7 lopsided workers; and a balanced test."""
    X, truth = make_classification(
        900, 8, n_informative=5, n_redundant=0, class_sep=2.0, flip_y=0.0, random_state=0
    )
    rng = np.random.default_rng(0)
    large, small = np.flatnonzero(truth == 0), np.flatnonzero(truth == 1)
    rows = rng.permutation(np.concatenate([large[:270], small[:30]]))
    test = np.concatenate([large[300:420], small[300:420]])
    right = rng.uniform([0.55, 0.5], [0.85, 0.9], (7, 2))[:, :, None]
    confusion = np.where(np.eye(2, dtype=bool), right, 1 - right)
    votes = label_by_crowd(truth[rows], confusion, 7, random_state=0)
    return X[rows], votes, truth[rows], X[test], truth[test]


def test_warm_up_takes_the_most_certain_last():
    sizes = [7, 6, 5, 4, 7, 6, 5]  # labels of class 1 among 7: the more, the more certain
    votes = Annotations.from_matrix([[1] * n + [0] * (7 - n) for n in sizes])
    labeled = np.array([1, 1, 1, 1, 0, 1, 1], dtype=bool)

    def stages(warm_up):
        return [np.flatnonzero(stage).tolist() for stage in warm_up.stages(votes, labeled)]

    assert stages(StagedWarmUp()) == [[2, 6], [1, 5], [0]]
    assert stages(CertainWarmUp()) == [[0, 1, 2, 5, 6]]
    assert stages(FullWarmUp()) == [[0, 1, 2, 3, 5, 6]]
    assert stages(NoWarmUp()) == []


@pytest.mark.parametrize(
    ("warm_up", "epochs"),
    [(StagedWarmUp(2), 6), (CertainWarmUp(4), 4), (FullWarmUp(5), 5), (NoWarmUp(), 0)],
    ids=str,
)
def test_warm_up_counts_its_epochs(rare, warm_up, epochs):
    X, votes, *_ = rare
    model = ICED(warm_up=warm_up, rounds=0, training=QUICK, random_state=0)
    model.fit(X, votes)
    assert len(model.history_.loss) == epochs
    assert model.n_new_.shape == (0, 2)
    assert model.truths_.shape == (1, 300)
    assert_array_equal(model.truths_[0], HardDawidSkene().fit(votes).posterior_.argmax(axis=1))


def test_before_the_first_round_truths_are_the_aggregators(rare):
    X, votes, *_ = rare
    for aggregator in (MajorityVote(), IBCC(), None):
        model = ICED(aggregator=aggregator, rounds=1, training=QUICK, random_state=0).fit(X, votes)
        alone = (HardDawidSkene() if aggregator is None else aggregator).fit(votes)
        assert_array_equal(model.truths_[0], alone.labels_.to_numpy())
        assert model.truths_.shape == (2, 300)
        size = np.bincount(model.truths_[0])
        assert model.n_new_.tolist() == [[0, size[0] - size[1]]]


def test_amounts_follow_the_truths_of_each_round(rare):
    X, votes, *_ = rare
    model = ICED(rounds=4, generator=CrowdSMOTE(balance=0.5), training=QUICK, random_state=0).fit(
        X, votes
    )
    for before, made in zip(model.truths_, model.n_new_, strict=False):
        size = np.bincount(before, minlength=2)
        assert made.tolist() == [0, max(0, size[0] // 2 - size[1])]


def test_the_network_may_have_a_say_in_the_truths(rare):
    X, votes, truth, *_ = rare
    settings = {"rounds": 5, "training": QUICK, "random_state": 0, "aggregator": IBCC()}
    alone, both = (
        ICED(class_prior=prior, **settings).fit(X, votes) for prior in ("aggregator", "network")
    )
    right = [(m.posterior_.argmax(axis=1) == truth).mean() for m in (alone, both)]
    assert right[1] > right[0] + 0.01
    # The posterior of the last round has the network of the round before as its prior.
    warm = ICED(class_prior="network", **{**settings, "rounds": 0}).fit(X, votes)
    confusion = IBCC().fit(votes).confusion_
    expected = expect(votes, np.log(warm.predict_proba(X)), confusion, None).posterior
    assert_allclose(warm.posterior_, expected, atol=1e-5)


def test_learns_the_rare_class(rare):
    X, votes, truth, X_test, y_test = rare
    model = ICED.recipe("network", random_state=0, rounds=15).fit(X, votes)
    paper = ICED.recipe("paper", rounds=10, random_state=0).fit(X, votes)
    assert model.score(X_test, y_test) > 0.9
    assert paper.score(X_test, y_test) > 0.7
    assert (model.predict(X_test)[y_test == 1] == 1).mean() > 0.75
    assert (model.posterior_.argmax(axis=1) == truth).mean() > 0.97


def test_three_classes_and_missing_labels(crowd):
    votes = crowd.votes.filter(crowd.votes.task % 9 != 4)  # four workers a task, some with none
    model = ICED.recipe("network", random_state=0, rounds=15).fit(crowd.X, votes)
    assert model.score(crowd.new_X, crowd.new_truth) > 0.85
    silent = np.flatnonzero(votes.redundancy == 0)
    assert (model.truths_[:, silent] == -1).all()
    size = np.bincount(model.truths_[0][model.truths_[0] >= 0])
    assert_array_equal(model.n_new_[0], size.max() - size)


@pytest.mark.parametrize(
    "decoder",
    [Autoencoder(), Autoencoder(refit=False), Interpolation(), LastLayerOnly()],
    ids=str,
)
@pytest.mark.parametrize("truth", [None, "linear"], ids=str)
def test_decoders_and_networks(rare, decoder, truth):
    X, votes, _, X_test, y_test = rare
    settings = {"class_prior": "network", "aggregator": IBCC(), "training": QUICK}
    model = ICED(decoder=decoder, truth=truth, rounds=4, random_state=0, **settings)
    assert model.fit(X, votes).score(X_test, y_test) > 0.8


def test_parameters_reach_the_new_tasks(rare):
    X, votes, *_ = rare
    changes = {
        "generator__delta_rule": "printed",
        "generator__copy": "majority",
        "generator__n_neighbors": 2,
        "generator__jitter": 0.5,
        "generator__floor": 1e-6,
        "generator__balance": 0.4,
        "targets": "soft",
        "decoder__epochs": 3,
        "warm_up__epochs": 1,
    }

    def predict(**changes):
        parts = {"generator": CrowdSMOTE(), "decoder": Autoencoder(), "warm_up": StagedWarmUp()}
        model = ICED(rounds=1, training=QUICK, random_state=0, **parts)
        return model.set_params(**changes).fit(X, votes).predict_proba(X)

    usual = predict()
    assert_array_equal(
        usual, ICED(rounds=1, training=QUICK, random_state=0).fit(X, votes).predict_proba(X)
    )
    for name, value in changes.items():
        assert np.abs(predict(**{name: value}) - usual).max() > 1e-6, name


def test_stops_once_predictions_settle(rare):
    X, votes, *_ = rare
    model = ICED(rounds=40, tol=1.0, training=QUICK, random_state=0).fit(X, votes)
    assert len(model.n_new_) == 5  # any change will do, five rounds in a row


def test_held_out_labels_choose_the_restart_and_the_round(rare):
    X, votes, *_ = rare
    training = Training(epochs=2, batch_size=32, learning_rate=0.03, patience=4, n_restarts=2)
    model = ICED(rounds=12, training=training, random_state=0).fit(X, votes)
    held = np.array(model.history_.held_out)
    assert held.shape[1] == 2
    assert np.isfinite(np.nanmin(held, axis=0)).all()
    assert model.history_.best == np.nanmin(held[14:], axis=0).argmin()
    stopped = len(model.n_new_)
    assert stopped < 12
    kept = np.nanmin(held[:, model.history_.best][14:])
    assert kept < np.nanmax(held[:, model.history_.best])


def test_the_best_round_is_kept(rare):
    X, votes, *_ = rare
    training = Training(epochs=1, batch_size=32, learning_rate=0.03, patience=6)
    model = ICED(rounds=12, training=training, decoder=Interpolation(), random_state=0)
    out = np.random.default_rng(0).random(votes.n_annotations) < 0.1
    x = torch.as_tensor(X, dtype=torch.float32)
    net = CrowdNet(nn.Identity(), MLP().build(8, 2), CountedConfusionNet(7, 2))
    learner = EmbeddingNet(net, Features(x), training, np.random.RandomState(0))
    held = votes.filter(out)
    run = model._run(learner, SplitCrowd(votes.filter(~out), held, None), patience=6)
    assert run.best.value <= min(run.held_out[15:])
    assert learner.label_loss(held, run.best.confusion) == pytest.approx(run.best.value)
    assert run.held_out[-1] > run.best.value
    truth = net.log_truth(x).softmax(dim=-1).detach().numpy()
    chance = 0.0
    for row in np.flatnonzero(out):
        own = run.best.confusion[votes.worker[row], :, votes.label[row]]
        chance += np.log(truth[votes.task[row]] @ own)
    assert run.best.value == pytest.approx(-chance / out.sum(), rel=1e-4)


def test_gold_reaches_all_stages(rare):
    X, votes, truth, *_ = rare
    wrong = {task: 1 - truth[task] for task in range(300)}
    model = ICED(rounds=2, training=QUICK, random_state=0).fit(X, votes, gold=wrong)
    assert_array_equal(model.truths_, np.tile(1 - truth, (3, 1)))
    assert_array_equal(model.posterior_.argmax(axis=1), 1 - truth)
    assert (model.predict(X) == 1 - truth).mean() > 0.8


def test_confusion_is_the_aggregators(rare):
    X, votes, *_ = rare
    model = ICED(rounds=0, aggregator=DawidSkene(), random_state=0).fit(X, votes)
    assert_allclose(model.confusion_, DawidSkene().fit(votes).confusion_, atol=1e-5)
    model = ICED.recipe("network", rounds=10, random_state=0).fit(X, votes)
    assert_array_equal(model.worker_accuracy_.index, votes.workers)


def test_recipes_are_not_shared():
    model = ICED.recipe("network").set_params(aggregator__max_iter=7)
    assert model.aggregator.max_iter == 7
    assert ICED.recipe("network").aggregator.max_iter == IBCC().max_iter


def test_parts_are_saved_with_it(rare, tmp_path):
    X, votes, *_ = rare
    training = Training(epochs=1, batch_size=32, class_weight=[1.0, 3.0])
    parts = {"generator": CrowdSMOTE(jitter=0.2), "warm_up": StagedWarmUp(2, floor=0.1)}
    model = ICED.recipe("network", rounds=2, training=training, random_state=0, **parts)
    model.fit(X, votes).save(tmp_path / "model")
    again = crowdwise.load(tmp_path / "model")
    assert str(again.get_params()["generator"]) == "CrowdSMOTE(jitter=0.2)"
    assert str(again.warm_up) == "StagedWarmUp(epochs=2, floor=0.1)"
    assert str(again.decoder) == "Interpolation()"
    assert again.get_params()["aggregator"].get_params() == IBCC().get_params()
    assert list(again.training.class_weight) == [1.0, 3.0]
    assert_array_equal(again.truths_, model.truths_)
    assert_array_equal(again.n_new_, model.n_new_)


def test_images_need_no_flattening(rare, tmp_path):
    X, votes, _, X_test, y_test = rare
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.Flatten(), nn.ReLU(), nn.Linear(32, 2))
    images, tests = (table.reshape(-1, 1, 2, 4).astype(np.float32) for table in (X, X_test))
    settings = {"truth": net, "rounds": 3, "training": QUICK, "random_state": 0}
    for decoder in (Autoencoder(), LastLayerOnly(), Interpolation()):
        model = ICED(decoder=decoder, **settings).fit(images, votes)
        assert model.score(tests, y_test) > 0.6
    model.save(tmp_path / "model")
    again = crowdwise.load(tmp_path / "model", truth=net)
    assert_allclose(again.predict_proba(tests), model.predict_proba(tests), atol=1e-6)


def test_a_network_without_an_embedding_is_refused(rare):
    X, votes, *_ = rare
    with pytest.raises(ParameterError, match="without an embedding"):
        ICED(truth=lambda n_in, n_out: nn.Sequential(nn.Linear(n_in, n_out), nn.Tanh())).fit(
            X, votes
        )


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"warm_up": "slow"}, "warm_up"),
        ({"decoder": True}, "decoder"),
        ({"rounds": -1}, "rounds"),
        ({"warm_up": StagedWarmUp(floor=0.0)}, "floor"),
        ({"generator": CrowdSMOTE(floor=0.0)}, "floor"),
        ({"generator": CrowdSMOTE(copy="x")}, "copy"),
        ({"decoder": Autoencoder(-1)}, "epochs"),
    ],
    ids=str,
)
def test_refuses_what_makes_no_sense(rare, settings, name):
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        ICED(**settings).fit(*rare[:2])


# -- parts -------------------------------------------------------------------------------


def test_a_network_is_cut_before_its_last_layer():
    net = MLP(hidden=(6, 4)).build(5, 3)
    body, head = cut(net)
    x = torch.randn(7, 5)
    assert body(x).shape == (7, 4)
    torch.testing.assert_close(head(body(x)), net(x))
    assert head.weight is net[-1].weight


def test_the_decoder_mirrors_the_body():
    body, _ = cut(MLP(hidden=(6, 4)).build(5, 3))
    sizes = [layer.weight.shape for layer in mirror(body, 4, 5) if isinstance(layer, nn.Linear)]
    assert sizes == [(6, 4), (5, 6)]
    body, _ = cut(MLP(hidden=(6,)).build(5, 3))
    assert [tuple(layer.weight.shape) for layer in mirror(body, 6, 5)] == [(5, 6)]


def test_scaling_is_undone():
    x = torch.randn(20, 4) * torch.tensor([1.0, 5.0, 0.1, 0.0]) + 3.0
    scaler = Standardize.of(x)
    torch.testing.assert_close(unscale(scaler, scaler(x)), x)
    torch.testing.assert_close(unscale(nn.Identity(), x), x)


def test_reconstruction_equals_the_plain_loop(lopsided):
    data = lopsided.data_of(lopsided.votes())
    net = lopsided.net_of(nn.Identity())
    body, decoder = (lopsided.jiggled(nn.Linear(*sizes)) for sizes in ((4, 3), (3, 4)))
    whole = Reconstruction(net, nn.Sequential(body), decoder, data).double()
    batch = lopsided.double(data.whole())
    total = 0.0
    for x in lopsided.numbers(batch.x):
        z = lopsided.numbers(body.weight) @ x + lopsided.numbers(body.bias)
        back = lopsided.numbers(decoder.weight) @ z + lopsided.numbers(decoder.bias)
        total += ((back - x) ** 2).sum() / len(x)
    for step in (whole.loss, whole.decoder_loss):
        assert step(batch).item() == pytest.approx(total / lopsided.n_tasks)
    whole.decoder_loss(batch).backward()
    assert body.weight.grad is None
    assert decoder.weight.grad is not None
    whole.loss(batch).backward()
    assert body.weight.grad is not None


@pytest.mark.parametrize("size", [2, 9])
def test_rows_of_features_and_embeddings_side_by_side(size):
    net = MLP(hidden=(size,)).build(5, 3)
    body, head = cut(net)
    mixed = MixedRows(nn.Identity(), body, head, (5,))
    x, z = torch.randn(4, 5), torch.randn(3, size)

    def logits(new, embedded):
        known = {"new": new, "embedded": embedded, "width": max(size, 5)}
        return mixed(MixedFeatures(Features(x), **known).rows(torch.arange(len(x) + len(new))))

    torch.testing.assert_close(logits(z, True), torch.cat([net(x), head(z)]))
    torch.testing.assert_close(logits(x[:2], False), net(torch.cat([x, x[:2]])))


def test_joint_annotations_equal_the_plain_rows(lopsided):
    votes = lopsided.votes(weighted=True, soft=True)
    new = Annotations.from_codes([0, 0, 1], [4, 2, 0], [2, 0, 1], classes=np.arange(3))
    new = Annotations.from_codes(
        new.task, new.worker, new.label, workers=np.arange(5), classes=np.arange(3)
    )
    both = join(votes, new)
    assert both.n_tasks == votes.n_tasks + 2
    rows = list(lopsided.rows_of(both))
    for one, other in zip(rows, [*lopsided.rows_of(votes)], strict=False):
        assert one[:2] == other[:2]
        assert_allclose(one[2], other[2])
        assert one[3] == pytest.approx(other[3])
    added = sorted(
        (task, worker, share.tolist(), weight) for task, worker, share, weight in rows[-3:]
    )
    assert added == [
        (14, 2, [1.0, 0.0, 0.0], 1.0),
        (14, 4, [0.0, 0.0, 1.0], 1.0),
        (15, 0, [0.0, 1.0, 0.0], 1.0),
    ]


def test_one_label_for_each_task_with_a_truth():
    labels = label_each(np.array([1, -1, 0]), 2)
    assert labels.task.tolist() == [0, 2]
    assert labels.label.tolist() == [1, 0]
    soft = label_each(np.array([1, -1, 0]), 2, np.array([[0.2, 0.8], [0.5, 0.5], [0.7, 0.3]]))
    assert_allclose(soft.soft, [[0.2, 0.8], [0.7, 0.3]])


def test_ties_are_drawn():
    posterior = np.array([[0.4, 0.2, 0.4], [0.1, 0.9, 0.0]])
    found = np.array([break_ties(posterior, np.random.RandomState(seed)) for seed in range(200)])
    assert set(found[:, 0]) == {0, 2}
    assert np.mean(found[:, 0] == 0) == pytest.approx(0.5, abs=0.15)
    assert set(found[:, 1]) == {1}


def test_tasks_and_workers_have_an_order_of_their_own(lopsided):
    votes = lopsided.votes(weighted=True)
    data = lopsided.data_of(votes)
    x = data.features.source.numpy()
    assert_array_equal(x[order_by_features(data)], x[np.lexsort(x.T)])
    order = np.random.default_rng(0).permutation(5)
    moved = Annotations.from_codes(
        votes.task, np.argsort(order)[votes.worker], votes.label, weight=votes.weight
    )
    assert_array_equal(order[order_by_labels(moved)], order_by_labels(votes))


def test_histories_of_unequal_length():
    assert columns([[1.0, 2.0], [3.0]])[0] == [1.0, 3.0]
    assert np.isnan(columns([[1.0, 2.0], [3.0]])[1][1])


def test_an_interrupt_ends_all_rounds(rare, monkeypatch):
    X, votes, *_ = rare
    model = ICED(rounds=10, training=QUICK, random_state=0)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(crowdwise.nets.loop.Loop, "record", stop)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, votes)
    assert len(model.n_new_) <= 1
    assert np.isfinite(model.predict_proba(X)).all()
