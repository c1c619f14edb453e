"""Label new tasks with a model saved by crowdwise fit.

crowdwise predict model.crowdwise X.csv -o labels.csv
crowdwise predict model.crowdwise X.npz --proba --json
"""

import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from crowdwise.cli.options import add_column_options, read_feature_table
from crowdwise.cli.outcome import say
from crowdwise.cli.tables import add_output_options, write_table
from crowdwise.errors import FormatError, ParameterError, explain, plural


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", help="file written by crowdwise fit")
    parser.add_argument("features", help="table of features, .npz with X and ids, or .npy")
    add_column_options(parser.add_argument_group("features"))
    add_output_options(parser)
    parser.add_argument("--proba", action="store_true", help="add the probability of every class")


def run(args: Namespace) -> int:
    from crowdwise.io.consensus import labels_frame

    model = load_classifier(args.model, args.features)
    refuse_votes(args.features, model)
    table = read_feature_table(args, known=getattr(model, "feature_names_in_", None))
    for note in table.notes:
        say(args, note)
    start = time.perf_counter()
    proba = model.predict_proba(table.name_columns(table.values))
    write_table(labels_frame(proba, model.classes_, table.ids, probabilities=args.proba), args)
    seconds, name = time.perf_counter() - start, type(model).__name__
    say(args, f"{plural(len(proba), 'task')} labeled by {name} in {seconds:.1f} s")
    return 0


def load_classifier(path: str, features: str) -> Any:
    """Load a saved classifier; refuses model and features in the wrong order."""
    from crowdwise.persist import is_model, load

    expected = "first a classifier saved by crowdwise fit, then a table of features"
    if is_model(features):
        fix = f"crowdwise predict {features} {path}" if not is_model(path) else "name the features"
        what = f"{features} is a model, but features are expected there."
        raise ParameterError(explain(what, expected=expected, fix=fix))
    if Path(path).is_file() and not is_model(path):
        fix = "write one with crowdwise fit … -o model.crowdwise"
        raise FormatError(explain(f"{path} is not a model.", expected=expected, fix=fix))
    model = load(path)
    if not type(model).__module__.startswith("crowdwise.learn"):
        raise FormatError(
            explain(
                f"The {type(model).__name__} in {path} does not predict from features.",
                expected="a classifier saved by crowdwise fit",
                fix="use it in Python: crowdwise.load",
            )
        )
    return model


def refuse_votes(path: str, model: object) -> None:
    """Refuse a table of annotations, which has no features."""
    from crowdwise.io.open import find_files, open_document
    from crowdwise.io.recognize import recognize_columns

    if path.lower().endswith((".npy", ".npz")):
        return
    columns = open_document(find_files(path)[0]).columns
    if {"task", "worker", "label"} <= set(recognize_columns(columns, {})):
        n_features = getattr(model, "n_features_in_", "as many")
        raise FormatError(
            explain(
                f"{path} has annotations instead of features.",
                found=", ".join(columns),
                expected=f"a table with {n_features} features, like the one it was fitted on",
                fix="give the table of features",
            )
        )
