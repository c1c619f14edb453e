"""Workers lie where the principal components put them, in the color of their errors."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from crowdwise.aggregate import EBCC, MajorityVote
from crowdwise.errors import ParameterError
from crowdwise.learn import EM, LIA, Training
from crowdwise.plot import plot_worker_map


def points(ax):
    return np.asarray(ax.collections[0].get_offsets()), ax.collections[0].get_array()


def test_places_are_principal_components_of_the_confusion_matrices(model):
    place, color = points(plot_worker_map(model))
    pca = PCA(2).fit(model.confusion_.reshape(4, -1))
    expected = pca.transform(model.confusion_.reshape(4, -1))
    for axis in range(2):
        sign = np.sign(place[:, axis] @ expected[:, axis])
        assert_allclose(place[:, axis], sign * expected[:, axis], atol=1e-9)
    assert_allclose(color, 1 - model.skills_)
    ax = plot_worker_map(model)
    assert f"{pca.explained_variance_ratio_[0]:.0%}" in ax.get_xlabel()
    assert f"{pca.explained_variance_ratio_[1]:.0%}" in ax.get_ylabel()
    assert [text.get_text() for text in ax.texts] == ["ann", "bob", "cy", "di"]


def test_an_embedding_comes_before_confusion(crowd):
    votes, _ = crowd
    X = np.random.default_rng(0).normal(size=(votes.n_tasks, 3))
    quick = {
        "objective": EM(1, 2, marginal_epochs=1),
        "training": Training(device="cpu"),
    }
    model = LIA(**quick, random_state=0).fit(X, votes)
    assert model.embedding_.shape == (4, 9)
    place, color = points(plot_worker_map(model))
    centered = model.embedding_ - model.embedding_.mean(axis=0)
    assert_allclose(place.T @ place, np.diag((place**2).sum(axis=0)), atol=1e-9)
    largest = np.linalg.svd(centered, compute_uv=False)[:2]
    assert_allclose(np.linalg.norm(place, axis=0), largest)
    assert_allclose(color, 1 - model.worker_accuracy_, rtol=1e-6)


def test_error_rates_may_be_given_by_name_or_in_order(model):
    by_name = pd.Series({"di": 0.4, "ann": 0.1, "cy": 0.3, "eve": 0.9})
    _, color = points(plot_worker_map(model, by_name))
    assert_allclose(np.ma.filled(color, np.nan), [0.1, np.nan, 0.3, 0.4])
    _, color = points(plot_worker_map(model, [0.1, 0.2, 0.3, 0.4]))
    assert_allclose(color, [0.1, 0.2, 0.3, 0.4])
    with pytest.raises(ParameterError, match=r"shape \(2,\) for 4 workers"):
        plot_worker_map(model, [0.1, 0.2])


def model_of(confusion, prior):
    """A model as if it were fitted, with these matrices."""
    model = EBCC()
    model.confusion_, model.prior_ = confusion, prior
    model.workers_ = np.arange(len(confusion))
    return model


@pytest.mark.parametrize("n_workers", [1, 2, 40])
def test_few_and_many_workers(n_workers):
    confusion = np.random.default_rng(0).dirichlet([2.0, 1.0], (n_workers, 2))
    ax = plot_worker_map(model_of(confusion, np.array([0.7, 0.3])))
    place, color = points(ax)
    assert place.shape == (n_workers, 2)
    assert np.isfinite(place).all()
    assert_allclose(color, 1 - 0.7 * confusion[:, 0, 0] - 0.3 * confusion[:, 1, 1])
    assert len(ax.texts) == (n_workers if n_workers <= 30 else 0)


def test_the_sign_is_settled(model):
    rows = model.confusion_.reshape(4, -1)
    place, _ = points(plot_worker_map(model))
    direction = np.linalg.pinv(place) @ (rows - rows.mean(axis=0))  # (axis, cell)
    assert (direction[[0, 1], np.abs(direction).argmax(axis=1)] > 0).all()
    flipped, _ = points(plot_worker_map(model_of(-model.confusion_, model.prior_)))
    assert_allclose(flipped, -place, atol=1e-9)


def test_it_draws_on_the_given_axes(model):
    ax = Figure().add_subplot()
    assert plot_worker_map(model, ax=ax) is ax


def test_a_model_without_either_is_refused(crowd):
    with pytest.raises(ParameterError, match="neither embeddings nor confusion"):
        plot_worker_map(MajorityVote().fit(crowd[0]))
