"""Refitting a committee, found on a sample of very many tasks, to all of them in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from crowdwise.learn.committee_search import Designs, Found, Regressions, choose
from crowdwise.learn.isolated_folds import Folds
from crowdwise.learn.penalty_path import step_in_batch, step_sizes, weigh_evenly
from crowdwise.typing import Floats, Ints

BATCH = 4096
LEAST_STEPS = 40
LEAST_EPOCHS = 2


def teach_all(
    found: Found,
    prior: Floats,
    folds: Folds,
    describe: Callable[[Ints], Designs],
    rng: np.random.RandomState,
) -> tuple[Found, Floats]:
    """Refit a committee, found on some tasks, to all but those of the last fold.

    The last fold decides the weights of the members. ``prior`` is the committee's prediction
    for each task, from others, and ``describe`` returns coordinates; also returns P(truth).
    """
    posterior = folds.infer(prior)
    judge = folds.fold == folds.n_folds - 1
    taught = np.flatnonzero(folds.labeled & ~judge)
    less = (folds.fold == 0).sum() / len(taught)  # more tasks need a smaller penalty
    views = {
        view: replace(own, penalties=own.penalties * less) for view, own in found.views.items()
    }
    views = refit_in_batches(views, describe, posterior, taught, rng)
    designs = describe(np.flatnonzero(judge))
    members = [own.predict(designs[view])[:, 0] for view, own in views.items()]
    likely = folds.likelihood(posterior)[judge]
    everyone = np.ones(len(likely), dtype=bool)
    return choose(views, np.concatenate(members, axis=1), likely, everyone), posterior


def refit_in_batches(
    views: Mapping[str, Regressions],
    describe: Callable[[Ints], Designs],
    target: Floats,
    row: Ints,
    rng: np.random.RandomState,
) -> dict[str, Regressions]:
    """Take steps on batches of random rows; return the mean weights of the second half.

    ``describe`` returns coordinates of some rows, ``target`` is P(truth) of all of them, and
    ``row`` says which have labels.
    """
    n_batches = -(-len(row) // BATCH)
    n_epochs = max(LEAST_EPOCHS, -(-LEAST_STEPS // n_batches))
    half, step = n_epochs * n_batches // 2, 0
    weights = {view: own.weights for view, own in views.items()}
    mean = {view: np.zeros_like(own.weights) for view, own in views.items()}
    size: dict[str, Floats] = {}
    for _ in range(n_epochs):
        for batch in np.array_split(rng.permutation(row), n_batches):
            designs = describe(batch)
            for view, own in views.items():
                if view not in size:
                    even = weigh_evenly(len(batch))
                    size[view] = step_sizes(designs[view], even, own.penalties)
                given = designs[view], target[batch], own.penalties
                weights[view] = step_in_batch(*given, weights[view], size[view])
                if step >= half:
                    mean[view] += (weights[view] - mean[view]) / (step - half + 1)
            step += 1
    return {view: replace(own, weights=mean[view]) for view, own in views.items()}
