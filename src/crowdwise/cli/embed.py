"""Learn a representation of tasks from features and annotations.

crowdwise embed votes.csv --features X.csv -o embedding.csv
crowdwise embed votes.csv --features X.npz -o embedding.npz --method NeuCrowd --set epochs=20
crowdwise embed votes.csv --features X.npz -o embedding.npz --model embedder.crowdwise
"""

import time
from argparse import ArgumentParser, Namespace

from crowdwise.cli.features import add_feature_options, table_of
from crowdwise.cli.method import add_method_options, asked_gold, chosen_method, fitted
from crowdwise.cli.outcome import say
from crowdwise.cli.paths import refuse_screen


def add_arguments(parser: ArgumentParser) -> None:
    from crowdwise.cli.options import add_input_options

    add_input_options(parser)
    add_feature_options(parser, required=True)
    add_method_options(parser, "RLL", "embed")
    group = parser.add_argument_group("writing")
    text = "write every row's representation here: .npz, or a table"
    group.add_argument("-o", "--output", metavar="FILE", required=True, help=text)
    group.add_argument(
        "--model", dest="saved", metavar="FILE", help="write the fitted embedder here, too"
    )


def run(args: Namespace) -> int:
    from crowdwise.cli.options import read_input
    from crowdwise.io.atomic import refuse_unwritable
    from crowdwise.io.features import write_features
    from crowdwise.io.write import refuse_other_tables

    for path, what in ((args.output, "An embedding"), (args.saved, "A model")):
        refuse_screen(path, what)
        if path is not None:
            refuse_unwritable(path)  # before long work, not after it
    if not args.output.lower().endswith(".npz"):
        refuse_other_tables(args.output)
    annotations = read_input(args)
    table = table_of(args, args.features, annotations.tasks)
    X, notes = table.of_tasks(annotations.tasks)
    for note in notes:
        say(args, note.replace("left out", "represented, not learned from"))
    model = chosen_method(args, "embed")
    start = time.perf_counter()
    fitted(model, X, annotations, gold=asked_gold(args, annotations))
    rows, names = (X, annotations.tasks) if table.ids is None else (table.values, table.ids)
    found = model.transform(rows)
    write_features(args.output, found, names, model.get_feature_names_out())
    if args.saved is not None:
        model.save(args.saved)
    seconds, name = time.perf_counter() - start, type(model).__name__
    say(args, f"{len(found):,} tasks in {found.shape[1]} dimensions by {name} in {seconds:.1f} s")
    return 0
