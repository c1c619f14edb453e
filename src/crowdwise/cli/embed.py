"""Learn a representation of tasks from features and annotations.

crowdwise embed votes.csv --features X.csv -o embedding.csv
crowdwise embed votes.csv --features X.npz -o embedding.npz --method NeuCrowd --set epochs=20
crowdwise embed votes.csv --features X.npz -o embedding.npz --model embedder.crowdwise
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
    gold_to_learn_from,
    name_result,
    read_feature_table,
    read_input,
)
from crowdwise.cli.outcome import say
from crowdwise.errors import plural


def add_arguments(parser: ArgumentParser) -> None:
    add_input_options(parser)
    add_feature_options(parser, required=True)
    add_method_options(parser, "RLL", "embed")
    group = parser.add_argument_group("writing")
    text = "write one row per task here: .npz, or a table"
    group.add_argument("-o", "--output", metavar="FILE", required=True, help=text)
    group.add_argument(
        "--model", dest="saved", metavar="FILE", help="also write the fitted embedder here"
    )
    add_partial_option(group)


def run(args: Namespace) -> int:
    from crowdwise.io.features import write_features

    refuse_outputs(args)
    model = choose_method(args, "embed")
    annotations = read_input(args)
    table = read_feature_table(args, annotations.tasks)
    X, notes = table.take_tasks(annotations.tasks)
    for note in notes:
        say(args, note.replace("left out", "represented, but not learned from"))
    start = time.perf_counter()
    model.fit(table.name_columns(X), annotations, gold=gold_to_learn_from(args, annotations))
    rows, names = (X, annotations.tasks) if table.ids is None else (table.values, table.ids)
    found = model.transform(table.name_columns(rows))
    write_features(args.output, found, names, model.get_feature_names_out())
    if args.saved is not None:
        model.save(args.saved)
    seconds, name = time.perf_counter() - start, name_result(args, model)
    tasks, size = plural(len(found), "task"), plural(found.shape[1], "dimension")
    say(args, f"{tasks} in {size} by {name} in {seconds:.1f} s")
    return 0


def refuse_outputs(args: Namespace) -> None:
    """Refuse outputs that cannot be written, before the long work starts."""
    from crowdwise.io.atomic import refuse_unwritable
    from crowdwise.io.write import refuse_other_tables

    for path, what in ((args.output, "An embedding"), (args.saved, "A model")):
        refuse_screen(path, what)
        if path is not None:
            refuse_unwritable(path)
    if not args.output.lower().endswith(".npz"):
        refuse_other_tables(args.output)
