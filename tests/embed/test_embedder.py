"""What every embedder shares: scikit-learn's tools, features of any kind, training and files."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from torch import nn

import crowdwise
from crowdwise.aggregate import GLAD, DawidSkene, MajorityVote
from crowdwise.embed import (
    MLE,
    RLL,
    Assurance,
    Bayesian,
    Certain,
    CosineSoftmax,
    CrowdEmbedder,
    CrowdLabels,
    Encoder,
    EveryClass,
    Example,
    HardGroups,
    NeuCrowd,
    OneClass,
    PlainLoss,
    RandomGroups,
    Robust,
    SafeGroups,
    Triplet,
    TripletLoss,
    TwoTowers,
)
from crowdwise.errors import AnnotationError, ParameterError
from crowdwise.learn import Training
from crowdwise.nets.loop import TrainingError


def test_a_pipeline_learns_from_annotations(crowd):
    rll = RLL(groups_per_epoch=2000, training=crowd.brief, random_state=0)
    model = Pipeline([("embed", rll), ("clf", CrowdLabels(LogisticRegression()))])
    model.fit(crowd.X, crowd.votes)
    assert model.score(crowd.new_X, crowd.new_truth) > 0.85
    assert model.predict_proba(crowd.new_X).shape == (100, 2)
    assert -1.0 < model.score(crowd.X, crowd.votes) < 0.0  # log-likelihood of a label


def test_another_number_of_features_is_refused(crowd):
    brief = Training(epochs=1, batch_size=256, device="cpu")
    model = RLL(groups_per_epoch=256, training=brief, random_state=0).fit(crowd.X, crowd.votes)
    width = crowd.X.shape[1]
    for X in (crowd.X[:, :1], csr_array(crowd.X[:, :1]), pd.DataFrame(crowd.X[:, :1])):
        with pytest.raises(AnnotationError, match=f"(?s)X has 1 features.*the {width} features"):
            model.transform(X)
    assert model.transform(crowd.X[:0]).shape == (0, model.size_)


def test_grids_and_cross_validation_take_annotations(crowd):
    brief = Training(epochs=1, batch_size=256, device="cpu")
    rll = RLL(groups_per_epoch=256, training=brief, random_state=0)
    model = Pipeline([("embed", rll), ("clf", CrowdLabels(RandomForestClassifier(5)))])
    assert cross_val_score(model, crowd.X, crowd.votes, cv=3).shape == (3,)
    grid = {
        "embed__confidence": [Certain(), MLE()],
        "clf__aggregator": [MajorityVote(), DawidSkene()],
        "clf__classifier__max_depth": [2],
    }
    search = GridSearchCV(model, grid, cv=2).fit(crowd.X, crowd.votes)
    assert search.best_params_["clf__classifier__max_depth"] == 2
    assert set(search.predict(crowd.new_X)) <= {0, 1}


def test_a_frame_in_another_order_goes_through_a_pipeline(crowd):
    names = np.array([f"t{i}" for i in range(160)], dtype=object)
    votes = crowdwise.Annotations.from_codes(
        crowd.votes.task, crowd.votes.worker, crowd.votes.label, tasks=names
    )
    frame = pd.DataFrame(crowd.X, index=names)
    moved = frame.sample(frac=1, random_state=0)
    rll = RLL(groups_per_epoch=500, training=crowd.brief, random_state=0)
    model = Pipeline([("embed", rll), ("clf", CrowdLabels(LogisticRegression()))])
    straight = model.fit(frame, votes).predict_proba(frame)
    assert_allclose(clone(model).fit(moved, votes).predict_proba(frame), straight, atol=1e-6)
    assert model["embed"].transform(moved).index.equals(moved.index)
    assert model["embed"].transform(frame).columns[0] == "rll0"


def test_the_adapter_hands_on_labels_and_weights(crowd):
    seen = {}

    class Watched(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.update(X=X, y=y, weight=sample_weight)
            return super().fit(X, y, sample_weight)

    votes = crowd.votes.filter(crowd.votes.task > 2)  # three tasks without labels
    CrowdLabels(Watched()).fit(crowd.X, votes)
    shares = votes.shares()[3:]
    assert_array_equal(seen["X"], crowd.X[3:])
    assert_array_equal(seen["y"], shares.argmax(axis=1))
    assert_allclose(seen["weight"], shares.max(axis=1))
    other = CrowdLabels(Watched(), aggregator=GLAD(), targets="hard").fit(crowd.X, votes)
    assert seen["weight"] is None
    assert isinstance(other.aggregator_, GLAD)


def test_labels_come_from_any_aggregator(crowd):
    brief = Training(epochs=1, batch_size=256, device="cpu")
    for aggregator in (DawidSkene(), GLAD()):
        model = Triplet(aggregator=aggregator, groups_per_epoch=256, training=brief)
        model.fit(crowd.X, crowd.votes)
        expected = clone(aggregator).fit(crowd.votes)
        assert_allclose(model.posterior_, expected.posterior_)
        assert type(model.aggregator_) is type(aggregator)


def test_confidence_may_come_from_a_posterior(crowd):
    model = RLL(
        confidence=MLE(evidence="posterior"), aggregator=DawidSkene(), groups_per_epoch=64
    ).set_params(training=Training(epochs=1, batch_size=64, device="cpu"))
    model.fit(crowd.X, crowd.votes)
    posterior = DawidSkene().fit(crowd.votes).posterior_
    assert_allclose(model.confidence_, posterior.max(axis=1))
    shares = model.set_params(confidence__evidence="labels").fit(crowd.X, crowd.votes).confidence_
    label = posterior.argmax(axis=1)
    assert_allclose(shares, crowd.votes.shares()[np.arange(160), label])


def test_features_of_many_kinds(crowd):
    model = RLL(groups_per_epoch=256, training=crowd.brief, random_state=0)
    expected = model.fit(crowd.X, crowd.votes).transform(crowd.new_X)
    for kind in (csr_array, torch.as_tensor, pd.DataFrame):
        again = clone(model).fit(kind(crowd.X), crowd.votes)
        assert_allclose(again.transform(kind(crowd.new_X)), expected, atol=1e-5)


class Pictures(torch.utils.data.Dataset):
    def __init__(self, X):
        self.X = X

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        return torch.as_tensor(self.X[i, :9], dtype=torch.float32).reshape(1, 3, 3)


def test_pictures_and_any_module_train_end_to_end(crowd, tmp_path):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))
    before = [p.detach().clone() for p in module.parameters()]
    model = NeuCrowd(encoder=module, groups_per_epoch=512, training=crowd.brief, random_state=0)
    vectors = model.fit_transform(Pictures(crowd.X), crowd.votes)
    assert vectors.shape == (160, 3)
    for old, new in zip(before, module.parameters(), strict=True):
        assert torch.equal(old, new)  # yours is copied
    started = model.net_.encoder[0].weight
    assert 0 < (started - before[0]).abs().max() < 0.5  # and its weights are where it starts
    model.save(tmp_path / "model")
    with pytest.raises(ParameterError, match="encoder"):
        crowdwise.load(tmp_path / "model")
    again = crowdwise.load(tmp_path / "model", encoder=module)
    assert_allclose(again.transform(Pictures(crowd.X)), vectors, atol=1e-7)


def test_an_encoder_may_be_a_function_of_the_number_of_features(crowd):
    model = RLL(encoder=lambda n_in: nn.Linear(n_in, 5), groups_per_epoch=64)
    model.set_params(training=Training(epochs=1, batch_size=64, device="cpu"))
    assert model.fit_transform(crowd.X, crowd.votes).shape == (160, 5)
    assert isinstance(model.net_.encoder, nn.Linear)


def test_patience_watches_tasks_that_are_held_out(crowd):
    training = Training(
        learning_rate=3e-2, batch_size=128, epochs=60, patience=3, validation_fraction=0.2
    )
    model = RLL(groups_per_epoch=512, training=training.set_params(device="cpu"), random_state=0)
    model.fit(crowd.X, crowd.votes)
    held = np.array(model.history_.held_out)[:, 0]
    assert len(held) < 60
    assert held.argmin() == len(held) - 4  # three epochs without a better one
    assert_allclose(model.confidence_ > 0, True)


def test_ensembles_and_unknown_workers_are_refused(crowd):
    for changes in ({"n_restarts": 2}, {"worker_dropout": 0.1}):
        with pytest.raises(ParameterError, match="for an embedder"):
            RLL(training=Training(**changes)).fit(crowd.X, crowd.votes)


def test_a_loss_that_is_not_finite_is_an_error(crowd):
    wild = Training(optimizer="sgd", learning_rate=1e30, batch_size=64, epochs=3, device="cpu")
    encoder = Encoder((4,), activation="none", dropout=0.0)
    model = Triplet(loss=TripletLoss(1.0, unit_length=False), encoder=encoder, training=wild)
    with pytest.raises(TrainingError, match="not finite"):
        model.fit(crowd.X, crowd.votes)
    assert not hasattr(model, "classes_")  # a failure leaves nothing behind


def test_an_interrupted_training_keeps_what_it_has(crowd, monkeypatch):
    calls = []

    def pick(self, _tasks, pool, n, generator):
        calls.append(n)
        if len(calls) > 5:
            raise KeyboardInterrupt
        return self.draw(pool, n, generator)

    monkeypatch.setattr("crowdwise.embed.groups.Sampler.pick", pick)
    model = RLL(groups_per_epoch=256, training=crowd.brief, random_state=0)
    with pytest.warns(ConvergenceWarning, match="interrupted after 2 epochs"):
        model.fit(crowd.X, crowd.votes)
    assert np.isfinite(model.transform(crowd.X)).all()


def test_a_refresh_gives_tasks_without_labels_a_class(crowd):
    votes = crowd.votes.filter(crowd.votes.task >= 40)
    model = RLL(confidence=MLE(), groups_per_epoch=1000, training=crowd.brief, random_state=0)
    plain = clone(model).fit(crowd.X, votes)
    assert not plain.confidence_[:40].any()
    assert_allclose(plain.posterior_[:40], 0.5)
    fresh = model.set_params(refresh_every=2).fit(crowd.X, votes)
    assert (fresh.confidence_[:40] > 0).all()
    right = (fresh.posterior_[:40].argmax(axis=1) == crowd.truth[:40]).mean()
    assert right > 0.75
    assert_allclose(fresh.confidence_, fresh.posterior_.max(axis=1))


def test_votes_without_workers_are_enough():
    """Counts of labels, dealt to slots in any order, give one and the same representation."""
    rng = np.random.default_rng(0)
    X, positive = rng.normal(size=(40, 3)), rng.integers(0, 8, 40)
    brief = Training(epochs=2, batch_size=64, device="cpu")
    found = []
    for luck in range(2):
        slots = np.random.default_rng(luck).permuted(np.arange(7) < positive[:, None], axis=1)
        model = NeuCrowd(groups_per_epoch=128, training=brief, random_state=0)
        found.append(model.fit(X, slots.astype(int)))
    assert_array_equal(found[0].transform(X), found[1].transform(X))
    assert_allclose(found[0].confidence_, np.abs(1 - 2 * positive / 7), atol=1e-12)
    assert found[0].confidence_[positive == 7] == pytest.approx(1.0)


def test_gold_decides(crowd):
    gold = dict(zip(crowd.votes.tasks[:3], 1 - crowd.votes.shares()[:3].argmax(1), strict=True))
    brief = Training(epochs=1, batch_size=64, device="cpu")
    model = NeuCrowd(groups_per_epoch=64, training=brief).fit(crowd.X, crowd.votes, gold)
    assert_array_equal(model.posterior_[:3].argmax(axis=1), list(gold.values()))
    assert_allclose(model.confidence_[:3], 1.0)


def test_too_few_tasks_are_refused():
    X = np.eye(3)
    with pytest.raises(AnnotationError, match="one class"):
        RLL().fit(X, [[0, 0], [0, 0], [0, 0]])
    with pytest.raises(AnnotationError, match="no pair"):
        RLL().fit(X, [[0, 0], [0, 0], [1, 1]])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpu_trains_and_the_model_comes_back(crowd):
    training = Training(learning_rate=1e-2, batch_size=128, epochs=3, device="cuda")
    model = NeuCrowd(groups_per_epoch=1000, refresh_every=2, training=training, random_state=0)
    vectors = model.fit_transform(crowd.X, crowd.votes)
    assert np.isfinite(vectors).all()
    assert next(model.net_.parameters()).device.type == "cpu"


def test_a_device_that_is_not_there(crowd):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ParameterError, match="no GPU"):
        RLL(training=Training(device="cuda")).fit(crowd.X, crowd.votes)


def test_confidences_of_the_tasks(crowd):
    for confidence in (Certain(), MLE(), Bayesian(), Assurance()):
        model = RLL(confidence=confidence, groups_per_epoch=64)
        model.set_params(training=Training(epochs=1, batch_size=64, device="cpu"))
        model.fit(crowd.X, crowd.votes)
        belief = model._aggregate(crowd.votes, None)
        assert_allclose(model.confidence_, confidence.of(belief, model.classes_))


# -- composed of parts -----------------------------------------------------------------------

PARTS = {
    "groups": HardGroups(SafeGroups(RandomGroups(4, anchors=OneClass(0)), margin=0.1), rate=3),
    "anchor": Robust(scale="batch"),
    "confidence": Bayesian((1.0, 2.0)),
    "loss": CosineSoftmax(eta=5.0),
}


def test_methods_are_choices_of_parts(crowd):
    settings = {"groups_per_epoch": 256, "training": crowd.brief, "random_state": 0}
    triplets = {
        "groups": RandomGroups(negatives=1, anchors=EveryClass()),
        "anchor": Example(),
        "confidence": Certain(),
        "loss": TripletLoss(),
    }
    for method, parts in ((RLL, {}), (Triplet, triplets)):
        own = method(**settings).fit_transform(crowd.X, crowd.votes)
        composed = CrowdEmbedder(**parts, **settings).fit_transform(crowd.X, crowd.votes)
        assert_array_equal(own, composed)


def test_a_new_method_is_composed_saved_and_brought_back(crowd, tmp_path):
    model = CrowdEmbedder(**PARTS, groups_per_epoch=256, training=crowd.brief, random_state=0)
    assert str(clone(model)) == str(model)
    vectors = model.fit_transform(crowd.X, crowd.votes)
    model.save(tmp_path / "model")
    again = crowdwise.load(tmp_path / "model")
    assert type(again) is CrowdEmbedder
    assert str(again.get_params()) == str(model.get_params())
    assert_allclose(again.transform(crowd.X), vectors, atol=1e-12)
    assert model.set_params(groups__groups__margin=0.3).groups.groups.margin == 0.3


class Closeness(PlainLoss):
    """The squared distance of partners, and nothing that keeps others apart."""

    def losses(self, groups):
        return ((groups.anchors - groups.candidates[:, 0]) ** 2).sum(dim=1)


def test_a_part_may_be_your_own(crowd):
    model = RLL(loss=Closeness(), groups_per_epoch=512, training=crowd.brief, random_state=0).fit(
        crowd.X, crowd.votes
    )
    usual = RLL(groups_per_epoch=512, training=crowd.brief, random_state=0)
    usual.fit(crowd.X, crowd.votes)
    assert model.transform(crowd.X).std(axis=0).max() < usual.transform(crowd.X).std(axis=0).max()
    assert model.history_.loss[-1] < model.history_.loss[0]


def test_every_part_matters(crowd):
    settings = {"groups_per_epoch": 256, "training": crowd.brief, "random_state": 0}
    usual = RLL(**settings).fit_transform(crowd.X, crowd.votes)
    for name, part in PARTS.items():
        other = RLL(**{name: part}, **settings).fit_transform(crowd.X, crowd.votes)
        assert np.abs(other - usual).max() > 1e-3, name


def test_robust_anchors_stand_in_triplets_too(crowd):
    settings = {"groups_per_epoch": 256, "training": crowd.brief, "random_state": 0}
    usual, robust, towers = (
        Triplet(**settings, **parts).fit_transform(crowd.X, crowd.votes)
        for parts in ({}, {"anchor": Robust()}, {"encoder": TwoTowers()})
    )
    assert np.abs(usual - robust).max() > 1e-3
    assert np.abs(usual - towers).max() > 1e-3


def test_recipes_are_copies():
    model = RLL.recipe("code").set_params(loss__eta=3.0)
    assert model.loss.eta == 3.0
    assert RLL.recipe("code").loss.eta == 10.0
    assert RLL.recipe("code", scale=False).scale is False
    with pytest.raises(ParameterError, match=r"(?s)no recipe 'paper'.*code"):
        RLL.recipe("paper")


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ({"groups": RandomGroups(0)}, "negatives"),
        ({"groups": SafeGroups(RandomGroups(0))}, "negatives"),
        ({"groups": SafeGroups(unsafe_share=2.0)}, "unsafe_share"),
        ({"groups": HardGroups(rate=0)}, "rate"),
        ({"anchor": Robust(scale="none")}, "scale"),
        ({"confidence": MLE(evidence="votes")}, "evidence"),
        ({"loss": CosineSoftmax(eta=0.0)}, "eta"),
        ({"loss": CosineSoftmax(form="sum")}, "form"),
        ({"confidence": "mle"}, "confidence"),
        ({"encoder": 3}, "encoder"),
    ],
)
def test_bad_parts_are_refused(crowd, part, name):
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        RLL(**part).fit(crowd.X, crowd.votes)
