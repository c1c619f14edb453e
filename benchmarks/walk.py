"""Count what a reader walks through: the files and functions behind one call.

python benchmarks/walk.py

Each walk is one call on a small crowd, traced: every function of the package that runs counts
once, and so does its file; a change of file is a call from one file into another, counted once
for each pair of functions. ``len()``, lambdas, comprehensions and what is only imported do not
count.

What lies behind a door is a walk of its own, and only the door counts. There are three kinds:

* another method, such as an aggregator inside a learner, or another model that a search fits (the
  call itself does not count either);
* an engine, which counts as its protocol, ``engine.py``, and any other file of
  ``inference/engines``;
* a search by held-out labels: for how strongly a learner is held back (``learn.search.Ladder``),
  or for whether ICED generates tasks (``learn.iced_rivals.Rivals``). Its own walk stands below
  that of the learner.

The column "nested" counts every file entered, those behind all doors included. Learners are
walked without such a search, their settings given, and as they are by default.

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
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import crowdwise
from crowdwise.base import Aggregator, Embedder, Learner
from crowdwise.inference.engines.sweeps import BlockSweeps
from crowdwise.learn.iced_rivals import Rivals
from crowdwise.learn.search import Ladder

ROOT = Path(crowdwise.__file__).parent
ENGINES = ROOT / "inference" / "engines"
METHODS = (Aggregator, Learner, Embedder)
SEARCHES = (Ladder, Rivals)
UNCOUNTED = (
    "<genexpr>",
    "<listcomp>",
    "<dictcomp>",
    "<setcomp>",
    "<lambda>",
    "<module>",
    "__len__",
)

# How many files each walk may have; a test keeps them.
MOST_FILES = {
    "CSV to Annotations": 12,
    "DawidSkene.fit": 10,
    "SpeeLFC.fit": 10,
    "LIA.fit": 10,
    "ICED.fit": 15,
    "RLL.fit": 12,
    "NeuCrowd.fit": 12,
}

Step = tuple[str, str]  # a file and a function in it


@dataclass
class Walk:
    """What one call went through."""

    entered: set[Step] = field(default_factory=set)
    edges: set[tuple[Step, Step]] = field(default_factory=set)

    @property
    def files(self) -> list[str]:
        """The files that it entered, within the package."""
        return sorted({str(Path(file).relative_to(ROOT)) for file, _ in self.entered})

    def enter(self, step: Step, caller: Step | None) -> None:
        self.entered.add(step)
        if caller is not None and caller[0] != step[0]:
            self.edges.add((caller, step))


@dataclass
class Walks:
    """The walk of a call, that of the search behind it, and of all that lies behind doors."""

    own: Walk = field(default_factory=Walk)
    search: Walk = field(default_factory=Walk)
    everything: Walk = field(default_factory=Walk)


def trace(call: Callable[[], Any], method: type | None) -> Walks:
    """Run a call and record the package's own functions that it entered."""
    walks = Walks()
    doors: list[tuple[FrameType, Walk | None]] = []  # calls under way, and the walks behind them

    def is_own(code: CodeType) -> bool:
        return code.co_filename.startswith(str(ROOT)) and code.co_name not in UNCOUNTED

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "return" and doors and doors[-1][0] is frame:
            doors.pop()
        if event != "call" or not is_own(frame.f_code):
            return
        me, walk = frame.f_locals.get("self"), doors[-1][1] if doors else walks.own
        caller = frame.f_back
        while caller is not None and not is_own(caller.f_code):
            caller = caller.f_back
        step, before = place(frame), None if caller is None else place(caller)
        walks.everything.enter((frame.f_code.co_filename, step[1]), before)
        if walk is None:
            return
        again = walk is walks.search and frame.f_code.co_name == "fit"
        if isinstance(me, METHODS) and (again or type(me) is not method):
            doors.append((frame, None))
            return
        walk.enter(step, before)
        if frame.f_code.co_filename.startswith(str(ENGINES)):
            doors.append((frame, None))
        elif isinstance(me, SEARCHES) and walk is walks.own:
            walks.search.enter(step, before)
            doors.append((frame, walks.search))

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return walks


def place(frame: FrameType) -> Step:
    """Where a reader finds a function: that of an engine in the protocol."""
    if isinstance(frame.f_locals.get("self"), BlockSweeps):
        return str(ENGINES / "engine.py"), frame.f_code.co_name
    return frame.f_code.co_filename, frame.f_code.co_qualname


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
            if module is learn:
                found[f"{name}.fit, default"] = (fit(cls(random_state=0), X, votes), cls)
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


def show(name: str, walk: Walk, nested: Walk | None = None, cls: type | None = None) -> None:
    """One line of the table; with ``--files``, the files below it."""
    behind = "" if nested is None else len(nested.files)
    counts = f"{len(walk.files):5} {len(walk.entered):9} {len(walk.edges):7} {behind:>6}"
    print(f"{name:22} {counts} {ancestors(cls):>9}")
    if "--files" in sys.argv:
        print("    " + "\n    ".join(walk.files))


def follow(call: Callable[[], Any], method: type | None) -> Walks:
    """The walks of a call, once all that it imports is there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()
        return trace(call, method)


def main() -> None:
    print(f"{'walk':22} files functions changes nested ancestors")
    for name, (call, cls) in walks().items():
        found = follow(call, cls)
        show(name, found.own, found.everything, cls)
        if found.search.entered:
            show("  the search behind it", found.search)
    from crowdwise import embed, learn

    for cls in (embed.RLL, embed.NeuCrowd, learn.ICED):
        print(f"{cls.__name__}: {len(inspect.signature(cls).parameters)} constructor parameters")
    lines = private_imports()
    print(f"private modules imported across packages: {len(lines)}", *lines, sep="\n    ")
    print(f"Any: {count_any():,}")


if __name__ == "__main__":
    main()
