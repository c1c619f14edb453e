"""Compare methods on your annotations, with or without known truths.

crowdwise compare votes.csv
crowdwise compare votes.csv --truth truth.csv --methods MajorityVote,DawidSkene,IBCC
crowdwise compare votes.csv --features X.npz --methods SpeeLFC,TwoStage,DawidSkene --json
"""

import time
from argparse import ArgumentParser, Namespace
from functools import partial
from typing import TYPE_CHECKING, Any

from crowdwise.cli.numbers import seed, share
from crowdwise.cli.options import (
    DEFAULT,
    add_feature_options,
    add_input_options,
    find_method,
    make_method,
    read_features_of,
    read_input,
)
from crowdwise.cli.outcome import say
from crowdwise.cli.tables import (
    add_confidence_option,
    add_output_options,
    align,
    between,
    number,
    write_table,
)
from crowdwise.errors import plural

if TYPE_CHECKING:
    import pandas as pd

    from crowdwise.annotations import Annotations
    from crowdwise.base import Aggregator
    from crowdwise.evaluate import Comparison

USUAL = (DEFAULT, "MajorityVote", "Wawa", "OneCoin", "DawidSkene", "IBCC", "GLAD", "MACE")
WITH_FEATURES = ("TwoStage", "SpeeLFC")


COLUMNS = """columns:
  changed          share of tasks whose label is not the majority's (or one of those tied)
  confidence       mean probability of the labels, according to the method
  held-out         how well held-out labels are predicted from the others: their mean
      log-likelihood in nats, below 0; needs no truths. Predicting labels is not
      being right: the best method here may be the worst on the truth
  stability        share of tasks that keep their label without the held-out labels
  time             seconds to fit
  accuracy         share of labels that are right; needs --truth or gold, like those below
  minority recall  share of the rarest class's tasks that are labeled correctly
  log loss         of the truths, in nats: lower is better
  calibration      mean gap between confidence and accuracy: lower is better
  same labels      share of tasks with the same label under two methods

With -o, in a pipe and with --json, each of them is a column, as are balanced_accuracy (the mean
recall of the classes), macro_f1 (their mean F1), agreement (the mean of same labels), behind
(how much better the best method predicts, and whether that may be chance), objective (the final
value of what the method maximizes) and note (why a method was left out)."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.description = f"{parser.description}\n\n{COLUMNS}"
    add_input_options(parser)
    add_feature_options(parser)
    add_output_options(parser, aligned=True)
    group = parser.add_argument_group("comparing")
    usual = f"{', '.join(USUAL)}, and with features {', '.join(WITH_FEATURES)}"
    group.add_argument("--methods", metavar="A,B,…", help=f"methods to compare (default: {usual})")
    group.add_argument("--truth", metavar="FILE", help="table of tasks and true labels, for scores")
    group.add_argument(
        "--held-out",
        type=share,
        default=0.1,
        metavar="SHARE",
        help="share of annotations to hold out and predict; 0 for none (default: %(default)s)",
    )
    add_confidence_option(group)
    group.add_argument("--seed", type=seed, default=0, metavar="N", help="random seed")


def run(args: Namespace) -> int:
    from crowdwise.evaluate import compare_methods

    methods = choose_methods(args)
    annotations = read_input(args)
    truth = find_truth(args, annotations)
    X = None if args.features is None else read_features_of(args, annotations)
    start = time.perf_counter()
    found = compare_methods(
        annotations,
        methods,
        X=X,
        truth=truth,
        held_out=args.held_out,
        confidence=args.confidence,
        random_state=args.seed,
    )
    wide = found.table.join(found.agreement.add_prefix("agreement_"))
    write_table(wide.reset_index(), args, partial(show, found=found, confidence=args.confidence))
    say(args, f"{plural(len(methods), 'method')} compared in {time.perf_counter() - start:.1f} s")
    return 0


def choose_methods(args: Namespace) -> dict[str, "Aggregator"]:
    """Make the methods that the flags ask for, by name."""
    usual = USUAL if args.features is None else (*USUAL, *WITH_FEATURES)
    asked = usual if args.methods is None else args.methods.split(",")
    methods = {}
    for name in asked:
        kind = find_method(name.strip(), ("aggregate", "learn")).__module__.split(".")[1]
        model = make_method(name.strip(), {}, args.seed, kind)
        methods[type(model).__name__] = model
    return methods


def find_truth(args: Namespace, annotations: "Annotations") -> Any:
    """Find truths to score with: in their own file, or among the annotations."""
    from crowdwise.io.gold import add_gold_file

    if args.truth is not None:
        annotations = add_gold_file(annotations, args.truth)
    return annotations.gold_labels


def show(_: "pd.DataFrame", found: "Comparison", confidence: float) -> str:
    """Show each method, its scores if there are truths, overlaps, and a conclusion."""
    table = found.table
    interval = f"{confidence:.0%} interval"
    head = ["method", "changed", "confidence", "stability", "held-out", interval, "time"]
    rows = [head]
    for name, row in table.iterrows():
        ends = [row.get(f"held_out{end}", NAN) for end in ("", "_low", "_high")]
        ours = row["changed"], row["confidence"], row.get("stability", NAN)
        shares = [percent(share) for share in ours]
        held_out = [number(ends[0]), between(*ends[1:])]
        rows.append([str(name), *shares, *held_out, number(row["seconds"], 1)])
    parts = [align(rows, right={1, 2, 3, 4, 6})]
    if "accuracy" in table:
        parts.append(show_scores(table, interval))
    notes = [f"{name}: {note}" for name, note in table["note"].items() if note]
    parts += ["\n".join(notes)] * bool(notes)
    parts += [show_overlap(found.agreement), conclude(found)]
    return "\n\n".join(filter(None, parts))


NAN = float("nan")


def percent(share: float) -> str:
    """Format a share as a percentage, NaN as a dash."""
    return "-" if share != share else f"{share:.1%}"  # noqa: PLR0124  only NaN differs from itself


def show_scores(table: "pd.DataFrame", interval: str) -> str:
    """Show how many labels of each method are right."""
    rows = [["method", "accuracy", interval, "minority recall", "log loss", "calibration"]]
    for name, row in table.iterrows():
        low, high = percent(row["accuracy_low"]), percent(row["accuracy_high"])
        between_them = "" if low == "-" else f"{low} to {high}"
        recall, losses = row["minority_recall"], [row["log_loss"], row["calibration_error"]]
        shares = [percent(row["accuracy"]), between_them, percent(recall)]
        rows.append([str(name), *shares, *map(number, losses)])
    return align(rows, right={1, 3, 4, 5})


def show_overlap(agreement: "pd.DataFrame") -> str:
    """Show the share of tasks with the same label under two methods; each pair once."""
    fitted = list(agreement.dropna(how="all").index)
    rows = [["same labels", *map(str, fitted[:-1])]]
    for place, one in enumerate(fitted[1:], start=1):
        cells = [percent(agreement.loc[one, two]) for two in fitted[:place]]
        rows.append([str(one), *cells, *[""] * (len(fitted) - 1 - place)])
    return align(rows, right=set(range(1, len(fitted)))) if len(fitted) > 1 else ""


def conclude(found: "Comparison") -> str:
    """Conclude on how many tasks all agree, and what the figures can and cannot tell."""
    table, same = found.table, found.labels.nunique(axis=1, dropna=False).eq(1)
    text = f"All methods agree on {int(same.sum()):,} of {plural(len(same), 'task')}."
    if "accuracy" in table:
        return f"{text}\nAccuracy, log loss and calibration are measured on known truths."
    sure = table["confidence"].dropna()
    if len(sure) > 1:
        text += f"\nThey expect {sure.min():.0%} ({sure.idxmin()}) to {sure.max():.0%} "
        text += f"({sure.idxmax()}) of their labels to be right."
    return f"{text}\nNone of this shows which is right; only known truths do (--truth)."
