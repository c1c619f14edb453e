"""The training loop: restarts, held-out labels, seeds, interruption and divergence."""

import io
import logging
import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from torch import nn

from crowdwise.annotations import Annotations
from crowdwise.base.params import InvalidParameterError
from crowdwise.learn import EM, LIA, MBEM, MLP, GeoCrowdNet, MaxMIG, SpeeLFC, Training
from crowdwise.learn.parts import side_by_side
from crowdwise.nets import loop as training_module
from crowdwise.nets.batches import as_data
from crowdwise.nets.features import as_features
from crowdwise.nets.loop import Loop, TrainingError, make_optimizer
from crowdwise.simulate import label_by_crowd, one_coin_confusion


@pytest.fixture(scope="module")
def crowd():
    X, truth = make_classification(
        200, 8, n_informative=5, n_classes=3, weights=[0.5, 0.3, 0.2], random_state=0
    )
    confusion = one_coin_confusion([0.9, 0.8, 0.7, 0.6, 0.4], 3)
    return X, truth, label_by_crowd(truth, confusion, 3, random_state=0)


def fit(crowd, *, truth="linear", seed=0, **settings):
    X, _, votes = crowd
    settings = {"epochs": 40, **settings}
    return SpeeLFC(truth=truth, training=Training(**settings), random_state=seed).fit(X, votes)


def test_training_lowers_the_loss(crowd):
    loss = np.array(fit(crowd).history_.loss)[:, 0]
    assert loss[-1] < loss[0] - 0.05
    assert (np.diff(loss) < 1e-6).all()


def test_one_seed_gives_one_result_and_leaves_torch_alone(crowd):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    threads = torch.get_num_threads()
    first, again = (fit(crowd, truth=MLP((8,), dropout=0.3), batch_size=50) for _ in range(2))
    assert_array_equal(first.predict_proba(crowd[0]), again.predict_proba(crowd[0]))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads


def test_other_seeds_give_other_results(crowd):
    first, other = (fit(crowd, seed=seed) for seed in (0, 1))
    assert np.abs(first.predict_proba(crowd[0]) - other.predict_proba(crowd[0])).max() > 1e-4


@pytest.mark.parametrize("optimizer", ["adam", "amsgrad", "adamw", "radam", "adadelta", "sgd"])
def test_a_batched_restart_equals_a_lone_one(crowd, optimizer):
    X, _, votes = crowd
    settings = {"optimizer": optimizer, "epochs": 6, "learning_rate": 0.05, "batch_size": 70}
    loops = []
    for size in (3, 1):
        learner = SpeeLFC(training=Training(**settings), random_state=0)
        loops.append(loop_of(learner, X, votes, size))
    with torch.no_grad():
        for name, value in loops[1].ensemble.parameters.items():
            value.copy_(loops[0].ensemble.parameters[name][1])
    for loop in loops:
        loop.run()
    for name, value in loops[1].ensemble.parameters.items():
        assert_allclose(
            value.detach(), loops[0].ensemble.parameters[name][1].detach(), rtol=1e-4, atol=1e-5
        )


def loop_of(learner, X, votes, size):
    from crowdwise.nets.batches import as_data
    from crowdwise.nets.features import as_features

    learner.classes_, learner.workers_, learner.worker_features_ = (
        votes.classes,
        votes.workers,
        None,
    )
    data = as_data(as_features(X, votes.tasks), votes, None, torch.device("cpu"))
    torch.manual_seed(0)
    members = [learner._member(data) for _ in range(size)]
    phases, settings = members[0].phases(learner.training.epochs), learner.training
    history = training_module.History()
    rng = np.random.RandomState(0)
    return Loop(side_by_side(members), data, None, phases, settings, rng, history)


def test_restarts_are_chosen_by_held_out_labels(crowd):
    model = fit(crowd, n_restarts=4, learning_rate=0.1, epochs=30)
    held = np.array(model.history_.held_out)
    assert held.shape == (30, 4)
    assert model.history_.best == held.min(axis=0).argmin()


def test_patience_stops_early_and_keeps_the_best(crowd):
    model = fit(crowd, truth=MLP((64,)), patience=5, learning_rate=0.05, epochs=400)
    held = np.array(model.history_.held_out)[:, 0]
    assert len(held) < 400
    assert held.argmin() == len(held) - 6


@pytest.mark.parametrize("n_restarts", [1, 3])
def test_what_comes_back_is_the_best_epoch(crowd, monkeypatch, n_restarts):
    found, real = [], Loop.best_member

    def spy(loop):
        chosen = real(loop)
        with torch.no_grad():
            found.append(float(chosen.held_out(next(loop.held.parts(labeled=True)))))
        return chosen

    monkeypatch.setattr(Loop, "best_member", spy)
    model = fit(
        crowd, truth=MLP((64,)), patience=5, learning_rate=0.05, epochs=40, n_restarts=n_restarts
    )
    held = np.array(model.history_.held_out)
    assert held[-1].min() > held.min()  # the last epoch is not the best
    assert_allclose(found, [held.min()], rtol=1e-5)


def test_cosine_ends_at_nothing(crowd):
    X, _, votes = crowd
    learner = SpeeLFC(training=Training(epochs=5, schedule="cosine", learning_rate=0.1))
    loop = loop_of(learner, X, votes, 1)
    loop.run()
    assert loop.optimizer.param_groups[0]["lr"] == pytest.approx(0.0, abs=1e-12)


def test_parts_may_have_their_own_rates():
    parameters = {"net.truth.weight": torch.zeros(1), "net.noise.raw.weight": torch.zeros(1)}
    settings = Training(learning_rate={"truth": 0.5, "noise": 0.25}, weight_decay={"noise": 0.1})
    groups = make_optimizer(settings, parameters).param_groups
    assert [(g["lr"], g["weight_decay"]) for g in groups] == [(0.5, 0.0), (0.25, 0.1)]


def test_interruption_returns_the_best_so_far(crowd, monkeypatch):
    real, count = Loop.epoch, []

    def interrupted(self, loss):
        count.append(1)
        if len(count) > 7:
            raise KeyboardInterrupt
        real(self, loss)

    monkeypatch.setattr(Loop, "epoch", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted after 7 epochs"):
        model = fit(crowd)
    assert model.predict_proba(crowd[0]).shape == (200, 3)


def test_divergence_is_reported(crowd):
    with pytest.raises(TrainingError, match="lower the learning rate"):
        fit(crowd, optimizer="sgd", learning_rate=float("inf"))


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": "newton"},
        {"schedule": "linear"},
        {"n_restarts": 0},
        {"batch_size": 0},
        {"validation_fraction": 1.0},
        {"device": "tpu9"},
        {"learning_rate": {"truht": 1.0}},
        {"learning_rate": -1.0},
        {"learning_rate": {"truth": float("nan")}},
        {"learning_rate": "fast"},
        {"weight_decay": -1.0},
        {"worker_dropout": 2.0},
        {"worker_dropout": {"truth": 0.1}},
        {"class_weight": {0: 1.0, 1: 2.0}},
    ],
    ids=str,
)
def test_refuses_settings_that_make_no_sense(crowd, settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        fit(crowd, **settings)


def test_worker_dropout_learns_the_unknown_worker(crowd):
    X, _, votes = crowd
    model = SpeeLFC(training=Training(epochs=150, worker_dropout=0.3), random_state=0).fit(X, votes)
    average = SpeeLFC(training=Training(epochs=150), random_state=0).fit(X, votes)
    for fitted in (model, average):
        accuracy = fitted.predict_worker_accuracy(X, ["nobody"])
        assert 0.5 < accuracy.mean() < 0.92
    raw = average.net_.noise.raw.weight
    assert_allclose(raw[-1].detach(), raw[:-1].mean(dim=0).detach())
    assert not np.allclose(model.net_.noise.raw.weight[-1].detach(), raw[-1].detach(), atol=0.01)


def test_nothing_is_printed_unless_asked(crowd, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(crowd)
    assert capsys.readouterr() == ("", "")


def test_what_was_asked_for_is_reported_once(crowd, capsys, caplog):
    fit(crowd, verbose=True, epochs=20)
    assert capsys.readouterr().err.count("epoch 20: loss") == 1
    handler = logging.StreamHandler(told := io.StringIO())
    log = logging.getLogger("crowdwise")
    log.addHandler(handler)
    try:
        with caplog.at_level(logging.INFO, "crowdwise"):
            fit(crowd, verbose=True, epochs=20)
    finally:
        log.removeHandler(handler)
    assert told.getvalue().count("epoch 20: loss") == 1
    assert capsys.readouterr().err == ""


def test_whole_tasks_can_be_held_out(crowd):
    X, _, annotations = crowd
    data = as_data(as_features(X, annotations.tasks), annotations, None, torch.device("cpu"))
    kept, held = data.held_out(0.25, np.random.RandomState(0), "tasks")
    learned, tested = set(kept.task.tolist()), set(held.task.tolist())
    assert not learned & tested
    assert learned | tested == set(data.task.tolist())
    assert len(tested) == round(0.25 * len(learned | tested))
    kept, held = data.held_out(0.25, np.random.RandomState(0))
    assert held.n_annotations == round(0.25 * data.n_annotations)
    assert set(kept.task.tolist()) & set(held.task.tolist())


def test_what_is_held_out_is_chosen_by_name(crowd):
    looked = {}
    for hold_out in ("labels", "tasks"):
        looked[hold_out] = fit(crowd, epochs=3, patience=5, hold_out=hold_out).history_.held_out
    assert looked["labels"] != looked["tasks"]
    with pytest.raises(InvalidParameterError, match="'hold_out' parameter of Training"):
        fit(crowd, hold_out="rows")


@pytest.mark.parametrize(
    "model",
    [
        LIA(objective=EM(1, marginal=None)),
        MBEM(rounds=1),
        MaxMIG(),
        GeoCrowdNet(start="counts"),
        SpeeLFC(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_is_held_out_takes_no_part_in_the_start(model):
    """Nobody foresees labels that say nothing, from features that say nothing."""
    rng = np.random.default_rng(0)
    n_tasks, n = 600, 1800
    X, said = rng.normal(size=(n_tasks, 20)), np.repeat(rng.integers(2, size=n_tasks), 3)
    votes = Annotations.from_codes(np.arange(n) // 3, rng.integers(900, size=n), said)
    training = Training(epochs=60, patience=1000, hold_out="tasks", learning_rate=1e-2)
    model = clone(model).set_params(training=training, random_state=0).fit(X, votes)
    assert min(row[0] for row in model.history_.held_out) > 0.65  # a coin has 0.69


def test_the_only_task_with_labels_is_not_held_out():
    votes = Annotations.from_codes([0, 0], [0, 1], [0, 1], tasks=range(3), classes=range(2))
    training = Training(epochs=3, patience=2, hold_out="tasks")
    model = MaxMIG(training=training, random_state=0).fit(np.eye(3), votes)
    assert np.isfinite(model.predict_proba(np.eye(3))).all()
    assert model.history_.held_out == []


def test_the_best_epoch_comes_back_with_its_running_means(crowd):
    """As if training had stopped right there, also where a module keeps running means."""
    torch.manual_seed(0)
    layers = nn.Linear(8, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3)
    truth = nn.Sequential(*layers)
    # On a GPU, two trainings differ by rounding.
    settings = {"truth": truth, "patience": 100, "learning_rate": 0.05, "device": "cpu"}
    long = fit(crowd, epochs=60, **settings)
    best = int(np.argmin(np.array(long.history_.held_out)[:, 0]))
    assert best < 55
    short = fit(crowd, epochs=best + 1, **settings)
    assert_allclose(long.predict_proba(crowd[0]), short.predict_proba(crowd[0]), atol=1e-6)


@pytest.mark.parametrize("batch_of", ["annotations", "tasks"])
def test_a_batch_is_made_of_annotations_or_of_tasks(crowd, batch_of):
    X, _, votes = crowd
    data = as_data(as_features(X), votes, None, torch.device("cpu"))
    epoch = data.epochs(Training(batch_size=7, batch_of=batch_of), "annotation")
    batches = list(epoch(torch.Generator().manual_seed(0)))
    n = {"annotations": votes.n_annotations, "tasks": votes.n_tasks}[batch_of]
    assert len(batches) == -(-n // 7)
    assert sum(len(batch.label) for batch in batches) == votes.n_annotations
    if batch_of == "tasks":
        assert {len(batch.task) for batch in batches[:-1]} == {7}


def test_the_network_of_ease_has_a_rate_of_its_own():
    names = ["net.truth.0.weight", "net.noise.skill.weight", "net.noise.ease.0.weight", "other"]
    tensors = {name: torch.zeros(1, requires_grad=True) for name in names}

    def rates(**settings):
        groups = make_optimizer(Training(**settings), tensors).param_groups
        place = {id(p): group for group in groups for p in group["params"]}
        return [(place[id(t)]["lr"], place[id(t)]["weight_decay"]) for t in tensors.values()]

    own = rates(learning_rate={"noise": 0.2, "ease": 0.3}, weight_decay={"ease": 0.4})
    assert own == [(1e-3, 0.0), (0.2, 0.0), (0.3, 0.4), (1e-3, 0.0)]
    with_noise = rates(learning_rate={"truth": 0.1, "noise": 0.2}, weight_decay=0.5)
    assert with_noise == [(0.1, 0.5), (0.2, 0.5), (0.2, 0.5), (1e-3, 0.5)]
