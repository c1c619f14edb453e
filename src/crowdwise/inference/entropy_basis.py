"""Parametrizations of the effects of a worker or task on the log-odds of labels."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from scipy.optimize import linear_sum_assignment

from crowdwise.typing import Floats, Ints

TINY = np.finfo(np.float64).tiny


class Basis(Protocol):
    """A parametrization of the effect of a worker or task on the log-odds."""

    ordinal: ClassVar[bool]  # whether parameters belong to thresholds, for the compiled loop

    @property
    def n_classes(self) -> int: ...

    @property
    def n_parameters(self) -> int:
        """Number of parameters of a worker or task."""
        ...

    @property
    def fair_penalty(self) -> float:
        """Penalty that weighs as much against the labels as 1 does with two classes.

        Twice the number of parameters that add up in a cell, times the share of the truths
        that one of them affects.
        """
        ...

    def effect(self, parameters: Floats) -> Floats:
        """Return effects on log-odds, (unit, truth, label), of parameters (unit, parameter)."""
        ...

    def step(self, given: Floats, expected: Floats, parameters: Floats, penalty: float) -> Floats:
        """Take a Newton step, from given and expected label counts (unit, truth, label)."""
        ...

    def orders(self, agreement: Floats) -> list[Ints]:
        """List orders of the truths that do not change the penalized likelihood.

        Only those that may increase the diagonal sum of ``agreement[truth, label]`` matter.
        """
        ...


@dataclass(frozen=True)
class EveryCell:
    """A basis with one parameter for each truth and label."""

    n_classes: int
    ordinal: ClassVar[bool] = False

    @property
    def n_parameters(self) -> int:
        return self.n_classes**2

    @property
    def fair_penalty(self) -> float:
        return 2.0 / self.n_classes

    def effect(self, parameters: Floats) -> Floats:
        return parameters.reshape(-1, self.n_classes, self.n_classes)

    def step(self, given: Floats, expected: Floats, parameters: Floats, penalty: float) -> Floats:
        """Solve ``(diag(c) - c c' / sum(c) + penalty) step = gradient`` for each truth's row.

        With ``c`` the expected counts, the bracket is no less than the curvature, and its
        inverse has a closed form: diagonal plus a matrix of rank one.
        """
        gradient = given - expected - penalty * self.effect(parameters)
        scaled = gradient / (expected + penalty)
        share = expected / (expected + penalty)
        slack = np.maximum((penalty * share).sum(axis=2, keepdims=True), TINY)
        step = scaled + share * (expected * scaled).sum(axis=2, keepdims=True) / slack
        return step.reshape(parameters.shape)

    def orders(self, agreement: Floats) -> list[Ints]:
        return [linear_sum_assignment(agreement.T, maximize=True)[1]]


@dataclass(frozen=True)
class Thresholds:
    """A basis with two parameters for each threshold of a scale: truth above, truth below.

    Each raises the labels above the threshold and lowers those below it. The papers have a
    parameter for either side of the label; these two always end up as opposites, hence the
    factor ``sqrt(1 / 2)``: their squares add up to the square of the single one here.
    """

    n_classes: int
    ordinal: ClassVar[bool] = True

    @property
    def n_parameters(self) -> int:
        return 2 * (self.n_classes - 1)

    @property
    def fair_penalty(self) -> float:
        return max(self.n_classes - 1.0, 1.0)  # each affects half of the truths on average

    @cached_property
    def matrices(self) -> Floats:
        """The factor of each parameter, shape (parameter, truth, label)."""
        scale = np.arange(self.n_classes)
        above = scale >= np.arange(1, self.n_classes)[:, None]  # (threshold, class)
        truth = np.stack([above, ~above]).astype(np.float64)  # (side, threshold, class)
        label = np.where(above, np.sqrt(0.5), -np.sqrt(0.5))
        products = truth[:, :, :, None] * label[:, None, :]
        return products.reshape(-1, self.n_classes, self.n_classes)

    def effect(self, parameters: Floats) -> Floats:
        return np.tensordot(parameters, self.matrices, axes=1)

    def step(self, given: Floats, expected: Floats, parameters: Floats, penalty: float) -> Floats:
        """Solve ``(B (diag(c) - c c' / sum(c)) B' + penalty) step = gradient`` for each unit.

        With ``c`` the expected counts of a truth's labels, summed over truths, and ``B`` the
        basis, the bracket is no less than the curvature.
        """
        n_cells = self.n_classes**2
        flat = self.matrices.reshape(self.n_parameters, n_cells)
        surplus = (given - expected).reshape(-1, n_cells)
        gradient = surplus @ flat.T - penalty * parameters
        pairs = (flat[:, None] * flat).reshape(-1, n_cells)  # (two parameters, cell)
        second = expected.reshape(-1, n_cells) @ pairs.T
        first = np.einsum("pkl,ukl->upk", self.matrices, expected)
        first /= np.sqrt(np.maximum(expected.sum(axis=2), TINY))[:, None]
        square = (len(parameters), self.n_parameters, self.n_parameters)
        curvature = second.reshape(square) - first @ first.swapaxes(1, 2)
        bracket = curvature + penalty * np.eye(self.n_parameters)
        return np.linalg.solve(bracket, gradient[:, :, None])[:, :, 0]

    def orders(self, agreement: Floats) -> list[Ints]:
        scale = np.arange(self.n_classes)
        return [scale, scale[::-1]]
