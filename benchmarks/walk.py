"""Count what a reader walks through: the files and functions behind one call.

python benchmarks/walk.py

Each walk is one call on a small crowd, traced: every function of the package that runs counts
once, and so does its file; a change of file is a call from one file into another, counted once
for each pair of functions. ``len()``, lambdas and comprehensions do not count.

What lies behind a door is a walk of its own. There are two kinds of door. A call of another
method (an aggregator inside a learner, say) is not followed. Nor is a call of an engine or of
another part of ``inference/engines``: an engine counts as its protocol, ``engine.py``, any other
part as its file. The column "nested" counts every file entered, those behind doors included.
Learners are walked with their strength given, and with the search for it, which is the default.

Then the house as a whole: imports of private modules across packages, constructor parameters of
the methods with the most, and how often a type is ``Any``.
"""

import ast
import inspect
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import crowdwise
from crowdwise.base import Aggregator, Embedder, Learner
from crowdwise.inference.engines.sweeps import BlockSweeps

ROOT = Path(crowdwise.__file__).parent
ENGINES = ROOT / "inference" / "engines"
ENGINE = str(ENGINES / "engine.py")
METHODS = (Aggregator, Learner, Embedder)
UNCOUNTED = (
    "<genexpr>",
    "<listcomp>",
    "<dictcomp>",
    "<setcomp>",
    "<lambda>",
    "<module>",
    "__len__",
)

Step = tuple[str, str]  # a file and a function in it


@dataclass(frozen=True)
class Walk:
    """What one call went through."""

    files: list[str]
    functions: int
    changes: int
    nested: list[str]  # files, the walks of methods fitted inside included


def trace(call: Callable[[], Any], method: type | None) -> Walk:
    """Run a call and record the package's own functions that it entered."""
    entered: set[Step] = set()
    inside: set[Step] = set()
    edges: set[tuple[Step, Step]] = set()
    others: list[FrameType] = []  # the call into another method that is under way

    def own(code: CodeType) -> bool:
        return code.co_filename.startswith(str(ROOT)) and code.co_name not in UNCOUNTED

    def place(frame: FrameType) -> Step:
        if isinstance(frame.f_locals.get("self"), BlockSweeps):
            return ENGINE, frame.f_code.co_name  # what a reader opens is the protocol
        return frame.f_code.co_filename, frame.f_code.co_qualname

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "return" and others and others[-1] is frame:
            others.pop()
        if event != "call" or not own(frame.f_code):
            return
        inside.add((frame.f_code.co_filename, frame.f_code.co_qualname))
        if others:
            return
        me = frame.f_locals.get("self")
        if isinstance(me, METHODS) and type(me) is not method:
            others.append(frame)
            return
        entered.add(place(frame))
        if frame.f_code.co_filename.startswith(str(ENGINES)):
            others.append(frame)
        caller = frame.f_back
        while caller is not None and not own(caller.f_code):
            caller = caller.f_back
        if caller is not None and place(caller)[0] != place(frame)[0]:
            edges.add((place(caller), place(frame)))

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Walk(files_of(entered), len(entered), len(edges), files_of(inside))


def files_of(steps: set[Step]) -> list[str]:
    """The files of some functions, within the package."""
    return sorted({str(Path(file).relative_to(ROOT)) for file, _ in steps})


def walks() -> dict[str, tuple[Callable[[], Any], type | None]]:
    """The calls to follow; each is run once before, so that lazy imports do not count."""
    from crowdwise import aggregate, embed, learn
    from crowdwise.io import read
    from crowdwise.laws.quick import quick
    from crowdwise.simulate import simulate_crowd

    rng = np.random.default_rng(0)
    votes = simulate_crowd(60, 8, n_classes=2, per_task=4, random_state=0).annotations
    X = rng.normal(size=(60, 5)) + votes.votes().argmax(axis=1)[:, None]
    path = Path(tempfile.mkdtemp()) / "votes.csv"
    votes.to_frame().to_csv(path, index=False)

    def fit(method: Any, *data: Any) -> Callable[[], Any]:
        return lambda: method.fit(*data)

    found: dict[str, tuple[Callable[[], Any], type | None]] = {
        "CSV to Annotations": (lambda: read(path), None),
        "DawidSkene.fit": (fit(aggregate.DawidSkene(), votes), aggregate.DawidSkene),
    }
    for module, names in ((learn, ("SpeeLFC", "LIA", "ICED")), (embed, ("RLL", "NeuCrowd"))):
        for name in names:
            cls = getattr(module, name)
            found[f"{name}.fit"] = (fit(quick(cls()), X, votes), cls)
            if "penalty" in cls().get_params(deep=False):
                found[f"{name}.fit, search"] = (fit(cls(random_state=0), X, votes), cls)
    return found


def ancestors(cls: type | None) -> str:
    """How many classes of the package a class derives from."""
    if cls is None:
        return ""
    return str(sum(base.__module__.startswith("crowdwise.") for base in cls.__mro__[1:]))


def private_imports() -> list[str]:
    """Imports of a private module from outside its package."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(("crowdwise", *path.relative_to(ROOT).with_suffix("").parts))
        home = (
            name.removesuffix(".__init__") if path.stem == "__init__" else name.rpartition(".")[0]
        )
        for node in ast.walk(ast.parse(path.read_text())):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            parts = (module or "").split(".")
            for k, part in enumerate(parts):
                owner = ".".join(parts[:k])
                private = part.startswith("_") and not part.startswith("__")
                if parts[0] == "crowdwise" and private and not f"{home}.".startswith(f"{owner}."):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno} {module}")
    return found


def count_any() -> int:
    """How often the word ``Any`` stands in the package."""
    return sum(len(re.findall(r"\bAny\b", path.read_text())) for path in ROOT.rglob("*.py"))


def main() -> None:
    verbose = "--files" in sys.argv
    print(f"{'walk':20} files functions changes nested ancestors")
    for name, (call, cls) in walks().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
            walk = trace(call, cls)
        counts = f"{len(walk.files):5} {walk.functions:9} {walk.changes:7} {len(walk.nested):6}"
        print(f"{name:20} {counts} {ancestors(cls):>9}")
        if verbose:
            print("    " + "\n    ".join(walk.files))
    from crowdwise import embed, learn

    for cls in (embed.RLL, embed.NeuCrowd, learn.ICED):
        print(f"{cls.__name__}: {len(inspect.signature(cls).parameters)} constructor parameters")
    lines = private_imports()
    print(f"private modules imported across packages: {len(lines)}", *lines, sep="\n    ")
    print(f"Any: {count_any():,}")


if __name__ == "__main__":
    main()
