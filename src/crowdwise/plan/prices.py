"""What labels cost: budgets, and the price of a label by each worker."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import inf
from numbers import Real

import numpy as np
import pandas as pd

from crowdwise.annotations.names import as_names
from crowdwise.errors import ParameterError, explain
from crowdwise.typing import Floats, Names

FREE = 1e-9  # minimum price of a label, and maximum overspending

Cost = float | Mapping[Hashable, float]


def as_amount(value: object, what: str) -> float:
    """Return an amount of money; anything but a finite number of 0 or more is refused."""
    if isinstance(value, Real) and 0 <= float(value) < inf:
        return float(value)
    raise ParameterError(
        explain(
            f"{what} is {value!r}.",
            expected="a finite number of 0 or more",
            fix="give an amount such as 100 or 0.05; leave out workers who cannot be paid",
        )
    )


def as_paid(price: float | Floats) -> Floats:
    """Return what is paid for labels of these prices: nothing for free ones."""
    return np.where(np.asarray(price) > FREE, price, 0.0)


def mean_price(cost: Cost) -> float:
    """Return the mean price of a label over workers."""
    if not isinstance(cost, Mapping):
        return max(as_amount(cost, "The cost of a label"), FREE)
    if not cost:
        fix = "give the price of a label, or the price by each worker"
        raise ParameterError(explain("cost names no worker.", fix=fix))
    return float(list_prices(cost, list(cost)).mean())


def list_prices(cost: Cost, workers: Names) -> pd.Series:
    """Return the price of a label by each worker, who is named once."""
    names = as_names(list(workers) if isinstance(workers, Mapping) else workers)
    if names.ndim != 1 or pd.isna(names).any():
        fix = "give a flat list of names, or leave available out if anyone may label"
        raise ParameterError(explain("available has a worker without a name.", fix=fix))
    names = pd.unique(names)
    costs = cost if isinstance(cost, Mapping) else dict.fromkeys(names.tolist(), cost)
    missing = [name for name in names.tolist() if name not in costs]
    if missing:
        raise ParameterError(
            explain(
                f"There is no cost for the worker {missing[0]!r}.",
                expected="a cost for every available worker",
                fix="add its cost, or leave the worker out of available",
            )
        )
    prices = [
        max(as_amount(costs[name], f"The cost of a label by {name!r}"), FREE)
        for name in names.tolist()
    ]
    return pd.Series(prices, index=pd.Index(names, tupleize_cols=False), dtype=np.float64)


def read_offers(available: pd.DataFrame) -> pd.DataFrame:
    """Check that a frame has pairs of task and worker."""
    missing = [name for name in ("task", "worker") if name not in available]
    if not missing:
        return available
    raise ParameterError(
        explain(
            f"available has no column {missing[0]!r}.",
            first=f"columns {list(available.columns)}",
            expected="a list of workers, or a frame with the columns task and worker",
            fix="rename its columns",
        )
    )
