"""Which method to use, and how it is set: flags shared by several commands."""

import ast
import pkgutil
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crowdwise.cli.outcome import say
from crowdwise.errors import ParameterError, explain

if TYPE_CHECKING:
    from crowdwise.annotations import Annotations


# Kinds of methods: the package they are in, and the name of its list of them.
KINDS = {
    "aggregate": ("crowdwise.aggregate", "__all__"),
    "learn": ("crowdwise.learn", "LEARNERS"),
    "embed": ("crowdwise.embed", "EMBEDDERS"),
}
PARTS = ("training", "encoder")  # parameters that have parameters of their own


def add_method_options(
    parser: ArgumentParser, default: str = "DawidSkene", kind: str = "aggregate"
) -> None:
    """Add the flags that choose a method of a kind, and its parameters."""
    group = parser.add_argument_group("method")
    more = "" if kind == "aggregate" else f" --kind {kind}"
    group.add_argument(
        "--method",
        default=default,
        metavar="NAME",
        help=f"see crowdwise methods{more} (default: %(default)s)",
    )
    group.add_argument(
        "--set",
        action="append",
        default=[],
        type=assignment,
        metavar="NAME=VALUE",
        help="set a parameter of the method; may be given again for another",
    )
    group.add_argument("--seed", type=int, metavar="N", help="for methods that draw random numbers")


def assignment(text: str) -> tuple[str, Any]:
    """``name=value`` as a name and a Python value; what is no Python is text."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise ArgumentTypeError(f"{text!r} is not of the form name=value, such as max_iter=50")
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return name.strip(), value.strip()


def names_of(kind: str) -> list[str]:
    """The names of all methods of a kind, without importing it and all that it needs."""
    home, listed = KINDS[kind]
    source = pkgutil.get_data("crowdwise", f"{home.partition('.')[2]}/__init__.py") or b""
    for part in ast.parse(source).body:
        if isinstance(part, ast.Assign) and ast.unparse(part.targets[0]) == listed:
            return list(ast.literal_eval(part.value))
    return list(getattr(import_module(home), listed))


def find_method(name: str, kinds: tuple[str, ...] = ("aggregate",)) -> Any:
    """The method of this name; case, dashes and underscores do not matter."""
    known: list[str] = []
    for kind in kinds:
        plain = {_plain(own): own for own in names_of(kind)}
        if _plain(name) in plain:
            return getattr(import_module(KINDS[kind][0]), plain[_plain(name)])
        known += plain.values()
    close = get_close_matches(_plain(name), map(_plain, known), n=3)
    raise ParameterError(
        explain(
            f"There is no method {name!r}.",
            expected=", ".join([own for own in known if _plain(own) in close] or known),
            fix="see crowdwise methods for all of them",
        )
    )


def chosen_method(args: Namespace, kind: str = "aggregate") -> Any:
    """The method that the flags ask for, not fitted yet."""
    return made(args.method, dict(args.set), args.seed, kind)


def made(name: str, settings: dict[str, Any], seed: int | None, kind: str) -> Any:
    """A method by name, with parameters; those of its training go there."""
    method = find_method(name, (kind,))
    model = method()
    known = model.get_params()
    settings = _with_parts(model, settings)
    for own in settings:
        if own not in known:
            raise ParameterError(
                explain(
                    f"{method.__name__} has no parameter {own!r}.",
                    expected=", ".join(known) or "none at all",
                    fix=f"see crowdwise methods {method.__name__}",
                )
            )
    if seed is not None and "random_state" in known:
        settings.setdefault("random_state", seed)
    return model.set_params(**settings)


def fitted(model: Any, *data: Any, **more: Any) -> Any:
    """Fit, and word a refused parameter as every other error."""
    from crowdwise.base.params import InvalidParameterError

    try:
        return model.fit(*data, **more)
    except InvalidParameterError as error:
        name = type(model).__name__
        raise ParameterError(explain(str(error), fix=f"see crowdwise methods {name}")) from None


def asked_gold(args: Namespace, annotations: "Annotations") -> Any:
    """The truths to learn from: those that came along only if a flag asks for them."""
    gold = annotations.gold_labels
    if gold is not None and args.gold is None and args.gold_file is None:
        say(args, f"{len(gold):,} gold labels are left unused; --gold COLUMN learns from them")
        return None
    return gold


def _with_parts(model: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings, with ``epochs`` and the like inside the part that has them.

    Training reports its progress, for the command to show.
    """
    known = model.get_params(deep=False)
    for part in PARTS:
        usual: Any = known.get(part) or getattr(model, f"default_{part}", None)
        if part not in known or part in settings or not hasattr(usual, "get_params"):
            continue
        inner = {own for own in settings if own not in known and own in usual.get_params()}
        changes = {own: settings[own] for own in inner}
        if part == "training":
            changes = {"verbose": True, **changes}
        settings = {own: value for own, value in settings.items() if own not in inner}
        if changes:
            settings[part] = type(usual)(**{**usual.get_params(deep=False), **changes})
    return settings


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")
