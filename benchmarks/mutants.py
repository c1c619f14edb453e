"""Lines that no test notices: break code at random, one line at a time, and run its tests.

A mutant is the package with one expression changed: a comparison reversed, a minus for a plus, a
number one higher, a ``not`` dropped, a call left out, None returned. The tests of its package run
in a copy of the repository until one fails. If one does, and passes on the code as it is, the
mutant is caught. Survivors are printed with their line: some change nothing that can be observed,
the others call for a test.

python benchmarks/mutants.py [--number 50] [--seed 0] [--only aggregate]
"""

import argparse
import ast
import copy
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/crowdwise")
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
# Where code is used by other packages, their tests count as its own.
ALSO = {
    "annotations": ["io", "aggregate", "evaluate"],
    "base": ["aggregate", "laws", "learn"],
    "inference": ["aggregate", "laws/test_laws.py"],
    "nets": ["learn", "laws/test_learner_laws.py", "embed"],
    "aggregate": ["laws/test_laws.py"],
    "learn": ["laws/test_learner_laws.py"],
    "embed": ["laws/test_embedder_laws.py"],
    "laws": ["laws"],
    "plot": ["report"],
    "report": ["cli/test_report.py"],
    "persist": ["learn", "laws"],
    "io": ["cli", "datasets"],
}
BROKEN: set[str] = set()  # tests that fail on the code as it is
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """One change: where, from what and to what."""

    file: Path  # from the root of the repository
    line: int
    start: int  # in the file's text
    stop: int
    new: str

    def text(self) -> str:
        source = (ROOT / self.file).read_text(encoding="utf-8")
        return source[: self.start] + self.new + source[self.stop :]

    def __str__(self) -> str:
        source = (ROOT / self.file).read_text(encoding="utf-8")
        old = " ".join(source[self.start : self.stop].split())
        return f"{self.file}:{self.line}: {old}  ->  {self.new}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--number", type=int, default=50, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="which mutants")
    parser.add_argument("--only", default="", help="a package or file under src/crowdwise")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for a mutant's tests")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    args = parser.parse_args()
    survivors = 0
    mutants = choose(args.number, args.seed, args.only)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "crowdwise"
        if not args.list:
            shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns(".*", "build", "site"))
        for number, mutant in enumerate(mutants, start=1):
            outcome = "" if args.list else judge(mutant, place, args.timeout)
            survivors += outcome == "SURVIVED"
            print(f"{number:3d} {mutant}  {outcome}", flush=True)
    if not args.list:
        print(f"{len(mutants) - survivors} of {len(mutants)} caught (seed {args.seed})")


def choose(number: int, seed: int, only: str) -> list[Mutant]:
    """Random lines of code, each with one of the changes that it can have."""
    by_line: dict[tuple[Path, int], list[Mutant]] = defaultdict(list)
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        file = path.relative_to(ROOT)
        if only in str(file):
            for mutant in find_mutants(file, path.read_text(encoding="utf-8")):
                by_line[file, mutant.line].append(mutant)
    draw = random.Random(seed)
    lines = draw.sample(sorted(by_line), min(number, len(by_line)))
    return [draw.choice(by_line[line]) for line in lines]


def find_mutants(file: Path, source: str) -> Iterator[Mutant]:
    """Every change to a file that this script knows how to make."""
    offsets = [0]
    for line in source.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    lines = source.splitlines()

    def position(line: int, column: int) -> int:  # ast counts in bytes
        return offsets[line - 1] + len(lines[line - 1].encode()[:column].decode())

    for node in walk_code(ast.parse(source)):
        for changed in changes(node):
            start = position(node.lineno, node.col_offset)
            stop = position(node.end_lineno, node.end_col_offset)
            yield Mutant(file, node.lineno, start, stop, changed)


def walk_code(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Expressions and statements that run: no annotations, docstrings or parts of f-strings."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, (ast.expr, ast.stmt)):
                yield child
            yield from walk_code(child)


def changes(node: ast.expr | ast.stmt) -> Iterator[str]:
    """What could stand in place of a node, and be wrong."""
    new = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[op]) if type(op) in SWAPS:
            new.ops = [SWAPS[type(op)]()]
            yield f"({ast.unparse(new)})"
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in SWAPS:
            new.op = SWAPS[type(op)]()
            yield f"({ast.unparse(new)})"
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield f"({ast.unparse(new.operand)})"
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield repr(value + 1)
        case ast.Return(value=ast.expr()):
            yield "return None"
        case ast.Expr(value=ast.Call()):
            yield "pass"


def judge(mutant: Mutant, place: Path, timeout: int) -> str:
    """Caught, by which test; or SURVIVED. Tests that fail on the code as it is do not count."""
    file = place / mutant.file
    original = file.read_text(encoding="utf-8")
    while True:
        file.write_text(mutant.text(), encoding="utf-8")
        try:
            status, out = run_tests(place, tests_of(mutant.file), timeout)
        finally:
            file.write_text(original, encoding="utf-8")
        found = FAILED.search(out)
        if status == 0:
            return "SURVIVED"
        if status is None:
            return "caught: timeout"
        if found is None:  # nothing could even be collected
            return "caught: " + (out.strip().splitlines() or ["no output"])[-1]
        if run_tests(place, [found[1]], timeout)[0] == 0:
            return f"caught: {found[1]}"
        BROKEN.add(found[1])


def tests_of(file: Path) -> list[str]:
    """The tests of a module, the nearest first, and its doctests."""
    inside = file.relative_to(PACKAGE)
    package = inside.parts[0]
    folders = [f"tests/{inside.parent}/test_{inside.name}", f"tests/{inside.parent}"]
    folders += [f"tests/{package}"] + [f"tests/{other}" for other in ALSO.get(package, [])]
    if len(inside.parts) == 1:
        folders += ["tests/test_import.py", "tests/io", "tests/cli"]
    return [str(file), *(name for name in dict.fromkeys(folders) if (ROOT / name).exists())]


def run_tests(place: Path, tests: list[str], timeout: int) -> tuple[int | None, str]:
    """Status and output of the test runner, stopped at the first failure; None for too long."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    command += [f"--deselect={test}" for test in sorted(BROKEN - {*tests})]
    paths = {"PYTHONPATH": str(place / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=place,
            env={**os.environ, **paths, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout


if __name__ == "__main__":
    main()
