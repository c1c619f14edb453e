"""List, describe and fetch real crowds.

crowdwise datasets list
crowdwise datasets info labelme
crowdwise datasets fetch labelme
crowdwise datasets where
"""

import json
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from crowdwise.cli import common_options
from crowdwise.cli.tables import align

if TYPE_CHECKING:
    from crowdwise.datasets import Info

COUNTS = ("tasks", "workers", "annotations", "classes", "truths", "features")


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(name: str, text: str) -> ArgumentParser:
        return actions.add_parser(name, help=text, description=text, parents=[common_options()])

    every = action("list", "list every dataset with its size and license")
    every.add_argument("--json", action="store_true", help="print JSON, for programs")
    about = action("info", "a dataset's contents, pitfalls and citation")
    about.add_argument("name", metavar="NAME")
    about.add_argument("--files", action="store_true", help="list every file with its sha256")
    fetch = action("fetch", "fetch datasets into the cache; print the paths of their files")
    fetch.add_argument("names", metavar="NAME", nargs="+")
    fetch.add_argument("--variant", help="which variant to fetch, if files differ")
    where = action("where", "the cache folder, or the paths of a dataset's files")
    where.add_argument("name", metavar="NAME", nargs="?")


def run(args: Namespace) -> int:
    from crowdwise import datasets

    if args.action == "list":
        sets = [datasets.info(name) for name in datasets.names()]
        print(
            json.dumps([facts(about) for about in sets], indent=1) if args.json else show_list(sets)
        )
    elif args.action == "info":
        print(describe(datasets.info(args.name), files=args.files))
    elif args.action == "fetch":
        for name in args.names:
            paths = datasets.fetch(name, variant=args.variant)
            print(*paths.values(), sep="\n")
    elif args.name is None:
        print(datasets.cache_folder())
    else:
        for file, path in datasets.where(args.name).items():
            print(path, file, "fetched" if path.exists() else "missing", sep="\t")
    return 0


def facts(about: "Info") -> dict[str, object]:
    """Return a line of the list as plain values."""
    return {
        "name": about.name,
        "title": about.title,
        **about.counts,
        "bytes": about.size,
        "license": about.license,
    }


def show_list(sets: "list[Info]") -> str:
    """Show one line per dataset; a dash where there is nothing to count."""
    rows = [["name", *COUNTS[:5], "megabytes", "license"]]
    for about in sets:
        license = about.license.partition(" (")[0]
        if not about.license_stated and not license.startswith("not stated"):
            license = "not stated for all of it"
        counts = [f"{about.counts[key]:,}" if key in about.counts else "-" for key in COUNTS[:5]]
        rows.append([about.name, *counts, f"{about.size / 1e6:.1f}", license])
    return align(rows, right=set(range(1, 7)))


def describe(about: "Info", *, files: bool) -> str:
    """Show everything the registry says about a dataset."""
    counts = [f"{about.counts[key]:,} {key}" for key in COUNTS if key in about.counts]
    lines = [about.title, "", about.about, ", ".join(counts), ""]
    facts = {"license": about.license, "features": about.features, "home": about.home}
    lines += [f"{name}: {text}" for name, text in facts.items() if text]
    for name, choices in (("truth", about.truths), ("variant", about.variants)):
        if choices:
            lines += ["", f"{name} (the first is the default):"]
            lines += [f"  {choice}: {meaning}" for choice, meaning in choices.items()]
    for name, texts in (("note", about.warnings), ("cite", about.citation)):
        if texts:
            lines += ["", f"{name}:", *(f"  - {text}" for text in texts)]
    lines += ["", f"files: {len(about.files)}, {about.size:,} bytes"]
    if files:
        lines += [f"  {f.url}  {f.size:,} bytes  sha256 {f.sha256}" for f in about.files]
    return "\n".join(lines)
