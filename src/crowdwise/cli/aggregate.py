"""Turn annotations into one label per task.

crowdwise aggregate votes.csv > labels.csv
crowdwise aggregate votes.csv --method MajorityVote -o labels.parquet
crowdwise aggregate votes.csv --set smoothing=0.1 --set max_iter=50 --proba
crowdwise aggregate votes.csv --gold-file truth.csv -o labels.csv
"""

import time
from argparse import ArgumentParser, Namespace

from crowdwise.cli.method import add_method_options, asked_gold, chosen_method, fitted
from crowdwise.cli.outcome import say
from crowdwise.cli.tables import add_output_options, put


def add_arguments(parser: ArgumentParser) -> None:
    from crowdwise.cli.options import add_input_options

    add_input_options(parser)
    add_method_options(parser)
    add_output_options(parser)
    parser.add_argument("--proba", action="store_true", help="add the probability of every class")


def run(args: Namespace) -> int:
    from crowdwise.cli.options import read_input
    from crowdwise.io.consensus import consensus_frame

    model = chosen_method(args)
    annotations = read_input(args)
    gold = asked_gold(args, annotations)
    start = time.perf_counter()
    fitted(model, annotations, gold)
    put(consensus_frame(model, annotations, probabilities=args.proba), args)
    seconds = time.perf_counter() - start
    name = type(model).__name__
    say(args, f"{annotations.n_tasks:,} tasks labeled by {name} in {seconds:.1f} s")
    return 0
