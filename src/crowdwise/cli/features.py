"""Flags shared by every command that reads features."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from crowdwise.cli.outcome import say

if TYPE_CHECKING:
    from crowdwise.annotations import Annotations
    from crowdwise.io.features import FeatureTable


def add_feature_options(parser: ArgumentParser, *, required: bool = False) -> None:
    """Add the file of features, and the flags that say how to read it."""
    add = parser.add_argument_group("features").add_argument
    text = "table with a column of task names, .npz with X and ids, or .npy"
    add("--features", metavar="FILE", required=required, help=text)
    add_column_options(add)


def add_column_options(add: Any) -> None:
    """Add the flags that say what the columns of a table of features are."""
    add("--feature-id", metavar="COLUMN", help="column that holds the task's name")
    add("--feature-columns", metavar="A,B,…", help="columns to take, x_* for all that begin so")


def table_of(args: Namespace, path: str, tasks: Any = None) -> "FeatureTable":
    """The table of features that the flags name."""
    from crowdwise.io.features import read_features

    columns = None if args.feature_columns is None else args.feature_columns.split(",")
    return read_features(path, tasks=tasks, id=args.feature_id, columns=columns)


def features_for(args: Namespace, annotations: "Annotations") -> Any:
    """One row of features for each task; says on standard error what was taken for what."""
    table = table_of(args, args.features, annotations.tasks)
    X, notes = table.of_tasks(annotations.tasks)
    for note in notes:
        say(args, note)
    return X
