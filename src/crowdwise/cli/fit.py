"""Train a classifier on features and annotations, and save it.

crowdwise fit votes.csv --features X.csv -o model.crowdwise
crowdwise fit votes.csv --features X.npz -o model.crowdwise --method LIA --set epochs=200
crowdwise fit votes.csv --features X.parquet -o model.crowdwise --gold-file truth.csv --seed 1
torchrun --nproc-per-node 2 -m crowdwise fit votes.csv --features X.npz -o model.crowdwise
"""

import time
from argparse import ArgumentParser, Namespace
from contextlib import nullcontext

from crowdwise.cli.files import refuse_screen
from crowdwise.cli.options import (
    add_feature_options,
    add_input_options,
    add_method_options,
    add_partial_option,
    choose_method,
    gold_to_learn_from,
    name_result,
    read_features_of,
    read_input,
)
from crowdwise.cli.outcome import say
from crowdwise.errors import plural


def add_arguments(parser: ArgumentParser) -> None:
    add_input_options(parser)
    add_feature_options(parser, required=True)
    add_method_options(parser, "AutoClassifier", "learn")
    group = parser.add_argument_group("writing")
    group.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="file to write the model to"
    )
    add_partial_option(group)
    text = "folder for checkpoints; training resumes from there after a kill"
    group.add_argument("--checkpoint", metavar="FOLDER", help=text)


def run(args: Namespace) -> int:
    from crowdwise.io.atomic import refuse_unwritable
    from crowdwise.learn import checkpoints
    from crowdwise.nets.ranks import find_ranks
    from crowdwise.persist import save

    refuse_screen(args.output, "A model")
    refuse_unwritable(args.output)  # before the long work starts
    leads = find_ranks().rank == 0  # only one of several training processes prints
    args.quiet = args.quiet or not leads
    model = choose_method(args, "learn")
    annotations = read_input(args)
    X = read_features_of(args, annotations)
    start = time.perf_counter()
    with checkpoints(args.checkpoint) if args.checkpoint else nullcontext():
        model.fit(X, annotations, gold=gold_to_learn_from(args, annotations))
    if not leads:
        return 0
    save(model, args.output)
    seconds, classes = (
        time.perf_counter() - start,
        plural(annotations.n_classes, "class", "classes"),
    )
    if hasattr(model, "summary"):  # its choices, in words
        say(args, model.summary())
    say(args, f"{name_result(args, model)} learned {classes} in {seconds:.1f} s: {args.output}")
    return 0
