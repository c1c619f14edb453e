"""The tables about imbalance: their data, their baselines and their scores."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import crowdbench
from crowdbench.results import settings
from crowdbench.tables import _iced, iced_settings, iced_table2
from crowdbench.tables.imbalance_sweep import RATIOS, draw
from crowdwise.aggregate import MajorityVote
from crowdwise.learn import TwoStage

RESULTS = Path(__file__).parents[2] / "benchmarks/results"
TABLES = ("iced-table2", "iced-table3", "iced-figure2", "iced-difficulty", "imbalance-sweep")


@pytest.mark.parametrize("ratio", RATIOS)
def test_the_sweep_draws_what_it_says(ratio):
    data = draw(ratio, 0)
    rare = int(data.truth.sum())
    assert (len(data.truth) - rare) / rare == pytest.approx(ratio, rel=0.03)
    assert (data.annotations.redundancy == 5).all()
    assert data.annotations.equals(draw(ratio, 0).annotations)
    assert not data.annotations.equals(draw(ratio, 1).annotations)


def test_scores_of_truths_by_hand():
    data = draw(10, 0)
    found = _iced.of_training_truths(MajorityVote(), data, 0)
    posterior = MajorityVote().fit(data.annotations).posterior_
    said, truth = posterior.argmax(axis=1), data.truth.to_numpy()
    recall = [(said[truth == k] == k).mean() for k in (0, 1)]
    assert found["training minority recall"] == recall[1]
    assert found["balanced accuracy"] == pytest.approx(np.mean(recall), abs=0.02)  # ties count half
    assert found["training balanced accuracy"] == found["balanced accuracy"]


def test_smote_trains_on_balanced_classes(monkeypatch):
    seen = {}

    class Net:
        def set_params(self, **_):
            return self

        def fit(self, X, y):
            seen.update(X=X, y=y)
            return self

        def predict_proba(self, X):
            return np.full((len(X), 2), 0.5)

    monkeypatch.setattr(_iced, "net", Net)
    data = draw(10, 0)
    TwoStage(MajorityVote(), _iced.Oversampled(random_state=0)).fit(data.X, data.annotations)
    assert len(set(np.bincount(seen["y"]))) == 1
    assert seen["X"].shape == (len(seen["y"]), data.X.shape[1])


@pytest.mark.parametrize("name", TABLES)
def test_rows_can_be_made_for_every_column(name):
    table = crowdbench.table(name)
    assert len(table.cells(table.quick_rows, table.quick_columns)) >= 2
    for row, column in table.cells():
        assert hasattr(table.rows[row].make(column), "fit")
    for first, second in table.pairs:
        assert {first, second} <= set(table.rows)


@pytest.mark.parametrize("name", ["iced-figure2", "imbalance-sweep"])
def test_figures_are_drawn(name, tmp_path):
    pytest.importorskip("matplotlib")
    table = crowdbench.table(name)
    lines = [
        {"row": row, "column": column, "metric": "balanced accuracy", "mean": 0.7}
        for row, column in table.cells()
    ]
    table.figure(pd.DataFrame(lines), tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 1000


def test_published_figures_stand_beside_every_difficulty():
    table = crowdbench.table("iced-table2")
    assert table.published("ICED", "USPS-Syn", "accuracy").value == 0.9036
    assert table.published("ICED", "Gisette-like-Syn", "macro F1").value == 0.8512
    easy = crowdbench.table("iced-difficulty")
    assert easy.published("MV + LR", "GSAD-Syn, medium", "accuracy").value == 0.7094


@pytest.mark.parametrize("column", iced_table2.CHOSEN)
def test_settings_are_the_best_by_held_out_labels(column):
    found = json.loads((RESULTS / "iced-settings.json").read_text())["summary"]
    means = {line["row"]: line["mean"] for line in found if line["column"] == column}
    best = iced_settings.TABLE.rows[max(means, key=means.get)].make(column)
    row = iced_table2.TABLE.rows["ICED (settings by held-out labels)"]
    assert settings(row.make(column)) == settings(best)
