"""Advice on the next step with a panel of judges, in sentences."""

from __future__ import annotations

import numpy as np

from crowdwise.errors import plural
from crowdwise.evaluate.gold_estimate import GoldEstimate
from crowdwise.evaluate.panel_assessment import PanelAssessment

MOST_NAMED = 3
NEW = "a new family"
OFTEN = 0.05  # share of tasks without an answer from which a judge is worth a look
LITTLE = 0.1  # of an independent judge: less than this is not worth adding


def advise(found: PanelAssessment) -> list[str]:
    """Derive advice from a panel's figures, the most useful step first.

    Parameters
    ----------
    found : PanelAssessment
        What :func:`assess_panel` returns.
    """
    steps = [advise_gold(found), advise_redundant(found), advise_more(found)]
    return [step for step in (*steps, advise_declined(found), advise_poor(found)) if step]


def advise_gold(found: PanelAssessment) -> str:
    """Advise how many gold labels to get, and why."""
    if not isinstance(found.estimate, GoldEstimate):
        return (
            "Label 50 to 100 tasks, drawn at random, by hand (--gold): without gold, neither the "
            "threshold nor the accuracy can be known, and no figure has an interval."
        )
    own = found.estimate
    half = (own.high - own.low) / 2
    needed = own.gold_needed(half)
    fewer = needed <= own.n_tasks
    more = f"about {needed:,.0f}" if fewer else "more tasks than this panel has"
    return (
        f"{plural(own.n_gold, 'gold label')} give ± {half:.3g}; half of that needs {more}. "
        "Without the judges, the same gold labels give "
        f"± {(own.alone.high - own.alone.low) / 2:.3g}."
    )


def advise_redundant(found: PanelAssessment) -> str:
    """Name the judges that the panel can do without."""
    names = found.judges.index[found.judges["redundant"]]
    if not len(names):
        return ""
    shown = ", ".join(map(str, names[:MOST_NAMED])) + (" …" if len(names) > MOST_NAMED else "")
    out = plural(len(names), "judge")
    return f"Leave out {out} ({shown}): the others carry 99% of the information."


def advise_more(found: PanelAssessment) -> str:
    """Advise whether to add a judge, and of which family, unless that family is a poor one."""
    skill, family = found.judges["skill"], found.judges["family"].astype(str)
    poor = skill.groupby(family).mean() < skill.median()
    adds = found.dependence.families["adds"].drop(poor.index[poor], errors="ignore")
    best = adds.idxmax()
    if not np.isfinite(found.dependence.effective_number.value):
        return ""
    if adds.max() < LITTLE:
        return (
            f"Do not add judges like these: one more is worth {max(adds.max(), 0.0):.2f} of an "
            "independent judge at most. Another kind of judge or prompt, or gold, helps more."
        )
    kind = f"one more of {best}" if best != NEW else "one of a new family"
    return f"If you add a judge, add {kind}: worth {adds.max():.2f} of an independent one."


def advise_declined(found: PanelAssessment) -> str:
    """Name the judges who often gave no usable answer."""
    often = found.judges["declined"]
    often = often[often > OFTEN].sort_values(ascending=False)
    if not len(often):
        return ""
    shown = ", ".join(f"{name} {share:.0%}" for name, share in often.head(MOST_NAMED).items())
    return f"Look at the outputs of judges whose answers often could not be read: {shown}."


def advise_poor(found: PanelAssessment) -> str:
    """Name the judges who are no better than chance."""
    poor = found.judges.index[found.judges["skill"] <= 0]
    if not len(poor):
        return ""
    shown = ", ".join(map(str, poor[:MOST_NAMED]))
    return f"Check the prompt or the scale of {shown}: no better than chance, or reversed."
