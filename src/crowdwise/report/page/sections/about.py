"""How the report was made."""

from crowdwise.report.facts import Facts
from crowdwise.report.page.html import Markup, tag
from crowdwise.report.page.sheet import Sheet, section


def about(facts: Facts, _: Sheet) -> Markup:
    """Words used, and what was done."""
    terms = [(tag("dt", word), tag("dd", meaning)) for word, meaning in TERMS]
    return section(
        "about",
        "How to read this",
        tag("dl", terms),
        tag("p", f"Made by crowdwise {facts.version} with {facts.method}. This page needs no "
            "network: everything it shows is inside it, names of tasks and workers included.",
            class_="note"),
    )  # fmt: skip


TERMS = (
    ("Task, worker, label, annotation", "What is labelled; who labels; what is said; one worker's "
     "label for one task."),
    ("Confidence", "How probable the chosen label is, given everyone's labels and what the method "
     "has learned about the workers. Methods tend to be too sure when workers err together."),
    ("95% interval", "Where the number would most likely be with endless data of this kind."),
    ("Krippendorff's alpha, kappa", "Agreement beyond chance: 0 is chance, 1 is perfect."),
    ("Skill", "How much a worker's labels follow the truth as the others have it."),
    ("Contested", "Labels of the task are split evenly, the more so the more labels it has."),
    ("Minority recall", "Of the tasks of the rarest class, the share that is found."),
)  # fmt: skip
