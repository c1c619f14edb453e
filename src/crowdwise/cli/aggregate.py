"""Infer one label per task from annotations.

crowdwise aggregate votes.csv > labels.csv
crowdwise aggregate votes.csv --method MajorityVote -o labels.parquet
crowdwise aggregate votes.csv --set smoothing=0.1 --set max_iter=50 --proba
crowdwise aggregate votes.csv --gold-file truth.csv -o labels.csv
crowdwise aggregate votes.parquet --engine spark --method DawidSkene -o labeled
"""

import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from crowdwise.cli.options import (
    add_input_options,
    add_method_options,
    choose_method,
    gold_to_learn_from,
    read_input,
)
from crowdwise.cli.outcome import say
from crowdwise.cli.tables import add_output_options, write_table
from crowdwise.errors import ParameterError, explain, plural
from crowdwise.typing import GoldLike

if TYPE_CHECKING:
    from crowdwise import Annotations
    from crowdwise.base import Aggregator


IN_MEMORY_ONLY = (
    *("gold", "gold_file", "workers", "classes", "missing", "rejected"),
    *("format", "question", "time", "score", "repeats", "json"),
)


def add_arguments(parser: ArgumentParser) -> None:
    add_input_options(parser)
    add_method_options(parser)
    add_output_options(parser)
    parser.add_argument("--proba", action="store_true", help="add the probability of every class")
    text = "where to fit: on this machine, or on Spark, which writes Parquet folders to -o"
    device = "where to compute: cuda or cuda:1 for a GPU (default: the CPU)"
    parser.add_argument("--device", metavar="NAME", help=device)
    parser.add_argument("--engine", choices=("here", "spark"), default="here", help=text)


def refuse_wide(annotations: "Annotations") -> None:
    """Refuse a column for every class if that would take too much memory."""
    from crowdwise import memory

    size = 8 * annotations.n_tasks * annotations.n_classes
    if size > memory.LARGE:
        raise ParameterError(
            explain(
                f"--proba would write {annotations.n_classes:,} columns and take "
                f"{memory.show_bytes(size)} of memory.",
                fix="leave it out: each task's label and its probability are always written",
            )
        )


def run_on_disk(args: Namespace, model: "Aggregator") -> int:
    """Fit and write block by block, for a file too large for memory."""
    from crowdwise import Annotations
    from crowdwise.io.stream import name_columns, stream_labels

    if args.output is None or not args.output.endswith(".parquet"):
        raise ParameterError(
            explain(
                f"{args.annotations} is large, so labels are written in blocks.",
                expected="-o with a file named .parquet",
                fix="add -o labels.parquet",
            )
        )
    refuse_flags(args, IN_MEMORY_ONLY, f"{args.annotations} is large and stays on disk")
    start, roles = time.perf_counter(), ("task", "worker", "label")
    names = name_columns(args.annotations, {role: getattr(args, role) for role in roles})
    votes = Annotations.open(args.annotations, **names, weight=args.weight)
    say(args, f"{args.annotations} is large: it stays on disk, in {votes.folder}")
    say(args, str(votes).strip("<>"))
    if votes.n_left_out:
        say(args, f"rows without a label or of weight 0 left out: {votes.n_left_out:,}")
    model.fit(votes)
    stream_labels(model, args.output, probabilities=args.proba)
    seconds, name = time.perf_counter() - start, type(model).__name__
    say(args, f"{plural(votes.n_tasks, 'task')} labeled by {name} in {seconds:.1f} s")
    return 0


def refuse_flags(args: Namespace, names: tuple[str, ...], why: str) -> None:
    """Refuse flags that were given but cannot be used here."""
    given = {name: getattr(args, name, None) for name in names}
    if given.get("repeats") == "all":  # the default
        del given["repeats"]
    unread = [name for name, value in given.items() if value not in (None, False)]
    if unread:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in unread)
        fix = "leave it out, or read a part of the file"
        raise ParameterError(explain(f"{why}, so {flags} cannot be used.", fix=fix))


def run_on_spark(args: Namespace, model: "Aggregator") -> int:
    """Fit on Spark, and write the labels and workers there."""
    from crowdwise.spark.files import label_files

    if args.output is None:
        what, fix = "Spark writes folders.", "name a folder: -o labels"
        raise ParameterError(explain(what, expected="-o with a folder", fix=fix))
    refuse_flags(args, IN_MEMORY_ONLY, "Annotations are read by Spark")
    start = time.perf_counter()
    columns = {f"{role}Col": getattr(args, role) for role in ("task", "worker", "label", "weight")}
    shown = "distribution" if args.proba else ""
    label_files(args.annotations, args.output, model, distributionCol=shown, **columns)
    seconds, name = time.perf_counter() - start, type(model).__name__
    say(args, f"tasks labeled by {name} in {seconds:.1f} s: {args.output}/labels")
    return 0


def set_device(args: Namespace, model: "Aggregator") -> None:
    """Make the method fit on a device, if it can."""
    if "device" not in model.get_params(deep=False) or args.engine == "spark":
        who = "Spark" if args.engine == "spark" else type(model).__name__
        raise ParameterError(
            explain(
                f"{who} does not run on a GPU.",
                expected="a method that works in blocks, such as BayesBag or DawidSkene",
                fix="leave out --device, or choose such a method",
            )
        )
    model.set_params(device=args.device)


def run(args: Namespace) -> int:
    from crowdwise.io.consensus import consensus_frame
    from crowdwise.io.stream import is_too_large

    model = choose_method(args)
    if args.device is not None:
        set_device(args, model)
    if args.engine == "spark":
        return run_on_spark(args, model)
    if is_too_large(args.annotations):
        return run_on_disk(args, model)
    annotations = read_input(args)
    if args.proba:
        refuse_wide(annotations)
    gold = gold_to_learn_from(args, annotations)
    start = time.perf_counter()
    model.fit(annotations, gold)
    write_table(consensus_frame(model, annotations, probabilities=args.proba), args)
    seconds, name = time.perf_counter() - start, type(model).__name__
    say(args, f"{plural(annotations.n_tasks, 'task')} labeled by {name} in {seconds:.1f} s")
    if not args.quiet:
        say_trust(args, model, annotations, gold)
    return 0


def say_trust(
    args: Namespace, model: "Aggregator", annotations: "Annotations", gold: "GoldLike"
) -> None:
    """Report the expected accuracy, and warn if workers err together."""
    import numpy as np

    from crowdwise.evaluate import check_independence
    from crowdwise.evaluate.label_uncertainty import assess_labels
    from crowdwise.io import as_gold

    if not annotations.n_annotations or not isinstance(model.posterior_, np.ndarray):
        return
    if annotations.n_classes < 2:
        say(args, "only one class, so nothing can be said of accuracy")
        return
    known = None if gold is None else as_gold(gold, annotations)
    right = assess_labels(annotations, model.posterior_, known).accuracy
    ends = "" if np.isnan(right.low) else f" ({right.low:.0%} to {right.high:.0%})"
    hint = "; labels alone cannot narrow this, known truths can" if ends and gold is None else ""
    say(args, f"expected accuracy {right.value:.0%}{ends}{hint}")
    found = check_independence(annotations, gold)
    if found.is_severe:
        say(args, f"{found.describe()} --gold-file learns from known truths")
