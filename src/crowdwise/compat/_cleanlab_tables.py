"""Tables in cleanlab's form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from crowdwise.annotations import Annotations
from crowdwise.errors import AnnotationError, explain, plural
from crowdwise.inference.crowdlab import Consensus, CrowdlabCounts, apply_temperature
from crowdwise.typing import Array, Floats

LabelTable: TypeAlias = pd.DataFrame | ArrayLike  # class numbers, examples x annotators


@dataclass(frozen=True, eq=False)
class Wide:
    """Labels, examples x annotators, NaN for none, with the names of both."""

    labels: Floats
    examples: pd.Index | None
    annotators: pd.Index | None

    def annotations(self, n_classes: int) -> Annotations:
        """Return them as annotations with this many classes."""
        row, column = np.nonzero(~np.isnan(self.labels))
        return Annotations.from_codes(
            row,
            column,
            self.labels[row, column].astype(np.int32),
            tasks=np.arange(self.labels.shape[0]),
            workers=np.arange(self.labels.shape[1]),
            classes=np.arange(n_classes),
        )


def read_labels(labels: LabelTable) -> Wide:
    """Read a frame or an array of class numbers."""
    names: tuple[pd.Index | None, pd.Index | None] = (None, None)
    if isinstance(labels, pd.DataFrame):
        names = (labels.index, labels.columns)
        labels = labels.astype(object).where(labels.notna(), np.nan).to_numpy()
    try:
        table = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise _bad_labels("values that are not numbers", str(error)) from None
    if table.ndim != 2 or not table.size:
        raise _bad_labels(f"shape {table.shape}", "")
    given = table[~np.isnan(table)]
    invalid = (given < 0) | (given % 1 != 0)
    if invalid.any():
        raise _bad_labels("numbers that are not classes", str(given[invalid][0]))
    for axis, what in ((1, "example"), (0, "annotator")):
        empty = np.flatnonzero(np.isnan(table).all(axis=axis))
        if len(empty):
            raise AnnotationError(
                explain(
                    f"{plural(len(empty), what)} without a label.",
                    first=f"number {empty[0]}",
                    expected="at least one label in every row and column",
                    fix="drop them first",
                )
            )
    return Wide(table, *names)


def check_probs(pred_probs: ArrayLike | None, wide: Wide) -> Floats:
    """Check that a classifier's probabilities match the labels; uniform if there are none."""
    highest = int(np.nanmax(wide.labels)) + 1
    if pred_probs is None:
        return np.full((len(wide.labels), highest), 1.0 / highest)
    proba = np.asarray(pred_probs, dtype=np.float64)
    if proba.ndim != 2 or len(proba) != len(wide.labels) or proba.shape[1] < highest:
        raise AnnotationError(
            explain(
                f"pred_probs have shape {proba.shape}.",
                expected=f"({len(wide.labels):,}, {highest} or more): a row for each example",
                fix="predict the probability of every class for each example",
            )
        )
    return proba


def share_agreeing(counts: CrowdlabCounts, consensus: Array) -> Floats:
    """Return the share of each example's annotators who agree with the consensus."""
    return counts.votes[np.arange(len(consensus)), consensus] / counts.size


def example_table(
    wide: Wide, counts: CrowdlabCounts, found: Mapping[str, Consensus], quality: str
) -> pd.DataFrame:
    """Make a table with one row per example; the first method's columns have no suffix."""
    columns: dict[str, Array] = {}
    for name, result in found.items():
        suffix = f"_{name}" if columns else ""
        agrees = share_agreeing(counts, result.consensus)
        columns[f"consensus_label{suffix}"] = result.consensus.astype(int)
        score = result.quality if quality == "crowdlab" else agrees
        columns[f"consensus_quality_score{suffix}"] = score
        columns[f"annotator_agreement{suffix}"] = agrees
        if not suffix:
            columns["num_annotations"] = counts.size.astype(int)
    return pd.DataFrame(columns, index=wide.examples)


def annotator_table(
    wide: Wide, counts: CrowdlabCounts, result: Consensus, quality: Floats | None, method: str
) -> pd.DataFrame:
    """Make a table with one row per annotator, the worst first."""
    rows, several = counts.rows, (counts.size != 1).astype(np.float64)
    agrees = (rows.label == result.consensus[rows.task]).astype(np.float64)
    with_others = counts.mean_by_worker(agrees, several[rows.task])
    score = result.quality if method == "crowdlab" else share_agreeing(counts, result.consensus)
    table = pd.DataFrame(
        {
            "annotator_quality": with_others if quality is None else quality,
            "agreement_with_consensus": counts.mean_by_worker(agrees, np.ones(len(agrees))),
            "worst_class": find_worst_classes(counts, agrees, score),
            "num_examples_labeled": (~np.isnan(wide.labels)).sum(axis=0),
        },
        index=wide.annotators,
    )
    if quality is not None:  # unknown for whoever shares no example with others
        table.loc[np.isnan(with_others), "annotator_quality"] = np.nan
    return table.sort_values(["annotator_quality", "agreement_with_consensus"])


def find_worst_classes(counts: CrowdlabCounts, agrees: Floats, score: Floats) -> Array:
    """Find the class of each annotator's labels that agrees least with the consensus.

    Ties go to the class given most often, then to the most confident consensus, then to the
    first.
    """
    rows, shape = counts.rows, (counts.n_workers, counts.votes.shape[1])
    cell = rows.worker * shape[1] + rows.label
    given = np.bincount(cell, minlength=shape[0] * shape[1])
    sums = [np.bincount(cell, part, len(given)) for part in (agrees, score[rows.task])]
    right, confident = (part / np.maximum(given, 1) for part in sums)
    order = np.lexsort((-confident, -given, right, given == 0))  # the last key counts first
    first = order[np.argsort(order // shape[1], kind="stable")].reshape(shape)[:, 0]
    return (first % shape[1]).astype(int)


def score_settled(
    counts: CrowdlabCounts | None,
    result: Consensus | None,
    unlabeled: ArrayLike | None,
    heat: float = 1.0,
) -> tuple[Floats, Floats]:
    """Shrink quality toward chance by the weight of one more annotator, per kind of example."""
    labeled, model, usual = np.array([]), 1.0, 1.0
    if counts is not None and result is not None:
        model, usual = result.model, float(result.worker.mean())
        weight = model + counts.by_class(result.worker[counts.rows.worker]).sum(axis=1)
        chance = 1.0 / counts.votes.shape[1]
        labeled = (result.quality * weight + usual * chance) / (weight + usual)
    if unlabeled is None:
        return labeled, np.array([])
    proba = apply_temperature(np.asarray(unlabeled, dtype=np.float64), heat)
    chance = 1.0 / proba.shape[1]
    return labeled, (proba.max(axis=1) * model + usual * chance) / (model + usual)


def _bad_labels(what: str, first: str) -> AnnotationError:
    return AnnotationError(
        explain(
            f"labels_multiannotator has {what}.",
            first=first,
            expected="class numbers 0, 1, …, examples x annotators, NaN for no label",
            fix="number the classes first: crowdwise.Annotations.from_matrix(labels).to_snorkel()",
        )
    )
