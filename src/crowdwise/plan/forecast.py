"""Forecasts: the accuracy that more labels would bring, by simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise.errors import ParameterError, explain
from crowdwise.plan.outlook import Outlook
from crowdwise.plan.policies import Policy
from crowdwise.plan.prices import FREE
from crowdwise.typing import Floats, Ints

STEPS = 10  # in which the labels of a forecast arrive
MOST_EACH = 1_000  # labels per task that are imagined


@dataclass(frozen=True, eq=False)
class Imagined(Outlook):
    """An outlook with imagined labels, of which only number and effect are known."""

    extra: Ints | int = 0  # imagined labels of each task
    of_anyone: Floats | None = None

    @property
    def n_labels(self) -> Ints:
        return np.asarray(self.votes.redundancy + self.extra)

    @property
    def crowd(self) -> Floats:
        return super().crowd if self.of_anyone is None else self.of_anyone


def count_labels(n_labels: float, outlook: Outlook) -> int:
    """Return a whole number of labels; more than a forecast can imagine are refused."""
    if n_labels <= MOST_EACH * len(outlook.posterior):
        return int(n_labels + FREE)
    raise ParameterError(
        explain(
            f"The budget is for {n_labels:,.0f} labels of {len(outlook.posterior):,} tasks.",
            expected=f"at most {MOST_EACH:,} labels per task",
            fix="give a smaller budget, or check the cost of a label",
        )
    )


def imagine(
    outlook: Outlook, policy: Policy, n_labels: int, rng: np.random.RandomState
) -> list[float]:
    """Simulate the accuracy after each tenth of the labels, once.

    Truths are drawn from the posterior, labels from the crowd's confusion matrix.
    """
    posterior, crowd = outlook.posterior.copy(), outlook.crowd
    truth = (rng.random_sample(len(posterior))[:, None] > posterior.cumsum(axis=1)).sum(axis=1)
    truth = np.minimum(truth, posterior.shape[1] - 1)
    levels, extra = crowd.cumsum(axis=1), np.zeros(len(posterior), dtype=np.int64)
    found = [float((posterior.argmax(axis=1) == truth).mean())]
    for part in np.diff(np.linspace(0, n_labels, STEPS + 1).round().astype(int)):
        for left in range(part, 0, -len(posterior)):  # a task gets one label at a time
            view = Imagined(outlook.votes, posterior, outlook.gold, extra, crowd)
            order = np.argsort(-policy.gain(view), kind="stable")[:left]
            draw = rng.random_sample(len(order))[:, None]
            label = np.minimum((draw > levels[truth[order]]).sum(axis=1), len(crowd) - 1)
            after = posterior[order] * crowd[:, label].T
            posterior[order] = after / after.sum(axis=1, keepdims=True)
            extra[order] += 1
        found.append(float((posterior.argmax(axis=1) == truth).mean()))
    return found
