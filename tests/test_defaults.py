"""The defaults that docstrings promise are those of the signatures."""

import ast
import inspect
import pkgutil
import re
from importlib import import_module
from importlib.util import find_spec

import pytest

import crowdwise

LINE = re.compile(r"^ *(\w[\w, ]*) : .*\bdefault=(.+)$", re.MULTILINE)
NOTHING = inspect.Parameter.empty


def documented(thing):
    """The literal defaults in a docstring, by parameter."""
    found = {}
    for names, text in LINE.findall(inspect.getdoc(thing) or ""):
        for name in names.split(", "):
            try:
                found[name] = ast.literal_eval(text)
            except (SyntaxError, ValueError):  # prose, or an object
                continue
    return found


NEEDS = {"crowdwise.spark": "pyspark", "crowdwise.inference.engines.fused": "triton"}


def promises():
    """Every public function and class that documents a default."""
    for module in pkgutil.walk_packages(crowdwise.__path__, "crowdwise."):
        needs = NEEDS.get(module.name)
        if needs is not None and find_spec(needs) is None:
            continue
        if not any(part.startswith("_") for part in module.name.split(".")):
            home = import_module(module.name)
            for name, thing in vars(home).items():
                own = getattr(thing, "__module__", None) == module.name
                if own and callable(thing) and documented(thing):
                    yield pytest.param(thing, id=f"{module.name}.{name}")


@pytest.mark.parametrize("thing", list(promises()))
def test_documented_defaults_are_the_real_ones(thing):
    real = inspect.signature(thing).parameters
    wrong = {
        name: (value, real[name].default)
        for name, value in documented(thing).items()
        if name in real and real[name].default is not NOTHING
        if real[name].default != value
    }
    assert not wrong
