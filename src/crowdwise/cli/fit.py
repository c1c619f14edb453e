"""Train a classifier on features and annotations, and save it.

crowdwise fit votes.csv --features X.csv -o model.crowdwise
crowdwise fit votes.csv --features X.npz -o model.crowdwise --method LIA --set epochs=200
crowdwise fit votes.csv --features X.parquet -o model.crowdwise --gold-file truth.csv --seed 1
"""

import time
from argparse import ArgumentParser, Namespace

from crowdwise.cli.files import refuse_screen
from crowdwise.cli.options import (
    add_feature_options,
    add_input_options,
    add_method_options,
    add_partial_option,
    choose_method,
    fit_method,
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
    group.add_argument("-o", "--output", metavar="FILE", required=True, help="write the model here")
    add_partial_option(group)


def run(args: Namespace) -> int:
    from crowdwise.io.atomic import refuse_unwritable
    from crowdwise.persist import save

    refuse_screen(args.output, "A model")
    refuse_unwritable(args.output)  # before long work, not after it
    model = choose_method(args, "learn")
    annotations = read_input(args)
    X = read_features_of(args, annotations)
    start = time.perf_counter()
    fit_method(model, X, annotations, gold=gold_to_learn_from(args, annotations))
    save(model, args.output)
    seconds, classes = (
        time.perf_counter() - start,
        plural(annotations.n_classes, "class", "classes"),
    )
    if hasattr(model, "summary"):  # what it chose, in words
        say(args, model.summary())
    say(args, f"{name_result(args, model)} learned {classes} in {seconds:.1f} s: {args.output}")
    return 0
