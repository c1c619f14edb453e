"""The representation of a task: features, learned vectors or both, by held-out labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import torch
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from crowdwise.annotations import Annotations, find_labeled
from crowdwise.base.embedder import Embedder
from crowdwise.errors import CrowdwiseError
from crowdwise.learn.confusion_learner import expect
from crowdwise.learn.label_stacking import (
    POWERS,
    choose_sharpening,
    log_evidence,
    usual_classes,
)
from crowdwise.learn.raykar import turn
from crowdwise.learn.search import Search, choose, deal_rows, penalties_for
from crowdwise.learn.softmax_regression import softmax_regression
from crowdwise.learn.starting_points import LabelsAlone
from crowdwise.learn.two_stage import name_truths
from crowdwise.nets.modules import Encoder
from crowdwise.typing import Floats, Ints

OUTPUTS = ("features", "both", "vectors")  # from simple to flexible
FEATURES = {"output": "features"}
SURE = 2  # standard errors by which anything other than the features must be better
N_FOLDS, MAX_ITER = 3, 30  # of the regressions for comparing representations

# Settings, and what they make: an embedder, or the log-likelihood of each held-out task's labels.
Embedders: TypeAlias = Sequence[tuple[dict[str, Any], Embedder]]
Judged: TypeAlias = Sequence[tuple[dict[str, Any], Floats]]


def choose_output(
    X: Floats,
    votes: Annotations,
    gold: Ints | None,
    embedders: Embedders,
    encoders: Mapping[str, Encoder],
    rng: np.random.RandomState,
) -> Search:
    """Choose the embedder and output that best predict the labels of held-out tasks.

    The first fold of tasks says which one; the best embedder is also tried with further
    encoders, by name. The best of several may owe this to luck, so it must then do better than
    the features on the other folds, too.
    """
    fold = deal_rows(X, find_labeled(votes), rng)
    if (fold == 0).sum() < 2 or (fold > 0).sum() < 2 * N_FOLDS:
        return Search(chosen={"output": "vectors"}, why="There are too few tasks to choose from.")
    judged = judge(X, votes, gold, embedders, fold, 0)
    if encoders and len(judged) > 1:
        more = vary(judged, embedders, encoders)
        judged = [*judged, *judge(X, votes, gold, more, fold, 0)[1:]]
        embedders = [*embedders, *more]
    first = choose_simplest(judged)
    if first.chosen == FEATURES:
        return first
    only = [(without_output(first.chosen), embedder_of(first.chosen, embedders))]
    again = [judge(X, votes, gold, only, fold, hidden) for hidden in range(1, fold.max() + 1)]
    if any(first.chosen not in [settings for settings, _ in own] for own in again):
        return replace(first, chosen=FEATURES, why="Without some folds, no vectors were learned.")
    both = [
        (settings, np.concatenate([e for own in again for known, e in own if known == settings]))
        for settings in (FEATURES, first.chosen)
    ]
    last = choose_simplest(both)
    return replace(first, chosen=last.chosen, why=f"On folds that had no say before: {last.why}")


def vary(judged: Judged, embedders: Embedders, encoders: Mapping[str, Encoder]) -> Embedders:
    """Return the best of the embedders with each of these encoders."""
    settings, _ = max(judged[1:], key=lambda own: own[1].mean())
    best = embedder_of(settings, embedders)
    return [
        ({**without_output(settings), "encoder": name}, clone(best).set_params(encoder=encoder))
        for name, encoder in encoders.items()
    ]


def without_output(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the embedder alone."""
    return {name: value for name, value in settings.items() if name != "output"}


def embedder_of(settings: dict[str, Any], embedders: Embedders) -> Embedder:
    """Return the embedder with these settings."""
    return next(one for own, one in embedders if own == without_output(settings))


def choose_simplest(judged: Judged) -> Search:
    """Choose the simplest representation within some standard errors of the best."""
    plainness = [(-OUTPUTS.index(settings["output"]),) for settings, _ in judged]
    evidence = np.stack([own for _, own in judged])
    return choose([settings for settings, _ in judged], plainness, evidence, SURE)[0]


def judge(
    X: Floats,
    votes: Annotations,
    gold: Ints | None,
    embedders: Embedders,
    fold: Ints,
    hidden: int,
) -> Judged:
    """Return how likely each representation makes the labels of each task of the hidden fold.

    These tasks lose their labels. A linear classifier on each representation learned without
    these is trained on targets that IBCC infers from the remaining labels, as a user would do;
    IBCC's workers then say how likely the removed labels are under its predictions, calibrated.
    """
    out = fold == hidden
    keep = (fold >= 0) & ~out
    some = votes.filter(keep[votes.task])
    found = LabelsAlone(votes, gold).infer(torch.as_tensor(keep))
    even = np.zeros((votes.n_tasks, votes.n_classes))
    likely = expect(votes, even, found.confusion_, gold).posterior[out]
    judged = []
    for settings, rows in representations(X, some, gold, embedders):
        proba = predict(rows[keep], found.posterior_[keep], rows[out])
        judged.append((settings, calibrated_evidence(proba, likely)))
    return judged


def calibrated_evidence(proba: Floats, likelihood: Floats) -> Floats:
    """Return the log-likelihood of each task's labels, up to a constant, by the best power.

    A representation is judged by what it tells apart. How sure a classifier should be is learned
    from a few tasks, and what makes one merely surer than another separates no more.
    """
    member = proba[:, None]
    usual = usual_classes(member)
    calibrated = choose_sharpening(member, likelihood, POWERS, usual).apply(member)
    return log_evidence(calibrated, likelihood)[:, 0]


def representations(
    X: Floats, votes: Annotations, gold: Ints | None, embedders: Embedders
) -> Iterator[tuple[dict[str, Any], Floats]]:
    """Yield the settings and rows of everything that can be chosen."""
    yield FEATURES, X
    for settings, embedder in embedders:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                truths = name_truths(gold, votes)
                vectors = np.asarray(embedder.fit_transform(X, votes, truths))
        except CrowdwiseError:  # such as too few tasks of a class
            continue
        yield {"output": "both", **settings}, np.hstack([X, vectors])
        yield {"output": "vectors", **settings}, vectors


def predict(rows: Floats, target: Floats, new: Floats) -> Floats:
    """Predict class probabilities by a linear classifier with a cross-validated penalty."""
    scaler = StandardScaler().fit(rows)
    design, axes = turn(with_ones(scaler.transform(rows)))
    penalties = penalties_for(rows.shape[1])
    part = np.arange(len(rows)) % N_FOLDS
    score = np.zeros(len(penalties))
    for f in range(N_FOLDS):
        for i, weights in enumerate(path(design[part != f], target[part != f], penalties)):
            log_class = log_softmax(design[part == f] @ weights, axis=1)
            score[i] += (target[part == f] * log_class).sum()
    best = penalties[: int(score.argmax()) + 1]
    *_, weights = path(design, target, best)
    return softmax(with_ones(scaler.transform(new)) @ (axes @ weights), axis=1)


def path(design: Floats, target: Floats, penalties: list[float]) -> Iterator[Floats]:
    """Yield weights for each penalty from strong to weak, each starting from the one before."""
    weights = np.zeros((design.shape[1], target.shape[1]))
    for penalty in penalties:
        ridge = penalty * len(design)
        weights = softmax_regression(design, target, ridge, weights, MAX_ITER)
        yield weights


def with_ones(rows: Floats) -> Floats:
    """Append a column of ones."""
    return np.hstack([rows, np.ones((len(rows), 1))])
