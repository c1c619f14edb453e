"""Methods compared: without gold, and with gold when there is some."""

from crowdwise.report.facts import Facts
from crowdwise.report.facts.methods import SCORES, MethodFacts
from crowdwise.report.page.charts import Row, interval_chart
from crowdwise.report.page.html import Markup, tag
from crowdwise.report.page.sheet import Sheet, fixed_table, note, section
from crowdwise.report.page.words import DASH, number, share, shares_between

SHARES = ("accuracy", "balanced accuracy", "minority recall", "macro F1")


def methods(facts: Facts, sheet: Sheet) -> Markup:
    """How well each method foretells hidden labels, and how often it is right."""
    told = [method for method in facts.methods if method.held_out is not None]
    return section(
        "methods",
        "Methods compared",
        tag("p", EXPLAINED),
        note(facts.held_out_note),
        tag(
            "div",
            held_out_chart(told, sheet) if told else None,
            truth_chart(facts, sheet) if facts.n_truths else None,
            class_="grid",
        ),
        without_gold(facts),
        with_gold(facts) if facts.n_truths else note(NO_GOLD),
    )


EXPLAINED = (
    "Without gold, methods are compared by labels that were hidden from them: the better a method "
    "knows the truths, the higher the probability it gives to what the workers said."
)
NO_GOLD = "No truths are known, so accuracy cannot be checked; give some with --truth."


def held_out_chart(told: list[MethodFacts], sheet: Sheet) -> Markup:
    """Probability that each method gives to hidden labels."""
    rows, values = [], []
    for method in told:
        assert method.held_out is not None
        own = method.held_out.probability
        text = f"{share(own.value, 1)}"
        rows.append(Row(method.name, own.value, own.low, own.high, text, 0 if method.main else 4))
        values.append((method.name, own.value, own.low, own.high))
    best = max(rows, key=lambda row: row.value)
    reading = f"Best: {best.name}, which gives a hidden label {best.told} (geometric mean)."
    label = f"Probability of hidden labels. {reading}"
    picture = interval_chart(
        rows, label, lambda v: share(v, 0), title="probability of hidden labels"
    )
    columns = ["method", "probability", "low", "high"]
    return sheet.chart("held-out", "Without gold", reading, picture, columns, values)


def truth_chart(facts: Facts, sheet: Sheet) -> Markup:
    """Accuracy of each method where the truth is known."""
    rows, values = [], []
    for method in facts.methods:
        own = method.scores["accuracy"]
        kind = 0 if method.main else 4
        rows.append(Row(method.name, own.value, own.low, own.high, share(own.value, 1), kind))
        values.append([method.name, *(method.scores[name].value for name in SCORES)])
    best = max(rows, key=lambda row: row.value)
    reading = f"Accuracy on {facts.n_truths:,} known truths. Best: {best.name}, {best.told}."
    picture = interval_chart(rows, reading, share, title="share of right labels")
    return sheet.chart("truth", "With gold", reading, picture, ["method", *SCORES], values)


def without_gold(facts: Facts) -> Markup:
    """One row a method: what can be said without the truth."""
    rows = []
    for method in facts.methods:
        own = method.held_out
        behind = DASH
        if own is not None:
            behind = f"{own.behind * 100:.1f} points" if own.behind else "best"
            behind += " (may be chance)" if own.behind and own.as_good_as_best else ""
        rows.append(
            (
                named(method),
                (DASH if own is None else share(own.probability.value, 1), "right"),
                (behind, "right"),
                (share(method.same, 1), "right"),
                (share(method.confidence, 1), "right"),
                (f"{method.seconds:.2f} s" + ("" if method.converged else ", unfinished"), "right"),
            )
        )
    heads = ("method", "hidden labels", "behind the best", "same label", "mean confidence", "time")
    return fixed_table(f"Without gold; “same label” is as {facts.method}", heads, rows)


def with_gold(facts: Facts) -> Markup:
    """One row a method: scores against the truth."""
    rows = []
    for method in facts.methods:
        cells = []
        for name in SCORES:
            own = method.scores[name]
            spread = shares_between(own.low, own.high)
            text = share(own.value, 1) if name in SHARES else number(own.value, 2)
            small = tag("small", spread) if name in SHARES and spread else None
            cells.append(([text, " ", small], "right"))
        rows.append((named(method), *cells))
    caption = f"With gold: scores on {facts.n_truths:,} known truths, with 95% intervals"
    return fixed_table(caption, ("method", *SCORES), rows)


def named(method: MethodFacts) -> Markup:
    """The name, and whether the report rests on it."""
    return tag("span", method.name, " ", tag("em", "used here") if method.main else None)
