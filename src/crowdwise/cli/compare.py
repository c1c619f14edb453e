"""Compare methods on your annotations, with or without known truths.

crowdwise compare votes.csv
crowdwise compare votes.csv --truth truth.csv --methods MajorityVote,DawidSkene,IBCC
crowdwise compare votes.csv --features X.npz --methods SpeeLFC,TwoStage,DawidSkene --json
"""

import time
from argparse import ArgumentParser, Namespace
from functools import partial
from typing import TYPE_CHECKING, Any

from crowdwise.cli.options import (
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

    from crowdwise.evaluate import Comparison

USUAL = ("MajorityVote", "Wawa", "OneCoin", "DawidSkene", "IBCC", "GLAD", "MACE")
WITH_FEATURES = ("TwoStage", "SpeeLFC")


def add_arguments(parser: ArgumentParser) -> None:
    add_input_options(parser)
    add_feature_options(parser)
    add_output_options(parser, aligned=True)
    group = parser.add_argument_group("comparing")
    usual = f"{', '.join(USUAL)}, and with features {', '.join(WITH_FEATURES)}"
    group.add_argument("--methods", metavar="A,B,…", help=f"methods to compare (default: {usual})")
    group.add_argument("--truth", metavar="FILE", help="table of tasks and true labels, for scores")
    group.add_argument(
        "--held-out",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="share of annotations to predict from the rest; 0 for none (default: %(default)s)",
    )
    add_confidence_option(group)
    group.add_argument("--seed", type=int, default=0, metavar="N", help="seed of all randomness")


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
    write_table(wide.reset_index(), args, partial(show, found=found))
    say(args, f"{plural(len(methods), 'method')} compared in {time.perf_counter() - start:.1f} s")
    return 0


def choose_methods(args: Namespace) -> dict[str, Any]:
    """The methods that the flags ask for, by name."""
    usual = USUAL if args.features is None else (*USUAL, *WITH_FEATURES)
    asked = usual if args.methods is None else args.methods.split(",")
    methods = {}
    for name in asked:
        kind = find_method(name.strip(), ("aggregate", "learn")).__module__.split(".")[1]
        model = make_method(name.strip(), {}, args.seed, kind)
        methods[type(model).__name__] = model
    return methods


def find_truth(args: Namespace, annotations: Any) -> Any:
    """Truths to score with: from their own file, or those that came with the annotations."""
    from crowdwise.io.gold import add_gold_file

    if args.truth is not None:
        annotations = add_gold_file(annotations, args.truth)
    return annotations.gold_labels


def show(_: "pd.DataFrame", found: "Comparison") -> str:
    """The main numbers, how alike the methods are, and a conclusion."""
    table = found.table
    scored, held_out = "accuracy" in table, "held_out" in table
    head = ["method", "changed", "confidence", "held-out label", "", "seconds"]
    rows = [
        [*head, *(["accuracy", "", "balanced", "macro F1", "minority recall"] * scored), "note"]
    ]
    for name, row in table.iterrows():
        cells = [str(name), number(row["changed"]), number(row["confidence"])]
        ends = ("held_out", "held_out_low", "held_out_high")
        value, low, high = (row[end] if held_out else NAN for end in ends)
        cells += [number(value), between(low, high), number(row["seconds"], 1)]
        if scored:
            cells += [
                number(row["accuracy"]),
                between(row["accuracy_low"], row["accuracy_high"]),
                *(number(row[c]) for c in ("balanced_accuracy", "macro_f1", "minority_recall")),
            ]
        rows.append([*cells, row["note"]])
    parts = [align(rows, right={1, 2, 3, 5, 6, 8, 9, 10} if scored else {1, 2, 3, 5})]
    return "\n\n".join([*parts, show_overlap(found.agreement), conclude(found)])


NAN = float("nan")


def show_overlap(agreement: "pd.DataFrame") -> str:
    """Share of tasks that two methods label alike."""
    fitted = agreement.dropna(how="all").index
    head = ["same labels", *map(str, fitted)]
    rows = [[str(one), *(number(agreement.loc[one, two]) for two in fitted)] for one in fitted]
    return align([head, *rows], right=set(range(1, len(head))))


def conclude(found: "Comparison") -> str:
    """In words: on how many tasks all agree, and which method predicts held-out labels best."""
    same = found.labels.nunique(axis=1, dropna=False).eq(1)
    text = f"All methods agree on {int(same.sum()):,} of {plural(len(same), 'task')}."
    if "held_out" in found.table and found.table["held_out"].notna().any():
        best = found.table["held_out"].idxmax()
        close = found.table.index[found.table["behind_low"] <= 0].drop(best)
        text += f"\n{best} predicts held-out labels best"
        text += f"; not significantly worse: {', '.join(close)}." if len(close) else "."
    return text
