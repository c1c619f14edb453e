"""Promises of the commands: what is said, what is never lost, what is never shown or run."""

import logging

import numpy as np
import pandas as pd
import pytest

from crowdwise.aggregate import OrdinalMinimaxEntropy
from crowdwise.cli import main
from crowdwise.evaluate import agreement, cohen_kappa, cohen_kappa_matrix, fleiss_kappa, gwet_ac

WORDS = np.array(["poor", "fair", "good"])
ALPHABETIC = "Order taken: fair < good < poor."


@pytest.fixture
def ratings(tmp_path):
    """40 tasks rated by four workers who miss by a step at most."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 40)
    rows = [
        (f"t{task}", f"w{worker}", WORDS[np.clip(truth[task] + rng.choice([0, 0, 0, 1]), 0, 2)])
        for task in range(40)
        for worker in range(4)
    ]
    path = tmp_path / "ratings.csv"
    pd.DataFrame(rows, columns=["task", "worker", "label"]).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("aggregate", "--method", "OrdinalMinimaxEntropy"),
        ("workers", "--method", "OrdinalMinimaxEntropy"),
        ("compare", "--methods", "OrdinalMinimaxEntropy"),
        ("agreement", "--level", "ordinal"),
    ],
    ids=lambda words: words[0],
)
def test_promise_07_the_order_of_a_scale_is_said(words, ratings, capsys):
    command, *flags = words
    assert main([command, str(ratings), *flags]) == 0
    shown = "".join(capsys.readouterr())
    assert ALPHABETIC in shown
    if command != "agreement":  # where every measure says it
        assert shown.count(ALPHABETIC) == 1
    assert main([command, str(ratings), *flags, "--classes", "poor,fair,good"]) == 0
    assert "Order taken: poor < fair < good." in "".join(capsys.readouterr())


def test_promise_07_the_order_of_a_scale_is_said_in_python(ratings, caplog):
    frame = pd.read_csv(ratings)
    OrdinalMinimaxEntropy().fit(frame)
    assert caplog.record_tuples == [
        ("crowdwise", logging.WARNING, f"OrdinalMinimaxEntropy: {ALPHABETIC}")
    ]
    caplog.clear()
    cohen_kappa_matrix(frame, weights="linear")
    assert ALPHABETIC in caplog.text
    for measure in (fleiss_kappa, gwet_ac, cohen_kappa):
        assert measure(frame, weights="quadratic").note == ALPHABETIC
        assert measure(frame).note == ""


def test_promise_07_numbers_in_order_go_without_saying(caplog):
    labels = [[1, 1, 2], [3, 3, 2], [1, 1, 1], [2, 2, 10]] * 5
    OrdinalMinimaxEntropy().fit(labels)
    assert fleiss_kappa(labels, weights="linear").note == ""
    assert caplog.text == ""
    OrdinalMinimaxEntropy().fit(np.array(labels).astype(str).astype(object))
    assert "Order taken: 1 < 10 < 2 < 3." in caplog.text


@pytest.mark.parametrize(
    ("level", "weights"),
    [("ordinal", "linear"), ("interval", "quadratic"), ("ratio", "ratio")],
)
def test_promise_22_weighted_kappas_are_named(level, weights, tmp_path, capsys):
    labels = np.random.default_rng(0).choice([0, 1, 2, 9], size=(30, 3))
    table = agreement(labels, level=level, n_resamples=0)["value"]
    measures = {"Fleiss' kappa": fleiss_kappa, "Cohen's kappa": cohen_kappa, "Gwet's AC2": gwet_ac}
    for name, measure in measures.items():
        expected = measure(labels, weights=weights).value
        assert table[f"{name} ({weights} weights)"] == expected
    path = tmp_path / "wide.csv"
    pd.DataFrame(labels, columns=["a", "b", "c"]).rename_axis("task").to_csv(path)
    assert main(["agreement", str(path), "--level", level, "--resamples", "0"]) == 0
    assert f"Fleiss' kappa ({weights} weights)" in capsys.readouterr().out


def test_promise_22_ratio_is_its_own():
    labels = np.random.default_rng(0).choice([0, 1, 2, 9], size=(30, 3))
    assert "Fleiss' kappa" in agreement(labels, n_resamples=0).index
    values = [fleiss_kappa(labels, weights=w).value for w in ("linear", "quadratic", "ratio")]
    assert len(set(values)) == 3
    # 1 and 2 are a third apart relative to their sum, 1 and 9 four fifths.
    numbers = np.array([0.0, 1, 2, 9])
    gap = (numbers[:, None] - numbers) ** 2 / np.maximum((numbers[:, None] + numbers) ** 2, 1e-9)
    assert fleiss_kappa(labels, weights=1 - gap).value == pytest.approx(values[2])
