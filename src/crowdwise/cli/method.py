"""Which method to use, and how it is set: flags shared by several commands."""

import ast
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from crowdwise.errors import ParameterError, explain

if TYPE_CHECKING:
    from crowdwise.data import Annotations


def add_method_options(parser: ArgumentParser) -> None:
    """Add the flags that choose a method and its parameters."""
    group = parser.add_argument_group("method")
    group.add_argument(
        "--method",
        default="DawidSkene",
        metavar="NAME",
        help="see crowdwise methods (default: %(default)s)",
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


def find_method(name: str) -> Any:
    """The aggregator of this name; case, dashes and underscores do not matter."""
    from crowdwise import aggregate

    plain = {_plain(known): known for known in aggregate.__all__}
    if _plain(name) not in plain:
        close = [plain[word] for word in get_close_matches(_plain(name), plain, n=3)]
        raise ParameterError(
            explain(
                f"There is no method {name!r}.",
                expected=", ".join(close or aggregate.__all__),
                fix="see crowdwise methods for all of them",
            )
        )
    return getattr(aggregate, plain[_plain(name)])


def chosen_method(args: Namespace) -> Any:
    """The method that the flags ask for, not fitted yet."""
    kind = find_method(args.method)
    model, settings = kind(), dict(args.set)
    known = model.get_params()
    for name in settings:
        if name not in known:
            raise ParameterError(
                explain(
                    f"{kind.__name__} has no parameter {name!r}.",
                    expected=", ".join(known) or "none at all",
                    fix=f"see crowdwise methods {kind.__name__}",
                )
            )
    if args.seed is not None and "random_state" in known:
        settings.setdefault("random_state", args.seed)
    return model.set_params(**settings)


def fitted(model: Any, annotations: "Annotations", gold: Any = None) -> Any:
    """Fit, and word a refused parameter as every other error."""
    from crowdwise._params import InvalidParameterError

    try:
        return model.fit(annotations, gold)
    except InvalidParameterError as error:
        name = type(model).__name__
        raise ParameterError(explain(str(error), fix=f"see crowdwise methods {name}")) from None


def gold_of(annotations: "Annotations") -> Any:
    """The truths that came with the annotations, by task; None if there are none."""
    import pandas as pd

    gold = annotations.gold
    if gold is None or not (gold >= 0).any():
        return None
    known = gold >= 0
    return pd.Series(annotations.classes[gold[known]], index=annotations.tasks[known])


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")
