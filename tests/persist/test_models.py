"""Models to files and back: the same answers, and no forged file goes unnoticed."""

import copy
import json
import resource
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal
from pandas.testing import assert_frame_equal, assert_series_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import crowdwise
from crowdwise import aggregate
from crowdwise.aggregate import DawidSkene, MajorityVote
from crowdwise.annotations import Annotations
from crowdwise.errors import CrowdwiseError, FormatError, ParameterError
from crowdwise.learn import EM, LIA, LIAML, MLP, ResponseModel, SoftProb, SpeeLFC, Training
from crowdwise.learn.net_classifier import NetClassifier
from crowdwise.learn.two_stage import TwoStage
from crowdwise.persist.container import Content, read_container, write_container
from crowdwise.simulate import confused_crowd, one_coin_confusion

QUICK = Training(epochs=3, device="cpu")


@pytest.fixture(scope="module")
def crowd():
    votes = confused_crowd(one_coin_confusion([0.9, 0.8, 0.7, 0.5], 2), 30, 3, random_state=0)
    return np.random.default_rng(0).normal(size=(30, 4)), votes.annotations


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def around(model, path, **yours):
    model.save(path)
    return crowdwise.load(path, **yours)


# -- aggregators -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", aggregate.__all__)
def test_an_aggregator_comes_back_whole(name, crowd, path):
    model = getattr(aggregate, name)().fit(crowd[1])
    again = around(model, path)
    assert type(again) is type(model)
    assert str(again.get_params()) == str(model.get_params())
    assert vars(again).keys() == vars(model).keys()
    assert_series_equal(again.labels_, model.labels_)
    assert_array_equal(again.predict_proba(crowd[1]), model.predict_proba(crowd[1]))


def test_names_keep_their_types(path):
    table = {7: {"ann": True, 3: False}, "7": {"ann": False, 3: True}, "q": {"ann": True}}
    model = MajorityVote().fit(table)
    again = around(model, path)
    for names in ("tasks_", "workers_", "classes_"):
        before, after = getattr(model, names), getattr(again, names)
        assert before.dtype == after.dtype
        assert [(type(x), x) for x in before.tolist()] == [(type(x), x) for x in after.tolist()]
    assert_series_equal(again.labels_, model.labels_)


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_tasks_may_be_named_by_times(zone, crowd, path):
    X, votes = crowd[0], crowd[1]
    times = pd.date_range("2024-05-01", periods=votes.n_tasks, freq="h", tz=zone)
    frame = votes.to_frame()
    frame["task"] = times[votes.task]
    timed = Annotations.from_frame(frame)
    for model in (DawidSkene().fit(timed), SoftProb().fit(X, timed)):
        again = around(model, path)
        assert_array_equal(again.tasks_, model.tasks_)
        assert again.tasks_.dtype == model.tasks_.dtype
        assert_array_equal(again.posterior_, model.posterior_)


def test_parameters_that_are_arrays_mappings_and_generators(crowd, path):
    _, votes = crowd
    weights = {int(worker): 1.0 + worker for worker in votes.workers}
    generator = np.random.RandomState(3)
    model = MajorityVote(weights=weights, ties="random", random_state=generator).fit(votes)
    again = around(model, path)
    assert again.weights == weights
    assert again.random_state.get_state()[1].tolist() == generator.get_state()[1].tolist()
    first = DawidSkene(smoothing=np.array([[2.0, 1.0], [1.0, 3.0]])).fit(votes)
    second = around(DawidSkene(history=first.history_).fit(votes), path)
    assert_array_equal(second.history.counts, first.history_.counts)
    assert_array_equal(around(first, path).smoothing, first.smoothing)


def test_an_aggregator_needs_no_torch(path):
    code = (
        "import sys, crowdwise\n"
        "model = crowdwise.aggregate.DawidSkene().fit([[0, 1, 0], [1, 1, 0]])\n"
        f"model.save({str(path)!r})\n"
        f"crowdwise.load({str(path)!r})\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unfitted_model_is_not_saved(path):
    with pytest.raises(NotFittedError):
        DawidSkene().save(path)
    assert not path.exists()


class Mine(DawidSkene):
    pass


def test_a_class_that_is_not_ours_is_refused(crowd, path):
    with pytest.raises(ParameterError, match="A Mine cannot be saved"):
        Mine().fit(crowd[1]).save(path)
    assert not path.exists()


# -- learners ----------------------------------------------------------------------------------


def test_a_learner_comes_back_whole(crowd, path):
    X, votes = crowd
    rates = {"truth": 0.1, "noise": 0.05}
    training = Training(epochs=4, learning_rate=rates, n_restarts=2, device="cpu")
    model = SpeeLFC(truth=MLP((8, 4), dropout=0.2), training=training, random_state=1)
    again = around(model.fit(X, votes), path)
    assert again.truth.hidden == (8, 4)
    assert again.training.learning_rate == rates
    assert again.history_ == model.history_
    assert_array_equal(again.posterior_, model.posterior_)
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    some = [0, 3, 99]
    assert_array_equal(again.predict_worker_proba(X, some), model.predict_worker_proba(X, some))
    assert again.score(X, votes) == model.score(X, votes)
    assert not again.net_.training
    assert all(part.requires_grad for part in again.net_.parameters())
    assert_array_equal(again.fit(X, votes).posterior_, model.posterior_)  # and learns as before


def test_worker_features_and_tasks_without_features(crowd, path):
    X, votes = crowd
    quick = {"objective": EM(1, 2, marginal_epochs=2), "training": QUICK}
    known = np.random.default_rng(1).normal(size=(votes.n_workers, 2))
    model = LIA(**quick, random_state=0).fit(X, votes, worker_features=known)
    again, new = around(model, path), np.ones((1, 2))
    assert_array_equal(
        again.predict_worker_proba(X, ["new"], worker_features=new),
        model.predict_worker_proba(X, ["new"], worker_features=new),
    )
    embedded = LIA(**quick, random_state=0).fit(None, votes)
    rows = torch.arange(votes.n_tasks)
    assert_array_equal(around(embedded, path).predict_proba(rows), embedded.predict_proba(rows))
    other = model.for_workers(["x", "y"], np.ones((2, 2)))
    assert_array_equal(around(other, path).predict_worker_proba(X), other.predict_worker_proba(X))


@pytest.mark.parametrize("mechanism", ["mar", "mnar"])
def test_who_answers_what(mechanism, crowd, path):
    X, votes = crowd
    model = ResponseModel(mechanism=mechanism, task=MLP((4,)), training=QUICK, random_state=0)
    again = around(model.fit(X, votes), path)
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert_array_equal(again.evidence(X, votes), model.evidence(X, votes))
    for name in ("rate_", "shift_", "truth_share_", "workers_"):
        assert_array_equal(getattr(again, name), getattr(model, name))
    assert again.history_ == model.history_
    quick = {"objective": EM(1, 2, marginal_epochs=2), "training": QUICK}
    beside = LIA(response=model, **quick, random_state=0).fit(X, votes)
    again = around(beside, path)
    assert_array_equal(again.predict_response(X), beside.predict_response(X))
    assert again.response.mechanism == mechanism


@pytest.mark.parametrize("heads", ["per_label", "embedding"])
def test_several_labels(heads, crowd, path):
    X, votes = crowd
    quick = {"objective": EM(1, 2, marginal_epochs=2), "training": QUICK}
    model = LIAML(heads=heads, **quick, random_state=0)
    model.fit(X, {"red": votes, "blue": votes}, label_features=np.eye(2))
    again = around(model, path)
    assert_frame_equal(again.posterior_, model.posterior_)
    assert_frame_equal(again.predict_proba(X), model.predict_proba(X))
    assert_array_equal(again.predict_worker_proba(X), model.predict_worker_proba(X))


def test_two_stages_of_ours_or_of_linear_models(crowd, path):
    X, votes = crowd
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=0.5))
    network = NetClassifier(truth=MLP((4,)), training=QUICK, random_state=0)
    for classifier in (None, LogisticRegression(), pipeline, network):
        model = TwoStage(DawidSkene(), classifier).fit(X, votes)
        again = around(model, path)
        assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert_array_equal(again.aggregator_.confusion_, model.aggregator_.confusion_)
        assert str(again.get_params()) == str(model.get_params())


def test_two_stages_with_others_are_refused(crowd, path):
    X, votes = crowd
    cached = make_pipeline(StandardScaler(), LogisticRegression(), memory=str(path.parent))
    for classifier, why in (
        (GaussianNB(), "classifier is a GaussianNB, which cannot be stored without pickle"),
        (make_pipeline(GaussianNB()), "is a GaussianNB, which"),
        (NetClassifier(truth=own(), training=QUICK), "truth is a Sequential, which"),
        (cached, "has a cache on disk"),
    ):
        model = TwoStage(MajorityVote(), classifier).fit(X, votes)
        with pytest.raises(ParameterError, match=why):
            model.save(path)
        assert not path.is_file()


def test_a_forged_cache_is_refused(crowd, path):
    X, votes = crowd
    TwoStage(None, make_pipeline(LogisticRegression())).fit(X, votes).save(path)
    memory = [["memory", str(path.parent)]]

    def change(tree, _arrays):
        pairs = tree["params"]["classifier"]["params"]
        pairs["items"] = [pair for pair in pairs["items"] if pair[0] != "memory"] + memory

    forge(path, change)
    with pytest.raises(FormatError, match="cache on disk"):
        crowdwise.load(path)


def test_loading_leaves_the_generators_alone(crowd, path):
    X, votes = crowd
    mine = own()
    SpeeLFC(truth=mine, training=QUICK).fit(X, votes).save(path)
    before = torch.get_rng_state()
    weights = copy.deepcopy(mine.state_dict())
    crowdwise.load(path, truth=mine)
    assert torch.equal(before, torch.get_rng_state())
    for name, value in mine.state_dict().items():  # your module is copied, not filled in
        assert torch.equal(value, weights[name])


def own(width=5):
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 2))


def function(n_in, n_classes):
    return nn.Linear(n_in, n_classes)


@pytest.mark.parametrize(
    "truth", [own(), own().bfloat16(), function], ids=["module", "half", "def"]
)
def test_a_module_of_yours_is_given_again(truth, crowd, path):
    X, votes = crowd
    if isinstance(truth, nn.Module) and next(truth.parameters()).dtype == torch.bfloat16:
        X = torch.as_tensor(X).bfloat16().float()
        truth = nn.Sequential(Cast(torch.bfloat16), truth, Cast(torch.float32))
    model = SpeeLFC(truth=truth, training=QUICK, random_state=0).fit(X, votes)
    again = around(model, path, truth=copy.deepcopy(truth))
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ParameterError, match=r"(?s)your own code.*truth.*load\(path, truth=…\)"):
        crowdwise.load(path)


class Cast(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def forward(self, x):
        return x.to(self.dtype)


def test_another_module_than_before_is_refused(crowd, path):
    X, votes = crowd
    SpeeLFC(truth=own(), training=QUICK).fit(X, votes).save(path)
    for wrong in (own(6), nn.Linear(4, 2), nn.Sequential(own(), nn.Linear(2, 2))):
        with pytest.raises(ParameterError, match=r"(?s)of the network.*the same module"):
            crowdwise.load(path, truth=wrong)
    with pytest.raises(ParameterError, match="'noise' was given"):
        crowdwise.load(path, truth=own(), noise=own())


def test_giving_what_the_file_holds_is_refused(crowd, path):
    DawidSkene().fit(crowd[1]).save(path)
    with pytest.raises(
        ParameterError, match="'smoothing' was given, but it is in the file already"
    ):
        crowdwise.load(path, smoothing=3)


class Odd(nn.Linear):
    def get_extra_state(self):
        return {"not": "a tensor"}

    def set_extra_state(self, state):
        pass


def test_a_module_with_more_than_tensors_is_refused(crowd, path):
    X, votes = crowd
    with pytest.raises(ParameterError, match="is not a tensor"):
        SpeeLFC(truth=Odd(4, 2), training=QUICK).fit(X, votes).save(path)


# -- forged files: the checksum is right, the contents are not -----------------------------------


def forge(path, change):
    """Write the file again with changed contents and the checksum that goes with them."""
    content = read_container(path)
    tree, arrays = json.loads(content.text), dict(content.arrays)
    change(tree, arrays)
    write_container(path, Content(json.dumps(tree), arrays))


def assign(place, value):
    def change(tree, _arrays):
        *way, last = place
        for step in way:
            tree = tree[step]
        tree[last] = value(tree[last]) if callable(value) else value

    return change


def reshape(name, shape):
    def change(_tree, arrays):
        arrays[name] = np.zeros(shape)

    return change


def drop(*place):
    def change(tree, _arrays):
        *way, last = place
        for step in way:
            tree = tree[step]
        del tree[last]

    return change


WIDE = {"kind": "tuple", "items": [10**6, 10**6]}
FORGED = {
    "another class": assign(["name"], "System"),
    "a base class": assign(["name"], "CrowdClassifier"),
    "a path as class": assign(["name"], "os.system"),
    "a part as model": assign(["name"], "StandardScaler"),
    "no class": assign(["name"], None),
    "another parameter": assign(["params", "shell"], True),
    "a parameter out of range": assign(["params", "scale"], "yes"),
    "a parameter of another kind": assign(["params", "training"], [1]),
    "a method as attribute": assign(["learned", "predict"], 1),
    "a dunder attribute": assign(["learned", "__class__"], "x"),
    "a private attribute": assign(["learned", "_objective_"], 1),
    "parameters that are no mapping": assign(["params"], [1, 2]),
    "no parameters": drop("params"),
    "no names": drop("learned", "tasks_"),
    "no network": drop("learned", "net_"),
    "nothing learned": assign(["learned"], {}),
    "names that are a number": assign(["learned", "workers_"], 4),
    "an array that is not there": assign(["learned", "posterior_", "array"], "elsewhere"),
    "another kind of value": assign(["learned", "posterior_", "kind"], "pickle"),
    "a posterior of other tasks": reshape("posterior_", (29, 2)),
    "confusion of other workers": reshape("confusion_", (5, 2, 2)),
    "a posterior with more axes": reshape("posterior_", (30, 2, 1)),
    "a network for other workers": reshape("net_.noise.raw.weight", (9, 2, 2)),
    "a network of other features": assign(["learned", "feature_shape_", "items"], [5]),
    "a network that fills the memory": assign(
        ["params", "truth"],
        {
            "kind": "estimator",
            "name": "MLP",
            "params": {"kind": "dict", "items": [["hidden", WIDE]]},
            "learned": {"kind": "dict", "items": []},
        },
    ),
    "features without end": assign(["learned", "feature_shape_", "items"], [2**40, 2**40]),
    "a number without end": assign(["learned", "feature_shape_", "items"], [10**4000]),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED.keys())
def test_a_forged_learner_is_one_clear_error(change, crowd, path):
    X, votes = crowd
    SpeeLFC(training=QUICK).fit(X, votes).save(path)
    forge(path, change)
    with pytest.raises(
        FormatError, match=r"(?s)not a complete crowdwise model.*written by crowdwise"
    ):
        crowdwise.load(path)


def test_sizes_that_a_file_claims_take_no_memory(crowd, path):
    X, votes = crowd
    SpeeLFC(truth=MLP((3, 3)), training=QUICK).fit(X, votes).save(path)
    wide = assign(["params", "truth", "params", "items", 2, 1, "items"], [15_000, 15_000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    forge(path, wide)
    with pytest.raises(FormatError, match="15000"):
        crowdwise.load(path)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200_000  # of 900 MB


@pytest.mark.parametrize(
    "change",
    [
        reshape("posterior_", (30, 3)),
        reshape("belief_.counts", (3, 2)),
        reshape("prior_", 3),
        assign(["params", "max_iter"], -1),
        assign(["params", "history"], {"kind": "record", "name": "History"}),
    ],
)
def test_a_forged_aggregator_is_one_clear_error(change, crowd, path):
    DawidSkene().fit(crowd[1]).save(path)
    forge(path, change)
    with pytest.raises(FormatError):
        crowdwise.load(path)


@pytest.mark.parametrize("rows", ["log_ease_", "log_odds_"], ids=["per task", "per worker"])
def test_rows_that_a_method_has_per_task_and_per_worker_are_counted(rows, crowd, path):
    aggregate.GLAD().fit(crowd[1]).save(path)
    forge(path, reshape(rows, 7))
    with pytest.raises(FormatError, match=rows):
        crowdwise.load(path)


def test_a_text_that_is_no_json_is_refused(path):
    for text in ("", "{", "[" * 10**5, '"text"', "[]", "null", "1" * 10**4):
        write_container(path, Content(text, {}))
        with pytest.raises(FormatError):
            crowdwise.load(path)


def places(tree, way=()):
    """Every place in a tree of lists and mappings."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in pairs:
        yield (*way, key)
        if isinstance(value, dict | list):
            yield from places(value, (*way, key))


def test_a_thousand_random_changes_give_a_model_or_one_clear_error(crowd, path):
    X, votes = crowd
    rng = np.random.default_rng(0)
    junk = [None, -1, 0, 2**70, 1e308, "", "posterior_", "tuple", [], {}, [[]], {"kind": "array"}]
    for model in (SpeeLFC(training=QUICK).fit(X, votes), aggregate.GLAD().fit(votes)):
        model.save(path)
        whole = read_container(path)
        everywhere = list(places(json.loads(whole.text)))
        for _ in range(500):
            tree = json.loads(whole.text)
            place = everywhere[rng.integers(len(everywhere))]
            change = [drop(*place), assign(place, junk[rng.integers(len(junk))])]
            change[rng.integers(2)](tree, None)
            try:
                _load(tree, whole)
            except CrowdwiseError:
                continue


def _load(tree, whole):
    """What ``load`` does with a file that holds ``tree``, without the disk in between."""
    from crowdwise.persist import models

    content = Content(json.dumps(tree), {k: v.copy() for k, v in whole.arrays.items()})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models.container, "read_container", lambda _: content)
        return crowdwise.load("forged")


def test_many_names_are_no_burden(path):
    n = 200_000
    votes = Annotations.from_codes(
        np.arange(n), np.zeros(n, int), np.arange(n) % 2, tasks=[f"task {i}" for i in range(n)]
    )
    model = MajorityVote().fit(votes)
    assert_array_equal(around(model, path).tasks_, model.tasks_)
