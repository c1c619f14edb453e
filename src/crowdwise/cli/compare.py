"""Compare methods on your annotations, without truth or with some.

crowdwise compare votes.csv
crowdwise compare votes.csv --truth truth.csv --methods MajorityVote,DawidSkene,IBCC
crowdwise compare votes.csv --features X.npz --methods SpeeLFC,TwoStage,DawidSkene --json
"""

import time
from argparse import ArgumentParser, Namespace
from functools import partial
from typing import TYPE_CHECKING, Any

from crowdwise.cli.features import add_feature_options, features_for
from crowdwise.cli.method import find_method, made
from crowdwise.cli.outcome import say
from crowdwise.cli.tables import (
    add_confidence_option,
    add_output_options,
    between,
    columns_of,
    number,
    put,
)

if TYPE_CHECKING:
    import pandas as pd

    from crowdwise.evaluate import Comparison

USUAL = ("MajorityVote", "Wawa", "OneCoin", "DawidSkene", "IBCC", "GLAD", "MACE")
WITH_FEATURES = ("TwoStage", "SpeeLFC")


def add_arguments(parser: ArgumentParser) -> None:
    from crowdwise.cli.options import add_input_options

    add_input_options(parser)
    add_feature_options(parser)
    add_output_options(parser, aligned=True)
    group = parser.add_argument_group("comparing")
    usual = f"{', '.join(USUAL)}, and with features {', '.join(WITH_FEATURES)}"
    group.add_argument("--methods", metavar="A,B,…", help=f"which ones (default: {usual})")
    group.add_argument("--truth", metavar="FILE", help="table of task and true label, for scores")
    group.add_argument(
        "--held-out",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="of the annotations, to be predicted from the rest; 0 for none (default: %(default)s)",
    )
    add_confidence_option(group)
    group.add_argument("--seed", type=int, default=0, metavar="N", help="of all that is random")


def run(args: Namespace) -> int:
    from crowdwise.cli.options import read_input
    from crowdwise.evaluate import compare_methods

    methods = chosen(args)
    annotations = read_input(args)
    truth = truth_of(args, annotations)
    X = None if args.features is None else features_for(args, annotations)
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
    put(wide.reset_index(), args, partial(aligned, found=found))
    say(args, f"{len(methods)} methods compared in {time.perf_counter() - start:.1f} s")
    return 0


def chosen(args: Namespace) -> dict[str, Any]:
    """The methods that the flags ask for, by name."""
    usual = USUAL if args.features is None else (*USUAL, *WITH_FEATURES)
    asked = usual if args.methods is None else args.methods.split(",")
    methods = {}
    for name in asked:
        kind = find_method(name.strip(), ("aggregate", "learn")).__module__.split(".")[1]
        model = made(name.strip(), {}, args.seed, kind)
        methods[type(model).__name__] = model
    return methods


def truth_of(args: Namespace, annotations: Any) -> Any:
    """Truths to score by: from a file of their own, or those that came with the annotations."""
    from crowdwise.io.gold import add_gold_file

    if args.truth is not None:
        annotations = add_gold_file(annotations, args.truth)
    return annotations.gold_labels


def aligned(_: "pd.DataFrame", found: "Comparison") -> str:
    """The main numbers, how alike the methods are, and what that comes to."""
    table = found.table
    scored, asked = "accuracy" in table, "held_out" in table
    head = ["method", "changed", "confidence", "held-out label", "", "seconds"]
    rows = [[*head, *(["accuracy", "", "balanced", "macro F1", "rare recall"] * scored), "note"]]
    for name, row in table.iterrows():
        cells = [str(name), number(row["changed"]), number(row["confidence"])]
        told = (row["held_out"], row["held_out_low"], row["held_out_high"]) if asked else (NAN,) * 3
        cells += [number(told[0]), between(*told[1:]), number(row["seconds"], 1)]
        if scored:
            cells += [
                number(row["accuracy"]),
                between(row["accuracy_low"], row["accuracy_high"]),
                *(number(row[c]) for c in ("balanced_accuracy", "macro_f1", "minority_recall")),
            ]
        rows.append([*cells, row["note"]])
    parts = [columns_of(rows, right={1, 2, 3, 5, 6, 8, 9, 10} if scored else {1, 2, 3, 5})]
    return "\n\n".join([*parts, alike(found.agreement), conclusion(found)])


NAN = float("nan")


def alike(agreement: "pd.DataFrame") -> str:
    """Share of tasks that two methods label alike."""
    fitted = agreement.dropna(how="all").index
    head = ["labels alike", *map(str, fitted)]
    rows = [[str(one), *(number(agreement.loc[one, two]) for two in fitted)] for one in fitted]
    return columns_of([head, *rows], right=set(range(1, len(head))))


def conclusion(found: "Comparison") -> str:
    """In words: on how many tasks all agree, and who predicts held-out labels best."""
    same = found.labels.nunique(axis=1, dropna=False).eq(1)
    told = f"All methods agree on {int(same.sum()):,} of {len(same):,} tasks."
    if "held_out" in found.table and found.table["held_out"].notna().any():
        best = found.table["held_out"].idxmax()
        luck = found.table.index[found.table["behind_low"] <= 0].drop(best)
        told += f"\n{best} predicts labels it has not seen best"
        told += f"; no worse, but for chance: {', '.join(luck)}." if len(luck) else "."
    return told
