"""Plot of calibration: whether confidence matches accuracy."""

from matplotlib.axes import Axes

from crowdwise.errors import plural
from crowdwise.evaluate import reliability_table
from crowdwise.evaluate.truth_alignment import Predictions, Truths
from crowdwise.plot._axes import one_axes


def plot_calibration(
    predicted: Predictions,
    truth: Truths,
    *,
    n_bins: int = 10,
    bins: str = "width",
    confidence: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against confidence; a calibrated model is on the diagonal.

    Parameters
    ----------
    predicted : fitted aggregator or learner, or DataFrame
        A model with ``probas_`` or ``posterior_``; or a frame of tasks x classes.
    truth, n_bins, confidence
        As for :func:`crowdwise.evaluate.reliability_table`.
    bins : {"width", "mass"}, default="width"
        Whether bins have equal widths, or equal numbers of tasks.
    ax : Axes, optional
        Where to draw. The title gives the mean gap between confidence and accuracy.
    """
    table = reliability_table(predicted, truth, n_bins=n_bins, bins=bins, confidence=confidence)
    ax = one_axes(ax, (4.4, 4.4))
    share = table["n_tasks"] / table["n_tasks"].sum()
    width = table["to"] - table["from"]
    ax.bar(table["from"], share, width, align="edge", color="0.9", ec="0.8", label="share of tasks")
    ax.plot([0, 1], [0, 1], color="0.5", lw=1, ls="--", label="perfect")
    below, above = table["accuracy"] - table["low"], table["high"] - table["accuracy"]
    around = [below.clip(lower=0), above.clip(lower=0)]  # rounding may flip a sign
    what = f"accuracy, {confidence:.0%} interval"
    points = (table["confidence"], table["accuracy"])
    ax.errorbar(*points, yerr=around, fmt="o-", lw=1.2, ms=4, capsize=2, label=what)
    gap = float((share * (table["confidence"] - table["accuracy"]).abs()).sum())
    ax.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1), ylim=(0, 1.02), aspect="equal")
    ax.set_title(f"mean gap {gap:.3f}, {plural(int(table['n_tasks'].sum()), 'task')}")
    ax.legend(loc="upper left", fontsize=8)
    return ax
