"""Flags shared by several commands, and the annotations, features and methods they name.

Heavy modules are imported where they are used, so that commands start quickly.
"""

import ast
import pkgutil
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdwise.cli.numbers import seed
from crowdwise.cli.outcome import say
from crowdwise.errors import ParameterError, explain, plural

if TYPE_CHECKING:
    from argparse import _ActionsContainer
    from collections.abc import Sequence

    import pandas as pd
    from sklearn.base import BaseEstimator

    from crowdwise.annotations import Annotations
    from crowdwise.io.features import FeatureTable
    from crowdwise.typing import Array, FeaturesLike

REPEATS = ("all", "first", "last", "majority")
COLUMNS = ("task", "worker", "label", "weight", "time", "gold", "score")
MEANINGS = {
    "gold": "true label; a file is read as --gold-file",
    "score": "number behind each label",
}
# Kinds of methods: the package of each, and the name of its list of methods.
KINDS = {
    "aggregate": ("crowdwise.aggregate", "__all__"),
    "learn": ("crowdwise.learn", "LEARNERS"),
    "embed": ("crowdwise.embed", "EMBEDDERS"),
}
# What the methods of each kind do, and the command for them.
USES = {
    "aggregate": ("infers labels from annotations alone", "aggregate"),
    "learn": ("trains a classifier on features", "fit"),
    "embed": ("learns a representation of features", "embed"),
}
# Parameters that are objects with parameters; the first one with a given name is set.
PARTS = (
    *("objective", "training", "encoder", "groups", "anchor", "confidence", "loss", "noise"),
    *("generator", "warm_up", "decoder", "base"),
)

DEFAULT = "BayesBag"  # the name of crowdwise.aggregate.DEFAULT, which takes long to import


def add_input_options(parser: ArgumentParser) -> None:
    """Add the annotation file, and the flags that say how to read it."""
    from crowdwise.io.formats import FORMATS

    parser.add_argument("annotations", help="file or folder of annotations; - for standard input")
    group = parser.add_argument_group("reading", "Recognized automatically; flags override it.")
    names = [form.name for form in FORMATS]
    group.add_argument("--format", choices=names, metavar="NAME", help=", ".join(names))
    for role in COLUMNS:
        text = f"column with the {MEANINGS.get(role, role)}"
        group.add_argument(f"--{role}", metavar="COLUMN", help=text)
    group.add_argument("--question", metavar="NAME", help="which question of an export to read")
    group.add_argument("--gold-file", metavar="FILE", help="table of tasks and true labels")
    text = "table of workers: their family, kind or price"
    group.add_argument("--workers", metavar="FILE", help=text)
    group.add_argument("--classes", metavar="A,B,…", help="all classes, in this order")
    group.add_argument(
        "--missing",
        action="append",
        metavar="VALUE",
        help="text that means no label, instead of NA, nan, None, null and the like; may be "
        "repeated; '' keeps them as classes",
    )
    group.add_argument(
        "--repeats",
        choices=REPEATS,
        default="all",
        help="what to keep when a worker labels a task more than once (default: %(default)s)",
    )
    group.add_argument("--rejected", action="store_true", help="include rejected annotations")


def read_input(args: Namespace) -> "Annotations":
    """Read the annotations, and print on standard error how the file was understood."""
    from crowdwise.io.gold import add_gold_file
    from crowdwise.io.reader import read
    from crowdwise.io.values import parse_names
    from crowdwise.io.workers import add_worker_file

    source: Any = sys.stdin.buffer if args.annotations == "-" else args.annotations
    options = {name: getattr(args, name) for name in (*COLUMNS, "question", "repeats", "rejected")}
    if args.classes is not None:
        options["classes"] = parse_names(split_classes(args.classes))
    if args.missing is not None:
        options["missing"] = args.missing
    if args.gold_file is None and args.gold is not None and Path(args.gold).is_file():
        args.gold_file, options["gold"] = args.gold, None
    annotations = read(source, args.format, **options)
    if args.gold_file is not None:
        annotations = add_gold_file(annotations, args.gold_file)
    if args.workers is not None:
        annotations = add_worker_file(annotations, args.workers)
    for note in (str(annotations).strip("<>"), *annotations.notes):
        say(args, note)
    if annotations.n_repeats:
        repeated = plural(annotations.n_repeats, "repeated annotation")
        say(
            args,
            f"{repeated} (same worker, same task); all count, "
            "--repeats first, last or majority keeps one",
        )
    return annotations


def split_classes(text: str) -> list[str]:
    """Split the value of --classes; a class has a name."""
    names = text.split(",")
    if not all(name.strip() for name in names):
        raise ParameterError(
            explain(
                f"--classes {text!r} has a class without a name.",
                expected="names between commas, such as yes,no",
                fix="remove the comma, or name the class",
            )
        )
    return names


def add_feature_options(parser: ArgumentParser, *, required: bool = False) -> None:
    """Add the feature file, and the flags that say how to read it."""
    group = parser.add_argument_group("features")
    text = "table with a column of task names, .npz with X and ids, or .npy"
    group.add_argument("--features", metavar="FILE", required=required, help=text)
    add_column_options(group)


def add_column_options(group: "_ActionsContainer") -> None:
    """Add the flags that assign the columns of a feature table."""
    group.add_argument("--feature-id", metavar="COLUMN", help="column with the task's name")
    text = "columns to use; x_* means all that start with x_"
    group.add_argument("--feature-columns", metavar="A,B,…", help=text)


def read_feature_table(
    args: Namespace, tasks: "Array | None" = None, known: "Sequence[str] | None" = None
) -> "FeatureTable":
    """Read the table of features that the flags name; ``known`` are the columns of a model."""
    from crowdwise.io.features import read_features

    columns = None if args.feature_columns is None else args.feature_columns.split(",")
    return read_features(
        args.features, tasks=tasks, id=args.feature_id, columns=columns, known=known
    )


def read_features_of(args: Namespace, annotations: "Annotations") -> "FeaturesLike":
    """Read one row of features per task, and print on standard error how it was understood."""
    table = read_feature_table(args, annotations.tasks)
    X, notes = table.take_tasks(annotations.tasks)
    for note in notes:
        say(args, note)
    return table.name_columns(X)


def add_method_options(
    parser: ArgumentParser, default: str = DEFAULT, kind: str = "aggregate"
) -> None:
    """Add the flags that choose a method of a kind, and its parameters."""
    group = parser.add_argument_group("method")
    more = "" if kind == "aggregate" else f" --kind {kind}"
    group.add_argument(
        "--method",
        default=default,
        type=partial(own_method, kind=kind),
        metavar="NAME",
        help=f"see crowdwise methods{more} (default: %(default)s)",
    )
    group.add_argument(
        "--set",
        action="append",
        default=[],
        type=assignment,
        metavar="NAME=VALUE",
        help="set a parameter of the method; may be repeated",
    )
    group.add_argument(
        "--seed", type=seed, metavar="N", help="random seed, for methods that have one"
    )


def add_partial_option(group: "_ActionsContainer") -> None:
    """Add the flag that keeps what an interrupted training has learned."""
    text = "on Ctrl-C, write what was learned so far; a second Ctrl-C stops at once"
    group.add_argument("--keep-partial", action="store_true", help=text)


def name_result(args: Namespace, model: object) -> str:
    """Name a fitted method, and say if its training was interrupted."""
    name = type(model).__name__
    return f"{name}, interrupted and only half trained," if args.interrupted else name


def assignment(text: str) -> tuple[str, object]:
    """Parse ``name=value``; a value that is not a Python literal is text."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise ArgumentTypeError(f"{text!r} is not of the form name=value, such as max_iter=50")
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return name.strip(), value.strip()


def method_names(kind: str) -> list[str]:
    """List the names of all methods of a kind without importing them."""
    home, variable = KINDS[kind]
    source = pkgutil.get_data("crowdwise", f"{home.partition('.')[2]}/__init__.py") or b""
    for part in ast.parse(source).body:
        if isinstance(part, ast.Assign) and ast.unparse(part.targets[0]) == variable:
            return sorted(ast.literal_eval(part.value), key=str.casefold)
    return sorted(getattr(import_module(home), variable), key=str.casefold)


def own_method(name: str, kind: str) -> str:
    """Return the name of a method, unless it belongs to another command."""
    if other := find_other_use(name, (kind,)):
        raise ArgumentTypeError(other)
    return name


def find_other_use(name: str, kinds: tuple[str, ...]) -> str:
    """Say what a method of another kind is for, in a sentence without a full stop."""
    if any(_plain(name) in map(_plain, method_names(kind)) for kind in kinds):
        return ""
    for kind, (use, command) in USES.items():
        for own in method_names(kind):
            if _plain(own) == _plain(name):
                return f"{own} {use}: use crowdwise {command} --method {own}"
    return ""


def find_method(name: str, kinds: tuple[str, ...] = ("aggregate",)) -> Any:
    """Find the class with this name; case, dashes and underscores do not matter."""
    known: list[str] = []
    for kind in kinds:
        plain = {_plain(own): own for own in method_names(kind)}
        if _plain(name) in plain:
            return getattr(import_module(KINDS[kind][0]), plain[_plain(name)])
        known += plain.values()
    if other := find_other_use(name, kinds):
        raise ParameterError(
            f"{other}.\n  fix:      write --set with the name of a parameter of the method"
        )
    close = get_close_matches(_plain(name), map(_plain, known), n=3)
    raise ParameterError(
        explain(
            f"There is no method {name!r}.",
            expected=", ".join([own for own in known if _plain(own) in close] or known),
            fix="see crowdwise methods for all of them",
        )
    )


def choose_method(args: Namespace, kind: str = "aggregate") -> Any:
    """Return the method that the flags ask for, not fitted yet."""
    return make_method(args.method, dict(args.set), args.seed, kind)


def make_method(name: str, settings: dict[str, object], seed: int | None, kind: str) -> Any:
    """Make a method by name, with its parameters and those of its training."""
    from crowdwise.base.params import find_misfits

    method = find_method(name, (kind,))
    model = method()
    known = model.get_params()
    inner = [own for part in find_parts(model).values() for own in part.get_params(deep=False)]
    settings = _set_parts(model, settings)
    for own in settings:
        if own not in known:
            raise ParameterError(
                explain(
                    f"{method.__name__} has no parameter {own!r}.",
                    expected=", ".join(dict.fromkeys([*model.get_params(deep=False), *inner]))
                    or "no parameters",
                    fix=f"see crowdwise methods {method.__name__}",
                )
            )
    if seed is not None and "random_state" in known:
        settings.setdefault("random_state", seed)
    model.set_params(**settings)
    for owner in (model, *find_parts(model).values()):
        for own, value, expected in find_misfits(owner):
            raise ParameterError(
                explain(
                    f"--set {own}={value} cannot be used.",
                    expected=expected,
                    fix=f"see crowdwise methods {method.__name__}",
                )
            )
    return model


def gold_to_learn_from(args: Namespace, annotations: "Annotations") -> "pd.Series | None":
    """Return known truths; those among the annotations only if a flag asks for them."""
    gold = annotations.gold_labels
    if gold is not None and args.gold is None and args.gold_file is None:
        unused, which = plural(len(gold), "gold label"), "it" if len(gold) == 1 else "them"
        say(args, f"{unused} not used; --gold COLUMN learns from {which}")
        return None
    return gold


def _set_parts(model: "BaseEstimator", settings: dict[str, object]) -> dict[str, object]:
    """Return the settings with ``epochs`` and the like moved to the part that has them.

    ``part__name`` selects the part. Training then logs its epochs, for --verbose to show.
    """
    known = model.get_params(deep=False)
    for part, usual in find_parts(model).items():
        if part in settings:
            continue
        own = usual.get_params(deep=False)
        inner = {name: name.removeprefix(f"{part}__") for name in settings if name not in known}
        inner = {name: short for name, short in inner.items() if short in own}
        changes = {short: settings[name] for name, short in inner.items()}
        if part == "training":
            changes = {"verbose": True, **changes}
        settings = {name: value for name, value in settings.items() if name not in inner}
        if changes:
            settings[part] = type(usual)(**{**own, **changes})
    return settings


def find_parts(model: "BaseEstimator") -> dict[str, "BaseEstimator"]:
    """Return the parts of a method with parameters: its own, or else the defaults."""
    known = model.get_params(deep=False)
    usual = {
        part: getattr(model, f"default_{part}", None) if known[part] is None else known[part]
        for part in PARTS
        if part in known
    }
    return {part: value for part, value in usual.items() if hasattr(value, "get_params")}


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")
