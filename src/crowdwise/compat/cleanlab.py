"""cleanlab's functions for several annotators, with its arguments, keys and columns.

Labels are a table of examples (rows) and annotators (columns), with class numbers and NaN for no
label, as in ``cleanlab.multiannotator``, whose terms these functions keep.

cleanlab 2.9 counts labels for the wrong classes if a class is missing among an example's labels,
because labels are floats there. This affects ``calibrate_probs``, the active-learning scores, and
``detailed_label_quality`` by agreement. Ours do what cleanlab intends.

>>> import numpy as np
>>> labels = np.array([[0, 0, np.nan], [1, 1, 0], [0, np.nan, 0], [1, 1, 1]])
>>> pred_probs = np.array([[0.8, 0.2], [0.3, 0.7], [0.9, 0.1], [0.2, 0.8]])
>>> found = get_label_quality_multiannotator(labels, pred_probs)
>>> found["label_quality"]["consensus_label"].tolist()
[0, 1, 0, 1]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from crowdwise.compat._cleanlab_tables import (
    LabelTable,
    Wide,
    annotator_table,
    check_probs,
    example_table,
    read_labels,
    score_settled,
)
from crowdwise.errors import AnnotationError, ParameterError, explain
from crowdwise.inference.crowdlab import (
    Consensus,
    CrowdlabCounts,
    apply_temperature,
    find_consensus,
    fit_temperature,
    majority_label,
    score_workers,
)
from crowdwise.typing import Floats, Ints

CONSENSUS_METHODS = ("best_quality", "majority_vote")
QUALITY_METHODS = ("crowdlab", "agreement")

__all__ = [
    "convert_long_to_wide_dataset",
    "get_active_learning_scores",
    "get_label_quality_multiannotator",
    "get_majority_vote_label",
]


def get_label_quality_multiannotator(
    labels_multiannotator: LabelTable,
    pred_probs: ArrayLike | None = None,
    *,
    consensus_method: str | list[str] = "best_quality",
    quality_method: str = "crowdlab",
    calibrate_probs: bool = False,
    return_detailed_quality: bool = True,
    return_annotator_stats: bool = True,
    return_weights: bool = False,
    verbose: bool = True,  # noqa: ARG001  cleanlab has it
    label_quality_score_kwargs: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Return consensus labels, and the quality of labels and annotators.

    Parameters
    ----------
    labels_multiannotator : DataFrame or ndarray of shape (n_examples, n_annotators)
        Class numbers, NaN where an annotator gave none.
    pred_probs : ndarray of shape (n_examples, n_classes), optional
        A classifier's predictions for examples that it was not trained on. Without them, which
        cleanlab does not allow, quality is agreement and the consensus is the majority.
    consensus_method : {"best_quality", "majority_vote"} or a list of both
        Which labels to return; with a list, the others get columns of their own.
    quality_method : {"crowdlab", "agreement"}
        Whether quality weights annotators and classifier, or is the share that agrees.
    calibrate_probs : bool, default=False
        Whether to scale ``pred_probs`` by the temperature that fits the labels best.
    return_detailed_quality, return_annotator_stats, return_weights : bool
        Which tables to return.
    verbose, label_quality_score_kwargs
        Accepted and ignored: nothing is printed, and the score is the self-confidence.

    Returns
    -------
    dict
        ``label_quality``, ``detailed_label_quality``, ``annotator_stats``, ``model_weight`` and
        ``annotator_weight``, as in cleanlab.
    """
    wide = read_labels(labels_multiannotator)
    if pred_probs is None:
        quality_method, consensus_method = "agreement", "majority_vote"
    methods = [consensus_method] if isinstance(consensus_method, str) else list(consensus_method)
    _refuse_unknown(methods, quality_method, return_weights)
    _refuse_other_scores(label_quality_score_kwargs or {})
    proba = check_probs(pred_probs, wide)
    counts = CrowdlabCounts.of(wide.annotations(proba.shape[1]))
    if calibrate_probs:
        proba = apply_temperature(
            proba, fit_temperature(counts.votes / counts.size[:, None], proba)
        )
    found: dict[str, Consensus] = {}
    for name in methods:
        found[name] = _find_consensus(counts, proba, name, quality_method, pred_probs is not None)
    main = found[methods[0]]
    info: dict[str, Any] = {"label_quality": example_table(wide, counts, found, quality_method)}
    if return_detailed_quality:
        info["detailed_label_quality"] = _label_quality(wide, main.posterior)
    if return_annotator_stats:
        quality = score_workers(counts, main) if quality_method == "crowdlab" else None
        info["annotator_stats"] = annotator_table(wide, counts, main, quality, quality_method)
    if return_weights:
        last = found[methods[-1]]  # with several methods, cleanlab returns the last one's weights
        info["model_weight"], info["annotator_weight"] = last.model, last.worker
    return info


def get_majority_vote_label(
    labels_multiannotator: LabelTable,
    pred_probs: ArrayLike | None = None,
    verbose: bool = True,  # noqa: ARG001  cleanlab has it
) -> Ints:
    """Return the label that most annotators gave.

    Ties go to the class that ``pred_probs`` favor, then to the rarer class, then to that of the
    better annotators, and then to fixed random numbers.
    """
    wide = read_labels(labels_multiannotator)
    proba = check_probs(pred_probs, wide)
    counts = CrowdlabCounts.of(wide.annotations(proba.shape[1]))
    return majority_label(
        counts, None if pred_probs is None else proba, _tie_breaks(counts)
    ).astype(int)


def get_active_learning_scores(
    labels_multiannotator: LabelTable | None = None,
    pred_probs: ArrayLike | None = None,
    pred_probs_unlabeled: ArrayLike | None = None,
) -> tuple[Floats, Floats]:
    """Score how settled examples are: label those with the lowest scores next (ActiveLab).

    Parameters
    ----------
    labels_multiannotator : DataFrame or ndarray, optional
        As above; needed with ``pred_probs``.
    pred_probs : ndarray, optional
        A classifier's predictions for the labeled examples.
    pred_probs_unlabeled : ndarray, optional
        Its predictions for examples that nobody has labeled yet.

    Returns
    -------
    scores, scores_unlabeled : ndarray
        Empty if there is nothing to score.
    """
    if pred_probs is None and pred_probs_unlabeled is None:
        raise ParameterError(
            "There is nothing to score.\n  expected: pred_probs, pred_probs_unlabeled, or both"
            "\n  fix:      predict probabilities with any classifier first"
        )
    if pred_probs is None:
        return score_settled(None, None, pred_probs_unlabeled)
    if labels_multiannotator is None:
        raise AnnotationError(
            explain(
                "pred_probs of labeled examples come without labels.",
                expected="labels_multiannotator too",
                fix="if there are no labels, give pred_probs_unlabeled only",
            )
        )
    wide = read_labels(labels_multiannotator)
    proba = check_probs(pred_probs, wide)
    counts = CrowdlabCounts.of(wide.annotations(proba.shape[1]))
    heat = 1.0
    if (counts.size > 1).any():
        heat = fit_temperature(counts.votes / counts.size[:, None], proba)
        proba = apply_temperature(proba, heat)
    result = find_consensus(counts, proba, _unknown(counts), _tie_breaks(counts), best_quality=True)
    if not (counts.size > 1).any():  # one label each, which is the consensus
        result = Consensus(counts.votes.argmax(axis=1), proba, 1.0, np.ones(counts.n_workers))
    return score_settled(counts, result, pred_probs_unlabeled, heat)


def convert_long_to_wide_dataset(labels_multiannotator_long: pd.DataFrame) -> pd.DataFrame:
    """Pivot a table of task, annotator and label to one row per task."""
    wide = labels_multiannotator_long.pivot(index="task", columns="annotator", values="label")
    return wide.rename_axis(index=None, columns=None)


def _find_consensus(
    counts: CrowdlabCounts, proba: Floats, method: str, quality: str, has_model: bool
) -> Consensus:
    """Find labels and posterior by one method."""
    best = method == "best_quality"
    if quality == "crowdlab":
        return find_consensus(
            counts, proba, _unknown(counts), _tie_breaks(counts), best_quality=best
        )
    # By agreement, the posterior is the share of labels, and its best class a majority's.
    labels = majority_label(counts, proba if has_model else None, _tie_breaks(counts))
    shares = counts.votes / counts.size[:, None]
    return Consensus(labels, shares, 1.0, np.ones(counts.n_workers))


def _label_quality(wide: Wide, posterior: Floats) -> pd.DataFrame:
    """Return the posterior probability of each annotator's label."""
    given = ~np.isnan(wide.labels)
    quality = np.full(wide.labels.shape, np.nan)
    row = np.nonzero(given)[0]
    quality[given] = posterior[row, wide.labels[given].astype(int)]
    table = pd.DataFrame(quality, index=wide.examples, columns=wide.annotators)
    return table.add_prefix("quality_annotator_")


def _unknown(counts: CrowdlabCounts) -> Ints:
    return np.full(len(counts.votes), -1)


def _tie_breaks(counts: CrowdlabCounts) -> Floats:
    return np.random.RandomState(0).random_sample(counts.votes.shape)


def _refuse_unknown(methods: list[str], quality: str, weights: bool) -> None:
    for what, given, known in (
        *(("consensus_method", name, CONSENSUS_METHODS) for name in methods),
        ("quality_method", quality, QUALITY_METHODS),
    ):
        if given not in known:
            raise ParameterError(
                f"{what}={given!r} is unknown.\n  expected: {', '.join(known)}"
                "\n  fix:      choose one of these"
            )
    if weights and quality != "crowdlab":
        raise ParameterError(
            "There are no weights.\n  expected: quality_method='crowdlab'"
            "\n  fix:      leave return_weights out, or choose crowdlab"
        )


def _refuse_other_scores(named: Mapping[str, object]) -> None:
    method = named.get("method", "self_confidence")
    if method != "self_confidence" or named.get("adjust_pred_probs"):
        raise ParameterError(
            explain(
                f"label_quality_score_kwargs={dict(named)}.",
                expected="self_confidence only",
                fix="leave it out",
            )
        )
