"""The first screen: a few numbers, and what they mean in words."""

import numpy as np

from crowdwise.report.facts import Facts
from crowdwise.report.page.html import Markup, name, tag
from crowdwise.report.page.sheet import Sheet
from crowdwise.report.page.words import between, number, share, shares_between

TONES = {"act": "Look at this", "note": "Worth knowing", "good": "Good news"}


def summary(facts: Facts, _: Sheet) -> Markup:
    """Key numbers and findings."""
    return tag(
        "section",
        tag("h2", "In short", id="summary-title"),
        tag("ul", [card(*each) for each in key_numbers(facts)], class_="cards"),
        tag("ul", [finding(*each) for each in told(facts)], class_="findings"),
        id="summary",
        aria_labelledby="summary-title",
    )


def card(value: str, what: object, more: object) -> Markup:
    """One number that can be read from across the room."""
    return tag("li", tag("b", value), tag("span", what), tag("small", more))


def finding(tone: str, text: str, where: str) -> Markup:
    """One sentence, with a link to the numbers behind it."""
    mark = tag("span", TONES[tone], class_="tone")
    return tag("li", mark, tag("a", text, href=f"#{where}"), class_=tone)


def told(facts: Facts) -> list[tuple[str, str, str]]:
    """The findings as plain values."""
    return [(each.tone, each.text, each.section) for each in facts.findings]


def key_numbers(facts: Facts) -> list[tuple[str, object, object]]:
    """Value, what it is, and the small print."""
    data, tasks, workers = facts.data, facts.tasks, facts.workers
    per_task = f"{number(data.per_task.mean, 1)} per task"
    flagged = sum(n for flag, n in workers.flags.items() if "few" not in flag)
    cards: list[tuple[str, object, object]] = [
        (f"{data.n_annotations:,}", "annotations", per_task),
        (f"{data.n_tasks:,}", "tasks", f"{tasks.n_unsure:,} with an unsure label"),
        (f"{workers.n_workers:,}", "workers", f"{flagged:,} to look at"),
        (f"{data.n_classes:,}", "classes", rarest(facts)),
    ]
    alpha = next((m for m in facts.agreement if "alpha" in m.name), None)
    same = next((m for m in facts.agreement if m.name == "observed agreement"), None)
    if same is not None and np.isfinite(same.value):
        small = "" if alpha is None else f"alpha {number(alpha.value)}"
        spread = "" if alpha is None else between(alpha.low, alpha.high)
        cards.append((share(same.value), "agreement", f"{small} ({spread})" if spread else small))
    right = facts.main.scores.get("accuracy")
    if right is None:
        cards.append((share(tasks.mean_confidence), "expected right", f"by {facts.method}"))
    else:
        checked = f"of {right.n_tasks:,} checked, {shares_between(right.low, right.high)}"
        cards.append((share(right.value), "labels right", checked))
    return cards


def rarest(facts: Facts) -> object:
    """The class with the fewest tasks."""
    classes = facts.classes
    place = int(np.where(classes.given > 0, classes.believed, np.inf).argmin())
    return ["rarest: ", name(classes.name[place], 16), f" {share(float(classes.believed[place]))}"]
