"""How the house is built: who may import whom, and what an import loads.

``lint-imports`` (in ``make check``) holds the order of the packages and refuses cycles; here are
the rules that it has no words for.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import crowdwise

HOME = Path(crowdwise.__file__).parent
MODULES = {
    ".".join(("crowdwise", *path.relative_to(HOME).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in (*HOME.rglob("*.py"), HOME / "_native.c")
}


class Import(NamedTuple):
    """One name that a module takes from another one."""

    by: str  # the module that imports
    line: int
    module: str  # the module it imports from, or the module itself
    name: str | None

    def __str__(self) -> str:
        return f"{self.by}, line {self.line}: {self.name or 'all'} of {self.module}"


def imports_in(source: str, by: str) -> Iterator[Import]:
    """Every import of our own modules, also those inside functions and for type checkers."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found = [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{by} imports relative to itself"
            found = [(str(node.module), alias.name) for alias in node.names]
        else:
            continue
        for module, name in found:
            if module.split(".")[0] == "crowdwise":
                inner = f"{module}.{name}"
                own = (inner, None) if inner in MODULES else (module, name)
                yield Import(by, node.lineno, *own)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def crosses_a_package(one: Import) -> bool:
    """Whether a module of another package is imported that has an underscore on its way."""
    parts = one.module.split(".")
    homes = [".".join(parts[:i]) for i, part in enumerate(parts) if is_private(part)]
    return any(not f"{one.by}.".startswith(f"{home}.") for home in homes)


@pytest.fixture(scope="module")
def imports():
    """Every import in the package."""
    return [
        one
        for by, path in MODULES.items()
        if path.suffix == ".py"
        for one in imports_in(path.read_text("utf-8"), by)
    ]


def test_the_scan_sees_every_kind_of_import(imports):
    source = (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from crowdwise.plot._axes import one_axes\n"
        "def f():\n    import crowdwise.learn._linear\n"
        "    from crowdwise.errors import _first, explain\n"
    )
    found = list(imports_in(source, "crowdwise.report.write"))
    assert [one.line for one in found if crosses_a_package(one)] == [3, 5]
    assert [one.name for one in found if one.name and is_private(one.name)] == ["_first"]
    inside = list(imports_in(source, "crowdwise.learn.raykar"))
    assert [one.line for one in inside if crosses_a_package(one)] == [3]
    assert len(imports) > 1000


def test_the_page_about_the_house_shows_the_order_of_imports():
    root = Path(__file__).parents[1]
    text = (root / "docs" / "design.md").read_text("utf-8")
    shown = re.findall(r"^([a-z]+(?:, [a-z]+)*)  ", text.split("```")[1], re.M)
    below = re.findall(
        r"`(\w+)`", text.partition(" lie below all of them")[0].rpartition("\n\n")[2]
    )
    contract = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = [set(re.findall(r"\w+", one)) for one in contract["contracts"][0]["layers"]]
    held = [one - {"__main__", "_native"} for one in reversed(layers) if one != {"demo"}]
    stages = [one for one in held if one and not one & set(below)]
    assert [set(one.split(", ")) for one in shown] == stages
    assert set().union(*held) == set().union(*stages, below)


def test_no_private_module_is_imported_by_another_package(imports):
    assert not [str(one) for one in imports if crosses_a_package(one)]


def test_no_private_name_is_imported_by_another_module(imports):
    assert not [str(one) for one in imports if one.name and is_private(one.name)]


def loaded_by(modules: list[str]) -> list[set[str]]:
    """What a fresh interpreter has loaded after importing each of them, one after another."""
    code = "".join(f"import {name}; print(' '.join(sys.modules))\n" for name in modules)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}"], capture_output=True, text=True, check=True
    )
    return [set(line.split()) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "absent",
    [
        {
            "crowdwise": "torch pandas sklearn scipy matplotlib pyspark polars pyarrow",
            "crowdwise.datasets": "torch pandas sklearn matplotlib",
            "crowdwise.simulate": "torch matplotlib",
        },
        {
            "crowdwise.aggregate": "torch matplotlib crowdwise.datasets crowdwise.simulate",
            "crowdwise.evaluate": "torch matplotlib crowdwise.datasets crowdwise.simulate",
            "crowdwise.compat.crowdkit": "torch matplotlib crowdwise.datasets",
        },
    ],
    ids=" ".join,
)
def test_an_import_loads_no_more_than_it_needs(absent):
    for (module, unwanted), loaded in zip(absent.items(), loaded_by(list(absent)), strict=True):
        assert module in loaded
        assert not loaded & set(unwanted.split()), module
