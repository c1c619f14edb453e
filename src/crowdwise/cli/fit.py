"""Learn a classifier from features and annotations, and save it.

crowdwise fit votes.csv --features X.csv -o model.crowdwise
crowdwise fit votes.csv --features X.npz -o model.crowdwise --method LIA --set epochs=200
crowdwise fit votes.csv --features X.parquet -o model.crowdwise --gold-file truth.csv --seed 1
"""

import time
from argparse import ArgumentParser, Namespace

from crowdwise.cli.features import add_feature_options, features_for
from crowdwise.cli.method import add_method_options, asked_gold, chosen_method, fitted
from crowdwise.cli.outcome import say
from crowdwise.cli.paths import refuse_screen


def add_arguments(parser: ArgumentParser) -> None:
    from crowdwise.cli.options import add_input_options

    add_input_options(parser)
    add_feature_options(parser, required=True)
    add_method_options(parser, "SpeeLFC", "learn")
    group = parser.add_argument_group("writing")
    group.add_argument("-o", "--output", metavar="FILE", required=True, help="write the model here")


def run(args: Namespace) -> int:
    from crowdwise.cli.options import read_input
    from crowdwise.io.atomic import refuse_unwritable
    from crowdwise.persist import save

    refuse_screen(args.output, "A model")
    refuse_unwritable(args.output)  # before long work, not after it
    annotations = read_input(args)
    X = features_for(args, annotations)
    model = chosen_method(args, "learn")
    start = time.perf_counter()
    fitted(model, X, annotations, gold=asked_gold(args, annotations))
    save(model, args.output)
    seconds = time.perf_counter() - start
    name = type(model).__name__
    say(args, f"{name} learned {annotations.n_classes} classes in {seconds:.1f} s: {args.output}")
    return 0
