"""Assess a panel of judges: how many independent ones it is worth, and how accurate it is.

crowdwise judges scores.csv --workers judges.csv
crowdwise judges scores.csv --workers judges.csv --range 0,9 --cut 4.5 --gold gold.csv
crowdwise judges scores.jsonl --gold gold.csv --prices prices.csv --json
"""

import json
import sys
import textwrap
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from crowdwise.cli.numbers import finite, seed
from crowdwise.cli.options import add_input_options, read_input
from crowdwise.cli.outcome import say
from crowdwise.cli.tables import (
    add_confidence_option,
    add_output_options,
    align,
    between,
    number,
    width,
    write_table,
)
from crowdwise.typing import Json

if TYPE_CHECKING:
    import pandas as pd

    from crowdwise.annotations import Annotations
    from crowdwise.evaluate import Estimate, PanelAssessment

MOST_ROWS = 12  # on a terminal
NO_GOLD = "cannot be known without gold"
PRICE = "price"  # a column of the table of workers


def add_arguments(parser: ArgumentParser) -> None:
    add_input_options(parser)
    add_output_options(parser, aligned=True)
    group = parser.add_argument_group("judging")
    group.add_argument(
        "--range",
        type=pair,
        metavar="LOW,HIGH",
        help="ends of the scale of scores (default: the lowest and highest score)",
    )
    text = "score from which a label is the upper one (default: halfway)"
    group.add_argument("--cut", type=finite, metavar="SCORE", help=text)
    group.add_argument("--of", metavar="LABEL", help="class whose share is estimated")
    group.add_argument(
        "--prices",
        metavar="COLUMN",
        help="what a label costs: a column of --workers (default: price), or a table of workers "
        "and prices",
    )
    add_confidence_option(group)
    group.add_argument("--seed", type=seed, default=0, metavar="N", help="random seed")


def pair(text: str) -> tuple[float, float]:
    """Parse two numbers, the lower one first."""
    try:
        low, high = map(finite, text.split(","))
    except (ValueError, ArgumentTypeError):
        raise ArgumentTypeError(f"{text!r} is not of the form 0,9") from None
    if not low < high:
        raise ArgumentTypeError(f"{text!r} does not start with the lower number")
    return low, high


def run(args: Namespace) -> int:
    from crowdwise.evaluate import advise, assess_panel
    from crowdwise.io.gold import read_truths

    file = args.gold_file or (args.gold if args.gold and Path(args.gold).is_file() else None)
    if file is not None:  # truths may be numbers, which are not classes
        args.gold = args.gold_file = None
    annotations = take_scores(args, read_input(args))
    gold = annotations.gold_labels if file is None else read_truths(annotations, file)
    start = time.perf_counter()
    found = assess_panel(
        annotations,
        gold,
        label=find_label(annotations, args.of),
        prices=find_prices(args, annotations),
        confidence=args.confidence,
        random_state=args.seed,
    )
    steps = advise(found)
    if args.json and args.output in (None, "-"):
        json.dump(to_json(found, steps), sys.stdout, indent=1, ensure_ascii=False)
        print()
    else:
        shown = partial(show, found=found, steps=steps, confidence=args.confidence)
        write_table(found.judges.reset_index(), args, shown)
    say(args, f"panel assessed in {time.perf_counter() - start:.1f} s")
    return 0


def take_scores(args: Namespace, annotations: "Annotations") -> "Annotations":
    """Turn numeric labels into scores, if there are more than two or the flags say so."""
    from crowdwise.annotations.judges import parse
    from crowdwise.errors import listing

    names = annotations.classes.tolist()
    words = [name for name in names if parse(name) != parse(name)]  # NaN
    numeric = len(names) - len(words)
    asked = args.range is not None or args.cut is not None
    if annotations.score is not None or not (asked or 2 < numeric > len(names) / 2):
        return annotations
    if words:
        say(args, f"labels that are not scores count as declined: {listing(words)}")
    low, high = args.range or (None, None)
    scored = annotations.with_scores(args.cut, low=low, high=high)
    frame = scored.to_frame()
    ends = frame.groupby("label")["score"].agg(["min", "max"])
    for label, row in ends.iterrows():
        say(args, f"label {label} for scores from {row['min']:g} to {row['max']:g}")
    return scored


def find_label(annotations: "Annotations", text: str | None) -> object:
    """Return the class with this name, which may not be text."""
    names = {str(name): name for name in annotations.classes.tolist()}
    return names.get(text, text) if text is not None else None


def find_prices(args: Namespace, annotations: "Annotations") -> "pd.Series | None":
    """Return what a label of each judge costs, from a file or a column of the workers."""
    from crowdwise.errors import AnnotationError, explain
    from crowdwise.io.workers import add_worker_file

    if args.prices is not None and Path(args.prices).is_file():
        annotations = add_worker_file(annotations, args.prices)
        column = PRICE
    else:
        column = args.prices or PRICE
    about = annotations.about_workers
    if about is not None and column in about:
        return about[column]
    if args.prices is None:
        return None
    raise AnnotationError(
        explain(
            f"There is no price of a label in {args.prices!r}.",
            found="no table of workers" if about is None else ", ".join(map(str, about.columns)),
            expected=f"a column of --workers, or a table with the columns worker and {PRICE}",
            fix="name a column of --workers, or give a file",
        )
    )


def to_json(found: "PanelAssessment", steps: list[str]) -> Json:
    """Convert the results to plain values; NaN becomes None."""
    whole = found.dependence
    tables = {"judges": found.judges, "families": whole.families, "costs": found.costs}
    return {
        "effective_number": plain(whole.effective_number),
        "accuracy": plain(found.accuracy),
        "estimate": {"of": found.of, **plain(found.estimate)},
        **{name: None if t is None else rows(t.reset_index()) for name, t in tables.items()},
        "pairs": rows(whole.pairs),
        "note": whole.note,
        "next": steps,
    }


def plain(estimate: "Estimate") -> Json:
    """Convert an estimate to plain values."""
    names = ("value", "low", "high", "n_tasks", "note")
    return {name: known(getattr(estimate, name)) for name in names}


def rows(table: "pd.DataFrame") -> list[Json]:
    return [{k: known(v) for k, v in row.items()} for row in table.to_dict("records")]


def known(value: object) -> object:
    """Return the value as JSON has it; None for NaN."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and value != value else value  # noqa: PLR0124  NaN


def show(_: "pd.DataFrame", found: "PanelAssessment", steps: list[str], confidence: float) -> str:
    """Show on one screen what the panel is worth, its judges, and what to do next."""
    number_of = found.dependence.effective_number
    judges, costs = found.judges, found.costs
    facts = [
        ["", "", f"{confidence:.0%} interval"],
        [f"worth of {len(judges)} judges", number(number_of.value, 1), ends(number_of, 1)],
        ["accuracy of the panel", number(found.accuracy.value), ends(found.accuracy)],
        [found.of, number(found.estimate.value), ends(found.estimate)],
    ]
    if costs is not None:
        for name, row in costs.iterrows():
            text = f"{row['per_correct_label']:.4g} per correct label"
            text = text if row["accuracy"] > 0 else NO_GOLD
            facts.append([f"cost of a task, {name}", f"{row['per_task']:.4g}", text])
    head = ["judge", "family", "cluster", "skill", "worth", "rated", "accuracy", ""]
    lines = [head] + [
        [
            str(name),
            str(row["family"]),
            str(row["cluster"] + 1),
            number(row["skill"], 2),
            f"{row['worth']:.1%}",
            f"{row['rated']:.0%}",
            number(row.get("accuracy", float("nan")), 2),
            "redundant" if row["redundant"] else "",
        ]
        for name, row in judges.sort_values("worth", ascending=False).head(MOST_ROWS).iterrows()
    ]
    wrap = partial(textwrap.fill, width=width(), initial_indent="- ", subsequent_indent="  ")
    parts = [align(facts, right={1}), align(lines, right={2, 3, 4, 5, 6})]
    if len(judges) > MOST_ROWS:
        parts[1] += f"\n… and {len(judges) - MOST_ROWS:,} worth less; -o FILE writes all of them"
    return "\n\n".join([*parts, "\n".join(map(wrap, steps))])


def ends(estimate: "Estimate", digits: int = 3) -> str:
    """Format the interval; without one, explain why there is none."""
    return between(estimate.low, estimate.high, digits) or NO_GOLD
