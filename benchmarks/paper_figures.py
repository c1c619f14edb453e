"""Figures of the papers, drawn from our own runs.

python benchmarks/paper_figures.py [speelfc-figure4 speelfc-figure5 speelfc-figure6 lia-figure2]

Each is written to benchmarks/results as SVG, with its numbers as JSON and Markdown. Seed 0.
"""

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from results_files import RESULTS, provenance, save, table
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.cluster import AgglomerativeClustering

from crowdbench.measures import empirical_counts
from crowdbench.runner import set_seed
from crowdbench.sets import LearningSet, crowd, learning_set
from crowdbench.tables import _lia, lia_table2, speelfc_table2
from crowdwise.learn import CrowdLayer
from crowdwise.plot.confusions import draw_matrix
from crowdwise.plot.worker_map import main_plane
from crowdwise.typing import Array, Floats

BUSIEST = 6
N_CLUSTERS = 4
Rows = list[dict[str, object]]


def draw_workers(figure: Figure) -> tuple[str, Rows]:
    """Labels and accuracies of the workers, as boxes."""
    sets = {"SPC": crowd("spc").part("train"), "MGC": crowd("mgc").part("train")}
    axes, rows = figure.subplots(1, 2), []
    shown: dict[str, list[Floats]] = {"labels": [], "accuracy": []}
    for name, found in sets.items():
        votes, truth = found.annotations, found.truth
        assert truth is not None
        right = votes.classes[votes.label] == truth.loc[votes.tasks[votes.task]].to_numpy()
        given = np.bincount(votes.worker, minlength=votes.n_workers)
        share = np.bincount(votes.worker, right, minlength=votes.n_workers)[given > 0]
        shown["labels"].append(given[given > 0].astype(float))
        shown["accuracy"].append(share / given[given > 0])
        for what, values in shown.items():
            five = np.quantile(values[-1], [0, 0.25, 0.5, 0.75, 1])
            rows.append({"set": name, "of workers": what, **dict(zip(FIVE, five, strict=True))})
    for ax, (what, values) in zip(axes, shown.items(), strict=True):
        ax.boxplot(values, tick_labels=list(sets))
        ax.set_ylabel(f"{what} of a worker")
    axes[0].set_yscale("log")
    return (
        "SpeeLFC's Figure 4: how many labels workers gave, and how many of them are right",
        rows,
    )


FIVE = ("least", "quarter", "median", "three quarters", "most")


def draw_spc(figure: Figure) -> tuple[str, Rows]:
    """Matrices of the busiest workers on sentences: real, SpeeLFC's and Crowd-Layer's."""
    data = learning_set("spc", features="stored")
    column = speelfc_table2.SENTENCES
    ours = fitted(speelfc_table2.TABLE.rows["SpeeLFC"].make(column), data)
    free: CrowdLayer = fitted(speelfc_table2.TABLE.rows["CrowdLayer"].make(column), data)
    weights = free.net_.noise.layer.matrix.weight[:-1].detach().double().numpy()
    learned = {"SpeeLFC": ours.confusion_, "Crowd-Layer": weights}
    return (
        "SpeeLFC's Figure 5: real and learned matrices of six workers on SPC (sentences)",
        draw_matrices(figure, data, learned),
    )


def draw_mgc(figure: Figure) -> tuple[str, Rows]:
    """Matrices of the busiest workers on music genres: real, and SpeeLFC's."""
    data = learning_set("mgc")
    row = speelfc_table2.TABLE.rows["SpeeLFC (settings by held-out labels)"]
    learned = {"SpeeLFC": fitted(row.make("MGC"), data).confusion_}
    return (
        "SpeeLFC's Figure 6: real and learned matrices of six workers on MGC",
        draw_matrices(figure, data, learned),
    )


def draw_matrices(figure: Figure, data: LearningSet, learned: Mapping[str, Floats]) -> Rows:
    """The real matrices in the first line, the learned ones below."""
    counts = empirical_counts(data)
    busiest = np.argsort(-counts.sum(axis=(1, 2)))[:BUSIEST]
    real = counts / np.maximum(counts.sum(axis=2, keepdims=True), 1)
    grid = figure.subplots(1 + len(learned), BUSIEST, squeeze=False)
    for line, (what, tables) in zip(grid, {"real": real, **learned}.items(), strict=True):
        for worker, ax in zip(busiest, line, strict=True):
            draw_matrix(ax, tables[worker], data.annotations.classes)
            ax.set_title(f"{data.annotations.workers[worker]}", fontsize=8)
        line[0].set_ylabel(f"{what}\ntruth")
    seen = counts[busiest].sum(axis=2) > 0
    return [
        {
            "matrices": what,
            "mean absolute error": float(np.abs(tables - real)[busiest][seen].mean()),
            "with a negative number": int((tables[busiest] < 0).any(axis=(1, 2)).sum()),
        }
        for what, tables in learned.items()
    ]


def draw_embeddings(figure: Figure) -> tuple[str, Rows]:
    """Workers by their embedding: by whom they err with, and by both kinds of errors."""
    grid, rows = figure.subplots(2, 3), []
    for line, name in zip(grid, ("BB", "WS"), strict=True):
        data = _lia.whole(name)
        row = lia_table2.TABLE.rows["LIA"]
        model = fitted(row.make(f"{name} R={_lia.REDUNDANCY[name][-1]}"), data)
        wrong, truth = mistakes(data)
        place, _ = main_plane(model.embedding_)
        cluster = AgglomerativeClustering(N_CLUSTERS, metric="manhattan", linkage="average")
        group = cluster.fit_predict(wrong)
        rates = {
            "false positive rate": wrong[:, truth == 0].mean(axis=1),
            "false negative rate": wrong[:, truth == 1].mean(axis=1),
        }
        for number, shape in zip(range(N_CLUSTERS), "os^D", strict=True):
            line[0].scatter(*place[group == number].T, marker=shape, label=f"cluster {number + 1}")
        line[0].set_title(f"{name}: mistakes")
        line[0].legend(fontsize=7)
        for ax, (what, rate) in zip(line[1:], rates.items(), strict=True):
            ax.figure.colorbar(ax.scatter(*place.T, c=rate, cmap="viridis_r"), ax=ax)
            ax.set_title(f"{name}: {what}")
        alike = pdist(model.embedding_)
        found: dict[str, object] = {
            "set": name,
            "distances as those of mistakes": rank(alike, pdist(wrong, "cityblock")),
        }
        for what, rate in rates.items():
            found[what] = rank(alike, pdist(rate[:, None]))
        rows.append(found)
    return (
        "LIA's Figure 2: workers by their learned embedding, and the mistakes they make",
        rows,
    )


def mistakes(data: LearningSet) -> tuple[Floats, Array]:
    """Which tasks each worker has wrong, (worker, task), and the truths of the tasks."""
    votes = data.annotations
    truth = np.searchsorted(votes.classes, data.truth.loc[votes.tasks].to_numpy())
    wrong = np.zeros((votes.n_workers, votes.n_tasks))
    wrong[votes.worker, votes.task] = votes.label != truth[votes.task]
    return wrong, truth


def rank(first: Floats, second: Floats) -> float:
    return float(spearmanr(first, second).statistic)


def fitted(model: Any, data: LearningSet) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return set_seed(model, 0).fit(data.X, data.annotations)


FIGURES: dict[str, tuple[Callable[[Figure], tuple[str, Rows]], tuple[float, float], str]] = {
    "speelfc-figure4": (draw_workers, (7, 3), "Workers of the training tasks."),
    "speelfc-figure5": (
        draw_spc,
        (11, 6),
        "The six busiest workers, on sentence embeddings with a linear classifier. Rows of a "
        "matrix are truths (the paper draws the transpose). Crowd-Layer's matrices are weights, "
        "not probabilities; the paper found negative numbers in five of its six.",
    ),
    "speelfc-figure6": (
        draw_mgc,
        (14, 5.5),
        "The six busiest workers; SpeeLFC with settings by held-out labels.",
    ),
    "lia-figure2": (
        draw_embeddings,
        (11, 6.5),
        "LIA on all labels of BB and WS, where all workers labeled all tasks. The plane has the "
        "first two principal components (the paper's UMAP needs a package of its own). Clusters "
        "are agglomerative, by the L1 distance of vectors that say which tasks a worker has "
        "wrong. The table has rank correlations: do workers that are close in the embedding make "
        "the same mistakes, and have like rates of both kinds of errors?",
    ),
}


def main(names: list[str]) -> None:
    for name in names or FIGURES:
        draw, size, words = FIGURES[name]
        figure = Figure(figsize=size, layout="constrained")
        title, rows = draw(figure)
        figure.savefig(RESULTS / f"{name}.svg")
        shown = [[f"{v:.3f}" if isinstance(v, float) else str(v) for v in r.values()] for r in rows]
        text = f"# {title}\n\n{words}\n\n{table(list(rows[0]), shown)}"
        save(name, provenance(f"python benchmarks/paper_figures.py {name}"), rows, text)


if __name__ == "__main__":
    main(sys.argv[1:])
