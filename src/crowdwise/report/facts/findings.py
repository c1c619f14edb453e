"""The facts that matter most, as plain sentences."""

from collections.abc import Iterator

import numpy as np

from crowdwise.aggregate import DEFAULT
from crowdwise.errors import plural
from crowdwise.report.facts.facts import Facts, Finding

FLAGGED = {  # flag of a worker: urgency, and the wording for several workers
    "answers as if at random": ("act", "answer as if at random"),
    "always the same label": ("act", "always give the same label"),
    "often contradicts the rest": ("act", "often contradict the rest"),
    "too few labels to say": ("note", "have too few labels to assess"),
}
LEARNS = "; given known truths (crowdwise aggregate --gold-file), it learns how confident to be"
ALONE = {"answer": "answers", "give": "gives", "contradict": "contradicts", "have": "has"}
LOW_ALPHA, GOOD_ALPHA = 0.4, 0.8
RARE = 0.1  # a class below this share, and below half of an even one, is called rare
MOST_NAMES = 3  # names in a sentence
MANY = 0.2  # a share worth a warning
APART = 0.02  # gap between two figures for the same thing that readers would ask about


def findings(facts: Facts) -> tuple[Finding, ...]:
    """List the most important findings, those that need action first."""
    found = [
        *_on_agreement(facts),
        *_on_independence(facts),
        *_on_labels(facts),
        *_on_workers(facts),
        *_on_times(facts),
        *_on_pairs(facts),
        *_on_annotations(facts),
        *_on_data(facts),
        *_on_classes(facts),
        *_on_methods(facts),
        *_on_more_labels(facts),
    ]
    order = {"act": 0, "note": 1, "good": 2}
    return tuple(sorted(found, key=lambda finding: order[finding.tone]))


def _on_agreement(facts: Facts) -> Iterator[Finding]:
    observed, alpha = facts.measure("observed agreement"), facts.measure("alpha")
    if observed is None or not np.isfinite(observed.value):
        text = "No task was labeled by two workers, so no worker can be checked against another."
        yield Finding("act", text, "agreement")
        return
    text = f"Two workers who label the same task agree {observed.value:.0%} of the time"
    if alpha is None or not np.isfinite(alpha.value):
        yield Finding("note", f"{text}.", "agreement")
        return
    tone = "act" if alpha.value < LOW_ALPHA else "good" if alpha.value >= GOOD_ALPHA else "note"
    text += f": {max(alpha.value, 0):.0%} of the way from chance to perfect"
    yield Finding(tone, f"{text} (Krippendorff's alpha {alpha.value:.2f}).", "agreement")


def _on_independence(facts: Facts) -> Iterator[Finding]:
    found = facts.trust.independence
    if found.is_dependent:
        yield Finding("act" if found.is_severe else "note", found.describe(), "agreement")


def _on_labels(facts: Facts) -> Iterator[Finding]:
    if len(facts.classes.name) < 2:
        return
    tasks, right = facts.tasks, facts.main.scores.get("accuracy")
    value, low, high = (
        facts.trust.accuracy.value,
        facts.trust.accuracy.low,
        facts.trust.accuracy.high,
    )
    expected = f"{facts.method} expects {value:.0%} of its labels to be right"
    expected += f" ({low:.0%} to {high:.0%})" if np.isfinite(low) else ""
    if right is None:
        yield Finding("note", f"{expected}.", "labels")
    else:
        over, under = value > right.high, value < right.low
        text = f"{expected}; {right.value:.1%} of those that can be checked are"
        if over or under:
            text += f": it is {'over' if over else 'under'}confident"
            text += LEARNS if facts.method == DEFAULT.__name__ else ""
        yield Finding("act" if over else "note", f"{text}.", "labels")
    yield _on_confidence(facts)
    if tasks.n_overruled:
        overruled = plural(tasks.n_overruled, "task")
        text = f"{facts.method} overrules the majority on {overruled}, "
        yield Finding("note", f"{text}because it trusts the other workers more.", "labels")


def _on_confidence(facts: Facts) -> Finding:
    tasks = facts.tasks
    if tasks.n_uncertain:
        verb, them = ("has", "it") if tasks.n_uncertain == 1 else ("have", "them")
        text = f"{tasks.n_uncertain:,} of {plural(tasks.n_tasks, 'task')} {verb} a confidence "
        text += f"below {tasks.threshold:.0%}: label {them} again first."
        many = tasks.n_uncertain / max(tasks.n_tasks, 1) > MANY
        return Finding("act" if many else "note", text, "labels")
    text, known = f"Every label has a confidence of at least {tasks.threshold:.0%}", _agree(facts)
    doubt = "" if known else ", but nothing shows that workers agree beyond chance"
    return Finding("good" if known else "note", f"{text}{doubt}.", "labels")


def _on_workers(facts: Facts) -> Iterator[Finding]:
    workers = facts.workers
    for flag, (tone, verb) in FLAGGED.items():
        n = workers.flags[flag]
        if not n:
            continue
        flagged = zip(workers.name, workers.flag, strict=True)
        who = [name for name, own in flagged if own == flag and tone == "act"]
        words = [ALONE.get(word, word) if n == 1 else word for word in verb.split()]
        text = (
            f"{n:,} of {plural(workers.n_workers, 'worker')} {' '.join(words)}{list_names(who, n)}."
        )
        yield Finding(tone, text, "workers")
    if not any(workers.flags.values()):
        yield Finding("good", "No worker stands out as a problem.", "workers")


def _on_times(facts: Facts) -> Iterator[Finding]:
    times = facts.times
    if times is None:
        return
    worse = [name for name, way in zip(facts.workers.name, times.drift, strict=True) if way < 0]
    if worse:
        text = f"{plural(len(worse), 'worker')} {'is' if len(worse) == 1 else 'are'} significantly "
        text += "less accurate in the second half of the job than in the first"
        yield Finding("act", f"{text}{list_names(worse, len(worse))}.", "workers")
    if times.n_hasty:
        text = f"{plural(times.n_hasty, 'worker')} label{'s' if times.n_hasty == 1 else ''}"
        yield Finding("note", f"{text} over four times as fast as the median worker.", "workers")


def _on_pairs(facts: Facts) -> Iterator[Finding]:
    if facts.pairs is not None and facts.pairs.copies:
        n = len(facts.pairs.copies)
        text = f"{plural(n, 'pair')} of workers agree{'s' if n == 1 else ''} on every shared task"
        yield Finding("act", f"{text}, more than chance explains: check for copying.", "pairs")


def _on_annotations(facts: Facts) -> Iterator[Finding]:
    data = facts.data
    if data.n_repeats:
        text = f"{plural(data.n_repeats, 'annotation')} repeat{'s' if data.n_repeats == 1 else ''} "
        text += f"a worker's label of the same task, {data.n_contradictions:,} with a different "
        yield Finding("note", f"{text}label; agreement counts the last one.", "data")
    if data.n_single:
        share = data.n_single / max(data.n_tasks, 1)
        text = f"{plural(data.n_single, 'task')} ({share:.0%}) "
        text += f"{'has' if data.n_single == 1 else 'have'} only one label."
        yield Finding("act" if share > MANY else "note", text, "data")
    if data.n_unlabeled:
        verb = "has" if data.n_unlabeled == 1 else "have"
        yield Finding("act", f"{plural(data.n_unlabeled, 'task')} {verb} no label.", "data")


def _on_data(facts: Facts) -> Iterator[Finding]:
    data = facts.data
    if data.n_parts > 1:
        text = f"The data fall into {data.n_parts:,} parts that share neither tasks nor workers: "
        text += f"{plural(data.n_workers_apart, 'worker')} cannot be compared with the others."
        yield Finding("act", text, "data")
    for group in data.alike:
        shown = ", ".join(map(quote, group[:4]))
        yield Finding("act", f"{shown} may be one class spelled in different ways.", "data")
    if data.unused:
        unused = plural(len(data.unused), "declared class is", "declared classes are")
        text = f"{unused} never used: {', '.join(map(quote, data.unused[:3]))}."
        yield Finding("note", text, "data")


def _on_classes(facts: Facts) -> Iterator[Finding]:
    classes = facts.classes
    if len(classes.name) < 2:
        yield Finding("note", "There is only one class.", "classes")
        return
    rare = classes.rarest
    if classes.inferred[rare] < min(RARE, 0.5 / len(classes.name)):
        text = f"{quote(classes.name[rare])} is rare: {classes.inferred[rare]:.1%} of the tasks"
        low, high = facts.trust.share_low[rare], facts.trust.share_high[rare]
        text += f" ({low:.1%} to {high:.1%}). " if np.isfinite(low) else ". "
        yield Finding("note", f"{text}Check recall per class, not only accuracy.", "classes")
    if classes.mistakes:
        worst = classes.mistakes[0]
        text = f"{quote(worst.truth)} is mislabeled most often: "
        text += f"{worst.share:.0%} of its labels are {quote(worst.label)}."
        yield Finding("note", text, "classes")


def _on_methods(facts: Facts) -> Iterator[Finding]:
    main = facts.main
    scored = [(m, m.held_out) for m in facts.methods if m.held_out is not None]
    if main.held_out is not None and len(scored) > 1 and not main.held_out.as_good_as_best:
        best = next(method for method, held_out in scored if held_out.behind == 0)
        text = f"{best.name} predicts held-out labels better than {main.name}, which does not say "
        text += f"that it is right more often; {best.same:.0%} of their labels are the same."
        yield Finding("note", text, "methods")
    vote = next((m for m in facts.methods if m.name == "MajorityVote"), None)
    if vote is not None and vote is not main and np.isfinite(vote.same):
        text = f"Majority vote gives the same label to {vote.same:.0%} of the tasks."
        yield Finding("note", text, "methods")
    if not main.converged:
        text = f"{main.name} did not converge within its maximum number of iterations."
        yield Finding("act", text, "methods")


def _on_more_labels(facts: Facts) -> Iterator[Finding]:
    curve = facts.curve
    if curve is None or len(curve.points) < 2:
        return
    here = min(curve.points, key=lambda point: abs(point.n_labels - curve.now))
    last = curve.points[-1]
    if last.n_labels > here.n_labels:
        text = f"If workers erred independently, {last.forecast:.0%} of the labels would be right "
        text += f"with {last.n_labels} labels per task, and {here.forecast:.0%} with the "
        text += f"{curve.now:.1f} in the data"
        enough = last.forecast - here.forecast < 0.01 and _agree(facts)
        text += ", so more labels would hardly help" if enough else ""
        expected = facts.trust.accuracy.value
        if here.forecast - expected > APART:
            text += f"; the {expected:.0%} expected here allows for shared errors"
        text += "."
        yield Finding("note", text, "curve")


def _agree(facts: Facts) -> bool:
    """Return whether workers demonstrably agree beyond chance, which confidence depends on."""
    return any("alpha" in measure.name and measure.low > 0 for measure in facts.agreement)


def list_names(names: list[str], n: int) -> str:
    """List a few names after a colon; empty if there are many, or some are unknown."""
    if not 0 < n == len(names) <= MOST_NAMES:
        return ""
    return ": " + ", ".join(map(quote, names))


def quote(name: str) -> str:
    """Quote a name, shortened, and without characters that could control a terminal or page."""
    plain = "".join(letter if letter.isprintable() else "\ufffd" for letter in name)
    return f"“{plain if len(plain) <= 40 else plain[:39] + '…'}”"
