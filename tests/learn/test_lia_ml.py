"""LIA-ML: several label names at once, in any shape, by heads or by embeddings."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from torch import nn

from crowdwise import Annotations, load
from crowdwise.errors import AnnotationError, ParameterError
from crowdwise.learn import EM, LIA, LIAML, MLP, Training
from crowdwise.learn.label_names import (
    LabelHeads,
    LabelVectors,
    PairCompetence,
    PairTensorsNet,
    WithLabelVectors,
    average_by_name,
)
from crowdwise.learn.label_pairs import PairFeatures, as_pair_gold, as_pairs, label_table
from crowdwise.learn.parts import WorkerTable
from crowdwise.nets.features import as_features
from crowdwise.simulate import label_by_crowd, one_coin_confusion

SMALL = MLP((8,), activation="selu")


def make_model(**settings):
    fast = {
        "truth": SMALL,
        "difficulty": SMALL,
        "objective": EM(epochs=20, marginal_epochs=40),
        "training": Training(optimizer="amsgrad", learning_rate=1e-2),
        "random_state": 0,
    }
    return LIAML(**{**fast, **settings})


@pytest.fixture(scope="module")
def relations():
    """Four label names, each half of the plane; the last one has hardly any labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    angle = np.array([0.0, 0.5, 1.0, 0.25])
    slope = np.stack([np.cos(angle), np.sin(angle)])
    truth = (X @ slope > 0).astype(int)
    skill = np.array([[0.95, 0.8, 0.7, 0.6], [0.6, 0.9, 0.8, 0.7]] * 2)  # by name and worker
    votes = {
        name: label_by_crowd(truth[:, n], one_coin_confusion(skill[n], 2), 3, random_state=n)
        for n, name in enumerate(["causes", "treats", "prevents", "rare"])
    }
    votes["rare"] = votes["rare"].filter(np.arange(900) % 30 == 0)
    columns = list(votes)
    features = pd.DataFrame(slope.T, index=columns)
    return X, votes, pd.DataFrame(truth, columns=columns), skill, features


# -- taking them in ------------------------------------------------------------------------------


def long_frame(votes):
    parts = [part.to_frame().assign(label_name=name) for name, part in votes.items()]
    return pd.concat(parts, ignore_index=True)


def test_a_mapping_and_a_long_frame_are_the_same(relations):
    _, votes, *_ = relations
    frame = long_frame(votes)
    pairs = as_pairs(votes, "label_name")
    for given in (frame, pl.from_pandas(frame)):
        found = as_pairs(given, "label_name")
        order = [list(pairs.names).index(name) for name in found.names]
        assert sorted(found.names) == sorted(pairs.names)
        assert_array_equal(found.tasks, pairs.tasks)
        a, b = found.annotations, pairs.annotations
        ours = {*zip(a.task // 4, np.array(order)[a.task % 4], a.worker, a.label, strict=True)}
        assert ours == {*zip(b.task // 4, b.task % 4, b.worker, b.label, strict=True)}


def test_pairs_count_tasks_first():
    votes = {
        "old": Annotations.from_dict({"b": {"ann": "yes"}, "c": {"bob": "no"}}),
        "red": Annotations.from_dict({"a": {"ann": "no"}}),
    }
    pairs = as_pairs(votes, "label_name")
    assert pairs.tasks.tolist() == ["a", "b", "c"]
    assert pairs.annotations.classes.tolist() == ["no", "yes"]
    rows = pairs.annotations
    found = list(zip(rows.task, rows.workers[rows.worker], rows.classes[rows.label], strict=True))
    assert found == [(1, "ann", "no"), (2, "ann", "yes"), (4, "bob", "no")]
    gold = as_pair_gold({"red": {"c": "yes", "z": "no"}, "blue": {"a": "no"}}, pairs)
    assert gold == {5: "yes"}
    x = PairFeatures(as_features(np.array([[1.5], [2.5], [3.5]])), n_names=2)
    some = PairFeatures(x.source, np.array([1, 5]), 2)
    assert_allclose(some.rows(torch.tensor([1])), [[3.5, 1.0]])
    assert some.n_tasks == 2
    assert_allclose(x.rows(torch.tensor([5, 0])), [[3.5, 1.0], [1.5, 0.0]])
    assert (x.n_tasks, x.shape) == (6, (2,))


def test_soft_labels_and_weights_are_kept():
    soft = Annotations.from_codes([0, 1], [0, 0], [0, 1], soft=[[0.7, 0.3], [0.1, 0.9]])
    hard = Annotations.from_codes([0], [1], [1], weight=[3.0], tasks=[0, 1], workers=[0, 1])
    rows = as_pairs({"a": soft, "b": hard}, "label_name").annotations
    assert rows.task.tolist() == [0, 1, 2]
    assert_allclose(rows.soft, [[0.7, 0.3], [0, 1], [0.1, 0.9]])
    assert_allclose(rows.weight, [1, 3, 1])


def test_says_what_is_wrong_with_the_annotations(relations):
    X, votes, *_ = relations
    three = {"a": Annotations.from_codes([0, 1, 2], [0, 0, 0], [0, 1, 2])}
    with pytest.raises(AnnotationError, match="The labels have 3 values"):
        LIAML().fit(X[:3], three)
    with pytest.raises(AnnotationError, match="no column for the relation"):
        LIAML(column="relation").fit(X, long_frame(votes))
    model = make_model(objective=EM(1, 1, None)).fit(X, votes)
    with pytest.raises(AnnotationError, match="unknown label name, 'other'"):
        model.log_likelihood(X, {"other": votes["causes"]})


# -- the model -----------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", ["per_label", "embedding"])
def test_tables_equal_the_plain_ones(lopsided, heads):
    n_names, size, n_out = 3, 4, 8
    torch.manual_seed(0)

    def head(width):
        if heads == "per_label":
            return LabelHeads(nn.Linear(width, size), n_names, size, n_out)
        return nn.Linear(width + size, n_out)

    worker = WorkerTable(lopsided.n_workers, torch.zeros(size))
    competence = PairCompetence(worker, head(size))
    noise = lopsided.jiggled(PairTensorsNet(head(lopsided.n_in), competence, 2, 2))
    noise.label_size = 1 if heads == "per_label" else size
    front = WithLabelVectors(nn.Identity(), LabelVectors(n_names, size, None)).double()

    def slow(network, vector, name):
        def linear(layer, given):
            return lopsided.numbers(layer.weight) @ given + lopsided.numbers(layer.bias)

        if heads == "per_label":
            weight, bias = lopsided.numbers(network.weight), lopsided.numbers(network.bias)
            return weight[name] @ linear(network.body, vector) + bias[name]
        label = lopsided.numbers(front.vectors.layer.weight)[name]
        return linear(network, np.concatenate([vector, label]))

    x = np.random.default_rng(1).normal(size=(4, lopsided.n_in))
    names, at, workers = [2, 0, 1, 1], [3, 0, 0, 2], [4, 0, 2, lopsided.n_workers]
    given = torch.as_tensor(np.column_stack([x, names]))
    given = given if heads == "per_label" else front(given)
    found = noise(given, torch.tensor(at), torch.tensor(workers)).exp()
    for row in range(4):
        name = names[at[row]]
        mine = lopsided.numbers(worker.weight)[workers[row]]
        hard = slow(noise.difficulty, x[at[row]], name).reshape(2, 2, 2)
        able = slow(competence.head, mine, name).reshape(2, 2, 2)
        expected = softmax(np.log(np.exp(hard + able).sum(axis=2)), axis=1)
        assert_allclose(lopsided.numbers(found[row]), expected, rtol=1e-6)


def test_a_label_name_has_one_embedding_for_all_networks(relations):
    X, votes, *_ = relations
    model = make_model(heads="embedding", objective=EM(1, 1, None)).fit(X, votes)
    parts = [part for part in model.net_.modules() if isinstance(part, LabelVectors)]
    assert len(parts) == 1
    other, same = model.predict_proba(X), model.predict_worker_accuracy(X)
    with torch.no_grad():
        parts[0].layer.weight += 1.0
    assert not np.allclose(model.predict_proba(X), other)
    assert not np.allclose(model.predict_worker_accuracy(X), same)


def test_tables_are_averaged_by_name_and_worker():
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(2), (30, 2))
    posterior = rng.dirichlet(np.ones(2), 30)
    name, worker = rng.integers(0, 2, 30), rng.integers(0, 3, 30)
    keep = ~((name == 1) & (worker == 2))
    found = average_by_name(
        *(torch.as_tensor(a[keep]) for a in (table, posterior, name, worker)), (2, 3)
    ).numpy()
    for n in range(2):
        for w in range(3):
            rows = np.flatnonzero(keep & (name == n) & (worker == w))
            rows = rows if len(rows) else np.flatnonzero(keep & (name == n))
            weight = posterior[rows]
            expected = (table[rows] * weight[:, :, None]).sum(axis=0) / weight.sum(axis=0)[:, None]
            assert_allclose(found[n, w], expected, rtol=1e-5)


# -- what comes out ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted(relations):
    X, votes, *_ = relations
    return make_model().fit(X, votes)


def test_learns_all_label_names(relations, fitted):
    X, votes, truth, skill, _ = relations
    proba = fitted.predict_proba(X)
    assert list(proba.columns) == list(votes)
    right = (fitted.predict(X) == truth).mean()
    assert right[["causes", "treats", "prevents"]].min() > 0.9
    assert fitted.score(X, truth) == pytest.approx(right.mean())
    assert fitted.posterior_.shape == (300, 4)
    assert ((fitted.posterior_ > 0.5) == truth).mean().min() > 0.7
    assert_allclose(fitted.worker_accuracy_.to_numpy().T[:3], skill[:3], atol=0.15)
    assert fitted.confusion_.shape == (4, 4, 2, 2)
    assert_allclose(fitted.confusion_.sum(axis=3), 1, rtol=1e-5)


def test_says_what_each_worker_would_say(relations, fitted):
    X, votes, truth, skill, _ = relations
    proba = fitted.predict_worker_proba(X)
    assert proba.shape == (300, 4, 4)
    right = np.where(truth.to_numpy()[:, None, :] == 1, proba, 1 - proba).mean(axis=0)
    assert_allclose(right.T[:3], skill[:3], atol=0.15)
    some = fitted.predict_worker_accuracy(X[:5], [2, 0])
    assert_allclose(some[:, 1], fitted.predict_worker_accuracy(X[:5])[:, 0])
    name, row, worker = "treats", votes["treats"].task[7], votes["treats"].worker[7]
    yes = proba[row, worker, 1]
    chance = yes if votes[name].label[7] else 1 - yes
    one = votes[name].filter(np.arange(900) == 7)
    assert fitted.log_likelihood(X, {name: one}) == pytest.approx(np.log(chance), abs=1e-5)


def test_unknown_truths_do_not_count(relations, fitted):
    X, _, truth, *_ = relations
    holes = truth.astype(float)
    holes.iloc[100:] = np.nan
    assert fitted.score(X, holes) == pytest.approx(fitted.score(X[:100], truth[:100]))


def test_scores_find_label_names_and_rows_by_name(relations, fitted):
    X, _, truth, *_ = relations
    right = fitted.score(X, truth)
    assert fitted.score(X, truth.to_numpy()) == right
    assert fitted.score(X, truth[truth.columns[::-1]]) == right
    assert fitted.score(X, {name: truth[name].tolist() for name in truth.columns[::-1]}) == right
    one = (fitted.predict(X)["treats"] == truth["treats"]).mean()
    assert fitted.score(X, {"treats": truth["treats"]}) == pytest.approx(one)
    frame = pd.DataFrame(X, index=[f"t{row}" for row in range(300)])
    shuffled = truth.set_index(frame.index).sample(frac=1, random_state=0)
    assert fitted.score(frame, shuffled) == right
    some = np.random.default_rng(0).permutation(300)[:100]  # as train_test_split has them
    assert fitted.score(X[some], truth.iloc[some]) == fitted.score(X[some], truth.to_numpy()[some])


def test_annotations_are_scored_by_their_likelihood(relations, fitted):
    X, votes, *_ = relations
    expected = fitted.log_likelihood(X, votes)
    turned = dict(reversed(votes.items()))
    nested = {name: part.to_dict() for name, part in votes.items() if name != "rare"}
    for given in (votes, turned, long_frame(votes)):
        assert fitted.score(X, given) == pytest.approx(expected)
    assert fitted.score(X, nested) == pytest.approx(fitted.log_likelihood(X, nested))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda truth: truth.to_numpy()[:, :3], r"shape \(300, 3\)"),
        (lambda truth: truth.to_numpy()[:7], r"shape \(7, 4\)"),
        (lambda truth: truth.rename(columns={"rare": "rear"}), "'rear'"),
        (lambda truth: truth.replace(1, 7), "values .*7"),
        (lambda truth: truth.astype(float) * np.nan, "not everywhere"),
        (lambda truth: truth.set_index(pd.Index([0, *range(1, 299), -1])), "but not all"),
    ],
    ids=["columns", "rows", "name", "value", "unknown", "index"],
)
def test_truths_that_do_not_fit_are_refused(relations, fitted, change, told):
    X, _, truth, *_ = relations
    with pytest.raises(AnnotationError, match=told):
        fitted.score(pd.DataFrame(X, index=range(1, 301)), change(truth))


def test_other_columns_of_a_frame_of_truths_are_passed_over(relations, fitted):
    X, _, truth, *_ = relations
    assert fitted.score(X, truth.assign(remark="none")) == fitted.score(X, truth)


def test_truths_of_rows_that_are_only_counted_are_taken_as_they_come(relations, fitted):
    X, _, truth, *_ = relations
    order = np.random.default_rng(0).permutation(len(X))
    expected = fitted.score(X[order], truth.to_numpy()[order])
    assert fitted.score(pd.DataFrame(X[order]), truth.iloc[order]) == expected


@pytest.mark.parametrize("given", [{}, [[0, 1]], "one"], ids=["none", "list", "Annotations"])
def test_annotations_of_no_label_name_are_refused(relations, given):
    X, votes, *_ = relations
    with pytest.raises(AnnotationError, match="do not say which label name"):
        LIAML().fit(X, votes["causes"] if given == "one" else given)


def test_features_of_label_names_are_found_by_name():
    table = pd.DataFrame({"length": [2.0, 1.0, 0.0]}, index=pd.RangeIndex(2, -1, -1))
    assert label_table(table, np.arange(3)).flatten().tolist() == [0.0, 1.0, 2.0]


def test_rows_and_columns_keep_their_names(relations, fitted):
    X, *_ = relations
    frame = pd.DataFrame(X, index=[f"q{i}" for i in range(300)])
    assert fitted.predict_proba(frame).index.tolist() == frame.index.tolist()
    assert fitted.posterior_.index.tolist() == list(range(300))


def test_comes_back_from_a_file(relations, fitted, tmp_path):
    X, _, _, _, _ = relations
    fitted.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert_allclose(again.predict_proba(X), fitted.predict_proba(X))
    assert again.posterior_.equals(fitted.posterior_)


def test_gold_is_kept(relations):
    X, votes, truth, *_ = relations
    gold = {"rare": (1 - truth["rare"][:40]).to_dict()}
    model = make_model(objective=EM(2, 2, None)).fit(X, votes, gold=gold)
    assert_array_equal(model.posterior_["rare"][:40] > 0.5, truth["rare"][:40] == 0)


def test_a_rare_label_name_learns_from_its_neighbors(relations):
    X, votes, truth, _, features = relations
    model = make_model(heads="embedding").fit(X, votes, label_features=features)
    alone = LIA(truth=SMALL, difficulty=SMALL, random_state=0, training=make_model().training)
    alone.fit(X, votes["rare"])
    assert (model.predict(X)["rare"] == truth["rare"]).mean() > alone.score(X, truth["rare"])


def test_embeddings_reach_label_names_never_seen(relations):
    X, votes, truth, _, features = relations
    known = {name: votes[name] for name in ("causes", "treats", "prevents")}
    model = make_model(heads="embedding").fit(X, known, label_features=features)
    proba = model.predict_proba(X, ["rare"], features)
    assert ((proba["rare"] > 0.5) == truth["rare"]).mean() > 0.9
    assert_allclose(
        model.predict_proba(X, ["treats"], features), model.predict_proba(X)[["treats"]], rtol=1e-5
    )
    for other in (make_model(), make_model(heads="embedding")):
        other.set_params(objective=EM(1, 1, None)).fit(X, known)
        with pytest.raises(ParameterError, match="heads='embedding'"):
            other.predict_proba(X, ["rare"], features)


@pytest.mark.parametrize("heads", ["per_label", "embedding"])
def test_restarts_are_one_ensemble(relations, heads):
    X, votes, *_ = relations
    training = Training(n_restarts=3, batch_size=200)
    model = make_model(heads=heads, objective=EM(2, 2, marginal_epochs=2), training=training)
    held = np.array(model.fit(X, votes).history_.held_out)
    assert held.shape == (6, 3)
    assert len(np.unique(held[-1])) == 3


def test_the_label_names_number_is_not_scaled(relations):
    X, votes, *_ = relations
    votes = {name: votes[name] for name in ("causes", "treats")}
    model = make_model(objective=EM(1, 1, None)).fit(10 * X + 3, votes)
    scaler = model.net_.scaler
    assert_allclose(scaler.mean[:2], (10 * X + 3).mean(axis=0), rtol=1e-4)
    assert (float(scaler.mean[2]), float(scaler.scale[2])) == (0.0, 1.0)


def test_worker_features_work_here_too(relations):
    X, votes, _, skill, _ = relations
    features = np.log(skill.T / (1 - skill.T))[:, :2]
    model = make_model().fit(X, votes, worker_features=features)
    new = model.predict_worker_proba(X[:6], ["x", "y"], features[[2, 0]])
    assert_allclose(new, model.predict_worker_proba(X[:6], [2, 0]))
    right = model.predict_worker_accuracy(X[:6], ["x", "y"], features[[2, 0]])
    assert_allclose(right, model.predict_worker_accuracy(X[:6], [2, 0]))
