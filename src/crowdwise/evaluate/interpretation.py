"""Agreement figures in words."""

import numpy as np

from crowdwise.errors import plural
from crowdwise.evaluate.intervals import Estimate
from crowdwise.evaluate.label_counts import LabelCounts

# Landis and Koch (1977), doi:10.2307/2529310; from the highest down.
KAPPA_WORDS = (
    (0.8, "almost perfect"),
    (0.6, "substantial"),
    (0.4, "moderate"),
    (0.2, "fair"),
    (0.0, "slight"),
)
# Krippendorff (2004), doi:10.1111/j.1468-2958.2004.tb00738.x
ALPHA_WORDS = (
    (0.8, "enough to rely on"),
    (0.667, "enough for tentative conclusions only"),
    (0.0, "too little to rely on single labels"),
)
PARADOX = 0.85, 0.6  # observed agreement above, and chance-corrected below
FEW_TASKS = 30


def interpret(measure: str, estimate: Estimate, table: LabelCounts) -> str:
    """Interpret a figure of :func:`~.agreement.agreement` in one or two plain sentences."""
    if np.isnan(estimate.value):
        return f"Not defined. {estimate.note}"
    if measure == "observed agreement":
        return " ".join([_observed(estimate), *_caveats(estimate)])
    words = ALPHA_WORDS if "alpha" in measure else KAPPA_WORDS
    grade = next((word for low, word in words if estimate.value >= low), "")
    if not grade:
        text = "Workers agree less than by chance: some contradict the others."
    else:
        far = f"{estimate.value:.0%} of the way from chance to perfect"
        text = f"{far}: {grade}."
    return " ".join([text, *_caveats(estimate), *_paradox(measure, estimate, table)])


def explain_undefined(table: LabelCounts) -> str:
    """Explain why there is no figure for these annotations."""
    if not table.counts.shape[0]:
        return "There are no annotations."
    if not table.shared.any():
        who = "there is only one worker" if table.n_workers == 1 else "no two workers share a task"
        return f"No task has two labels ({who}), so nobody can agree or disagree."
    return (
        f"Every label is {_plain(table.used[0])}: with one class, agreement by chance is certain "
        "and there is nothing beyond it to measure. The observed agreement is 100%."
    )


def _observed(estimate: Estimate) -> str:
    return (
        f"Two workers who label the same task give the same label {estimate.value:.0%} of the time."
    )


def _caveats(estimate: Estimate) -> list[str]:
    found = []
    if estimate.low == estimate.high:
        found.append("All tasks give the same value, so the interval cannot say how far off it is.")
    elif estimate.n_tasks < FEW_TASKS:
        found.append(f"From {plural(estimate.n_tasks, 'task')} only: see the interval.")
    if estimate.note:
        found.append(estimate.note)
    return found


def _paradox(measure: str, estimate: Estimate, table: LabelCounts) -> list[str]:
    """Explain a low figure beside high agreement, which rare classes cause."""
    if "Gwet" in measure or not table.shared.any():
        return []
    size = table.size[table.shared]
    counts = table.counts[np.flatnonzero(table.shared)]
    same = float(np.mean((np.asarray(counts.power(2).sum(axis=1)) - size) / (size * (size - 1))))
    often, low = PARADOX
    if same < often or estimate.value >= low:
        return []
    share = np.asarray(counts.sum(axis=0)) / size.sum()
    top = int(share.argmax())
    return [
        f"It is low although {same:.0%} of pairs agree, because {share[top]:.0%} of the labels are "
        f"{_plain(table.classes[top])} and would mostly agree by chance; the rare labels are "
        "what workers disagree on. See also Gwet's coefficient."
    ]


def _plain(name: object) -> str:
    return repr(name.item() if hasattr(name, "item") else name)
