"""Read random exports of every tool, with junk mixed in: no traceback, and no record unaccounted.

Each file is read as what it is recognized for, and as one format by name, each in its turn.

python benchmarks/fuzz_exports.py --files 10000
"""

import argparse
import sys
from collections import Counter

from exports import WRITERS, check, draw_export, read_as
from exports.check import read_one
from results_files import provenance, save, table

from crowdwise import CrowdwiseError
from crowdwise.io.formats import FORMATS

TITLE = "Random exports, read with every record accounted for"
NAMES = [form.name for form in FORMATS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first file")
    parser.add_argument("--every-format", action="store_true", help="read each file as all formats")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results")
    args = parser.parse_args()
    seen: dict[str, Counter[str]] = {tool: Counter() for tool in sorted(WRITERS)}
    for seed in range(args.first, args.first + args.files):
        export = draw_export(WRITERS, seed)
        turn = NAMES if args.every_format else [NAMES[seed % len(NAMES)]]
        wrong = check(export) or read_as(export, *turn)
        count = seen.setdefault(export.tool, Counter())
        count["files"] += 1
        count["failures"] += bool(wrong)
        if wrong:
            sys.stdout.write(f"seed {seed}, {export.tool}, {export.name}: {wrong[:1000]}\n")
        else:
            count["refused"] += isinstance(read_one(export), CrowdwiseError)
            count["records"] += export.records or 0
    report(seen, args)


def report(seen: dict[str, Counter[str]], args: argparse.Namespace) -> None:
    """Print the counts of each tool, and save them if asked."""
    known = {tool: count for tool, count in seen.items() if count["files"]}
    known["all"] = sum(known.values(), Counter())
    columns = ("files", "records", "refused", "failures")
    rows = [[tool, *(f"{count[name]:,}" for name in columns)] for tool, count in known.items()]
    text = table(["export", *columns], rows)
    sys.stdout.write(text + "\n")
    if args.save:
        command = "python " + " ".join(["benchmarks/fuzz_exports.py", *sys.argv[1:]])
        data = [{"export": tool, **count} for tool, count in known.items()]
        save("fuzz-exports", provenance(command), data, f"# {TITLE}\n\n{text}")
    if known["all"]["failures"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
