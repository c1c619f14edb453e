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
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import cache_from_source
from pathlib import Path

import pytest

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
    "cli": ["bench/test_harness.py"],
    "annotations": ["io", "aggregate", "evaluate"],
    "base": ["aggregate", "laws", "learn"],
    "inference": ["aggregate", "base", "laws/test_laws.py"],
    "nets": ["learn", "laws/test_learner_laws.py", "embed"],
    "aggregate": ["laws/test_laws.py"],
    "learn": ["laws/test_learner_laws.py"],
    "embed": ["laws/test_embedder_laws.py"],
    "laws": ["laws"],
    "plot": ["report"],
    "report": ["cli/test_report.py"],
    "persist": ["learn", "laws"],
    "io": ["cli", "datasets", "promises"],
}
BROKEN: set[str] = set()  # tests that fail on the code as it is
SOUND: set[str] = set()  # and some that pass
NO_TESTS = 5  # pytest's status
LARGE = ("matplotlib", "pandas", "polars", "scipy.stats", "sklearn.pipeline", "torch")
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
    parser.add_argument("--skip", type=int, default=0, help="leave out the first few, to resume")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in LARGE:
        import_module(name)
    survivors = 0
    mutants = choose(args.number, args.seed, args.only)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "crowdwise"
        if not args.list:
            shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns(".*", "build", "site"))
            status, out = run_tests(place, ["tests/test_import.py"], args.timeout)
            if status != 0:
                raise SystemExit(f"The tests do not even run without a mutant:\n{out}")
        for number, mutant in enumerate(mutants[args.skip :], start=args.skip + 1):
            outcome = "" if args.list else judge(mutant, place, args.timeout)
            survivors += outcome == "SURVIVED"
            print(f"{number:3d} {mutant}  {outcome}", flush=True)
    if not args.list:
        n = len(mutants) - args.skip
        print(f"{n - survivors} of {n} caught (seed {args.seed})")


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
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield "return None"
        case ast.Expr(value=ast.Call()):
            yield "pass"


def judge(mutant: Mutant, place: Path, timeout: int) -> str:
    """Caught, by which test; or SURVIVED. Tests that fail on the code as it is do not count."""
    for tests in tests_of(mutant.file):
        while True:
            write(place / mutant.file, mutant.text())
            status, out = run_tests(place, tests, timeout)
            write(place / mutant.file, (ROOT / mutant.file).read_text(encoding="utf-8"))
            found = FAILED.search(out)
            if status in (0, NO_TESTS):
                break
            if status is None:
                return "caught: timeout"
            if found is None:  # nothing could even be collected
                return "caught: " + (out.strip().splitlines() or ["no output"])[-1]
            if found[1] in SOUND or run_tests(place, [found[1]], timeout)[0] == 0:
                SOUND.add(found[1])
                return f"caught: {found[1]}"
            BROKEN.add(found[1])
    return "SURVIVED"


def write(file: Path, text: str) -> None:
    """Change a module, and forget what it was compiled to."""
    file.write_text(text, encoding="utf-8")
    Path(cache_from_source(str(file))).unlink(missing_ok=True)


def tests_of(file: Path) -> list[list[str]]:
    """The tests of a module: doctests and the files that name it, then all of its package."""
    inside = file.relative_to(PACKAGE)
    package = inside.parts[0]
    near = [f"tests/{inside.parent}/test_{inside.name}", *naming(inside)]
    far = [f"tests/{package}", *(f"tests/{other}" for other in ALSO.get(package, []))]
    if len(inside.parts) == 1:
        far = ["tests/test_import.py", "tests/io", "tests/cli"]
    far += ["tests/test_defaults.py"]
    return [
        [name for name in dict.fromkeys(stage) if (ROOT / name).exists()]
        for stage in ([str(file), *near], far)
    ]


def naming(inside: Path) -> list[str]:
    """The files of tests that import a module of the package, by its own name."""
    parts = ["crowdwise", *inside.with_suffix("").parts]
    last = rf"from {'.'.join(parts[:-1])} import [^\n]*\b{parts[-1]}\b"
    name = re.compile(rf"\b{'.'.join(parts)}\b|{last}")
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(one.relative_to(ROOT)) for one in files if name.search(one.read_text("utf-8"))]


def run_tests(place: Path, tests: list[str], timeout: int) -> tuple[int | None, str]:
    """Status and output of the test runner, stopped at the first failure; None for too long.

    It runs in a fork of this process, where what takes long to import is there already.
    """
    words = ["-x", "-q", "-p", "no:cacheprovider", *tests]
    words += [f"--deselect={test}" for test in sorted(BROKEN - {*tests})]
    with tempfile.TemporaryFile("w+") as out:
        child = os.fork()
        if child == 0:
            os.setsid()
            for stream in (1, 2):
                os.dup2(out.fileno(), stream)
            os.chdir(place)
            os.environ["PYTHONPATH"] = sys.path[0] = str(place / "src")
            status = 1
            try:
                status = pytest.main(words)
            finally:  # whatever happens, do not go on as a second parent
                sys.stdout.flush()
                os._exit(status)
        status = wait_for(child, timeout)
        out.seek(0)
        return status, out.read()


def wait_for(child: int, timeout: int) -> int | None:
    """The status of a process, or None if it had to be ended."""
    for _ in range(10 * timeout):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.1)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


if __name__ == "__main__":
    main()
