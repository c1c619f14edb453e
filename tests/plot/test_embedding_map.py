"""Tasks lie where the principal components put them, in the color and size of their labels."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from crowdwise.embed import NeuCrowd
from crowdwise.errors import ParameterError
from crowdwise.learn import Training
from crowdwise.plot import plot_embedding_map, plot_training


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4)) * [1.0, 2.0, 3.0, 4.0]
    share = rng.integers(0, 8, 40)
    labels = (np.arange(7) < share[:, None]).astype(int)
    brief = Training(epochs=2, batch_size=64, device="cpu")
    model = NeuCrowd(groups_per_epoch=64, training=brief, random_state=0).fit(X, labels)
    return model, X, share / 7


def on_plane(rows, place):
    expected = PCA(2).fit_transform(rows)
    for axis in range(2):
        sign = np.sign(place[:, axis] @ expected[:, axis])
        assert_allclose(place[:, axis], sign * expected[:, axis], atol=1e-5)


def test_before_and_after(fitted):
    model, X, share = fitted
    before, after = plot_embedding_map(model, X)
    on_plane((X - X.mean(axis=0)) / X.std(axis=0), before.collections[0].get_offsets())
    on_plane(model.transform(X), after.collections[0].get_offsets())
    for ax in (before, after):
        assert_allclose(ax.collections[0].get_array(), share)
        assert_allclose(ax.collections[0].get_sizes(), 8 + 52 * np.abs(1 - 2 * share))
    assert (before.get_title(), after.get_title()) == ("before", "after")


def test_truth_may_be_the_color_also_of_other_tasks(fitted):
    model, X, _ = fitted
    truth = np.arange(10) % 2
    pair = plot_embedding_map(model, X[:10], truth)
    assert_allclose(pair[0].collections[0].get_array(), truth)
    assert [text.get_text() for text in pair[1].get_legend().get_texts()] == ["0", "1"]
    with pytest.raises(ParameterError, match="10 rows"):
        plot_embedding_map(model, X[:10])


def test_a_frame_by_task_is_put_in_order(fitted):
    model, X, share = fitted
    frame = pd.DataFrame(X, index=model.tasks_).iloc[::-1]
    ax = plot_embedding_map(model, frame)[1]
    on_plane(model.transform(X), ax.collections[0].get_offsets())
    assert_allclose(ax.collections[0].get_array(), share)


def test_axes_may_be_given(fitted):
    model, X, _ = fitted
    axes = Figure().subplots(1, 2)
    assert plot_embedding_map(model, X, axes=axes)[0] is axes[0]


def test_more_than_two_classes_have_a_legend():
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(30, 3)), np.repeat(rng.integers(0, 3, (30, 1)), 2, axis=1)
    brief = Training(epochs=1, batch_size=64, device="cpu")
    model = NeuCrowd(groups_per_epoch=64, training=brief, random_state=0).fit(X, labels)
    _, after = plot_embedding_map(model, X)
    assert_allclose(after.collections[0].get_array(), labels[:, 0])
    assert len(after.get_legend().get_texts()) == 3


def test_losses_of_several_models_are_drawn_together(fitted):
    model, _, _ = fitted
    ax = plot_training({"whole": model, "again": model.history_})
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["whole", "again"]
    for line in ax.lines:
        assert_allclose(line.get_ydata(), [row[0] for row in model.history_.loss])
