"""The facts that matter most, as plain sentences."""

from collections.abc import Iterator

import numpy as np

from crowdwise.report.facts.facts import Facts, Finding

FLAGGED = {  # flag of a worker: what to say, and how loudly
    "answers as if at random": ("answer{s} as if at random", "act"),
    "always the same label": ("always give{s} the same label", "act"),
    "often contradicts the rest": ("often contradict{s} the rest", "act"),
    "too few labels to say": ("ha{ve} too few labels to be judged", "note"),
}
LOW_ALPHA, GOOD_ALPHA = 0.4, 0.8
RARE = 0.1  # a class below this share, and half of an even one, is called rare
MOST_NAMES = 3  # in a sentence
MANY = 0.2  # a share worth a warning


def findings(facts: Facts) -> tuple[Finding, ...]:
    """What to tell someone who reads ten lines: first what to act on, then the rest."""
    found = [
        *_of_agreement(facts),
        *_of_labels(facts),
        *_of_workers(facts),
        *_of_times(facts),
        *_of_pairs(facts),
        *_of_data(facts),
        *_of_classes(facts),
        *_of_methods(facts),
        *_of_more_labels(facts),
    ]
    order = {"act": 0, "note": 1, "good": 2}
    return tuple(sorted(found, key=lambda finding: order[finding.tone]))


def _of_agreement(facts: Facts) -> Iterator[Finding]:
    same = next((m for m in facts.agreement if m.name == "observed agreement"), None)
    alpha = next((m for m in facts.agreement if "alpha" in m.name), None)
    if same is None or not np.isfinite(same.value):
        yield Finding("act", "No task has labels of two workers, so nobody can be checked "
                      "against anybody.", "agreement")  # fmt: skip
        return
    text = f"Two workers who label the same task agree {same.value:.0%} of the time"
    if alpha is None or not np.isfinite(alpha.value):
        yield Finding("note", f"{text}.", "agreement")
        return
    tone = "act" if alpha.value < LOW_ALPHA else "good" if alpha.value >= GOOD_ALPHA else "note"
    far = f"{max(alpha.value, 0):.0%} of the way from chance to perfect"
    yield Finding(tone, f"{text}: {far} (Krippendorff's alpha {alpha.value:.2f}).", "agreement")


def _of_labels(facts: Facts) -> Iterator[Finding]:
    tasks = facts.tasks
    share = tasks.n_unsure / max(tasks.n_tasks, 1)
    expected = f"{facts.method} expects {tasks.mean_confidence:.0%} of its labels to be right"
    scores = facts.main.scores
    if "accuracy" in scores:
        right = scores["accuracy"]
        over = tasks.mean_confidence > right.high
        truth = f"{right.value:.1%} of those that can be checked are"
        yield Finding("act" if over else "note", f"{expected}; {truth}."
                      + (" It is too sure of itself." if over else ""), "labels")  # fmt: skip
    else:
        yield Finding("note", f"{expected}.", "labels")
    if tasks.n_unsure:
        text = f"{plural(tasks.n_unsure, 'task')} of {tasks.n_tasks:,} {be(tasks.n_unsure)} "
        text += f"less than {tasks.sure:.0%} sure: label them again first."
        yield Finding("act" if share > MANY else "note", text, "labels")
    else:
        text, known = f"Every label is at least {tasks.sure:.0%} sure", _beyond_chance(facts)
        doubt = "" if known else ", but nothing shows that workers agree more than by chance"
        yield Finding("good" if known else "note", f"{text}{doubt}.", "labels")
    if tasks.n_overruled:
        text = f"On {plural(tasks.n_overruled, 'task')} {facts.method} overrules the majority, "
        yield Finding("note", f"{text}because it trusts the others more.", "labels")


def _of_workers(facts: Facts) -> Iterator[Finding]:
    workers = facts.workers
    for flag, (verb, tone) in FLAGGED.items():
        n = workers.flags[flag]
        if not n:
            continue
        words = verb.format(s="s" if n == 1 else "", ve="s" if n == 1 else "ve")
        pairs = zip(workers.name, workers.flag, strict=True)
        who = [name for name, own in pairs if own == flag and tone == "act"]
        text = f"{n:,} of {plural(workers.n_workers, 'worker')} {words}{listed(who, n)}."
        yield Finding(tone, text, "workers")
    if not any(workers.flags.values()):
        yield Finding("good", "There is nothing to say against any worker.", "workers")


def _of_times(facts: Facts) -> Iterator[Finding]:
    times = facts.times
    if times is None:
        return
    pairs = zip(facts.workers.name, times.drift, strict=True)
    worse = [name for name, way in pairs if way < 0]
    if worse:
        text = (
            f"{plural(len(worse), 'worker')} {be(len(worse))} surely less accurate in the second "
        )
        text += f"half of the job than in the first{listed(worse, len(worse))}."
        yield Finding("act", text, "workers")
    if times.n_hasty:
        text = f"{plural(times.n_hasty, 'worker')} label{'s' if times.n_hasty == 1 else ''}"
        yield Finding("note", f"{text} four times as fast as most, or faster.", "workers")


def _of_pairs(facts: Facts) -> Iterator[Finding]:
    if facts.pairs is not None and facts.pairs.copies:
        n = len(facts.pairs.copies)
        text = f"{plural(n, 'pair')} of workers agree{'s' if n == 1 else ''} on every task shared"
        yield Finding("act", f"{text}, more than luck explains: look for copies.", "pairs")


def _of_data(facts: Facts) -> Iterator[Finding]:
    data = facts.data
    if data.n_repeats:
        text = f"{plural(data.n_repeats, 'annotation')} repeat{'s' if data.n_repeats == 1 else ''} "
        text += f"a worker on a task, {data.n_contradictions:,} with another label; "
        yield Finding("note", f"{text}the last one counts for agreement.", "data")
    if data.n_single:
        share = data.n_single / max(data.n_tasks, 1)
        text = (
            f"{plural(data.n_single, 'task')} ({share:.0%}) ha{'s' if data.n_single == 1 else 've'}"
        )
        yield Finding("act" if share > MANY else "note", f"{text} one label only.", "data")
    if data.n_unlabelled:
        text = f"{plural(data.n_unlabelled, 'task')} {be(data.n_unlabelled)} without a label."
        yield Finding("act", text, "data")
    if data.n_parts > 1:
        text = f"The data fall into {data.n_parts:,} parts that share neither tasks nor workers: "
        text += f"{plural(data.n_workers_apart, 'worker')} cannot be compared with the others."
        yield Finding("act", text, "data")
    for group in data.alike:
        shown = ", ".join(map(quoted, group[:4]))
        yield Finding("act", f"{shown} may be one class written in different ways.", "data")
    if data.unused:
        shown = ", ".join(map(quoted, data.unused[:3]))
        text = f"{len(data.unused):,} declared class{'' if len(data.unused) == 1 else 'es'} "
        yield Finding("note", f"{text}nobody used: {shown}.", "data")


def _of_classes(facts: Facts) -> Iterator[Finding]:
    classes = facts.classes
    if len(classes.name) < 2:
        yield Finding("note", "There is only one class.", "classes")
        return
    share = np.where(classes.given > 0, classes.believed, np.inf)
    rare = int(share.argmin())
    if share[rare] < min(RARE, 0.5 / len(classes.name)):
        text = f"{quoted(classes.name[rare])} is rare: {share[rare]:.1%} of the tasks. "
        yield Finding("note", f"{text}Look at recall per class, not at accuracy alone.", "classes")
    if classes.mistakes:
        worst = classes.mistakes[0]
        text = f"{quoted(worst.truth)} is most often taken for something else: "
        text += f"{worst.share:.0%} of its labels are {quoted(worst.label)}."
        yield Finding("note", text, "classes")


def _of_methods(facts: Facts) -> Iterator[Finding]:
    told = [m for m in facts.methods if m.held_out is not None]
    main = facts.main
    if main.held_out is not None and len(told) > 1:
        best = next(m for m in told if m.held_out is not None and m.held_out.behind == 0)
        if main.held_out.as_good_as_best:
            text = f"No method foretells hidden labels surely better than {main.name}."
            yield Finding("good", text, "methods")
        else:
            text = f"{best.name} foretells hidden labels better than {main.name}: "
            yield Finding("act", f"{text}try --method {best.name}.", "methods")
    vote = next((m for m in facts.methods if m.name == "MajorityVote"), None)
    if vote is not None and vote is not main and np.isfinite(vote.same):
        yield Finding("note", f"A plain majority vote gives the same label to {vote.same:.0%} of "
                      "the tasks.", "methods")  # fmt: skip
    for method in facts.methods:
        if not method.converged and method.main:
            text = f"{method.name} had not settled when it reached its most steps."
            yield Finding("act", text, "methods")


def _of_more_labels(facts: Facts) -> Iterator[Finding]:
    curve = facts.curve
    if curve is None or len(curve.points) < 2:
        return
    here = min(curve.points, key=lambda point: abs(point.n_labels - curve.now))
    last = curve.points[-1]
    gain = last.forecast - here.forecast
    if last.n_labels > here.n_labels:
        text = f"{facts.method}'s own forecast: {last.forecast:.0%} right with {last.n_labels} "
        text += f"labels a task, {here.forecast:.0%} with {curve.now:.1f} as now"
        idle = gain < 0.01 and _beyond_chance(facts)
        words = ", so more labels would hardly help." if idle else "."
        yield Finding("note", text + words, "curve")


def _beyond_chance(facts: Facts) -> bool:
    """Whether workers surely agree more than by chance; a model's own sureness rests on it."""
    return any("alpha" in measure.name and measure.low > 0 for measure in facts.agreement)


def listed(names: list[str], n: int) -> str:
    """A few names after a colon; nothing where they are many, or not all at hand."""
    if not 0 < n == len(names) <= MOST_NAMES:
        return ""
    return ": " + ", ".join(map(quoted, names))


def quoted(name: str) -> str:
    """A name in quotes, short, and without signs that would steer a terminal or a page."""
    plain = "".join(letter if letter.isprintable() else "\ufffd" for letter in name)
    return f"“{plain if len(plain) <= 40 else plain[:39] + '…'}”"


def plural(n: int, noun: str) -> str:
    """``1 task``, ``2,000 tasks``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def be(n: int) -> str:
    """``is`` or ``are``."""
    return "is" if n == 1 else "are"
