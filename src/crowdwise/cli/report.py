"""Write a page about your annotations, to read and to share.

crowdwise report votes.csv -o report.html
crowdwise report votes.csv --truth truth.csv --features X.npz -o report.html
crowdwise report votes.csv --method IBCC --title "Spring campaign" -o spring.html
crowdwise report votes.csv --json > facts.json
"""

import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from crowdwise.cli.files import refuse_overwriting
from crowdwise.cli.options import (
    add_feature_options,
    add_input_options,
    add_method_options,
    choose_method,
    read_features_of,
    read_input,
)
from crowdwise.cli.outcome import say

DEFAULT, UNTITLED = "report.html", "Crowd labels"


def add_arguments(parser: ArgumentParser) -> None:
    add_input_options(parser)
    add_feature_options(parser)
    add_method_options(parser)
    group = parser.add_argument_group("writing")
    group.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"write the page here; - for standard output (default: {DEFAULT})",
    )
    group.add_argument("--json", action="store_true", help="print the numbers as JSON")
    group.add_argument("--title", metavar="TEXT", help="heading (default: the name of the file)")
    group.add_argument("--truth", metavar="FILE", help="table of tasks and true labels, for scores")


def run(args: Namespace) -> int:
    from crowdwise.io.atomic import refuse_unwritable
    from crowdwise.io.gold import add_gold_file
    from crowdwise.report import gather, to_html, to_json
    from crowdwise.report.write import refuse_other_pages, save_facts

    path = args.output = args.output or ("-" if args.json else DEFAULT)
    refuse_overwriting(args)  # now that the output has a name
    if path != "-":
        refuse_other_pages(path)  # before the long work starts
        refuse_unwritable(path)
    method = choose_method(args)
    annotations = read_input(args)
    if args.truth is not None:
        annotations = add_gold_file(annotations, args.truth)
    X = None if args.features is None else read_features_of(args, annotations)
    start = time.perf_counter()
    facts = gather(
        annotations,
        X=X,
        method=method,
        title=args.title or (Path(args.annotations).stem if args.annotations != "-" else UNTITLED),
        random_state=args.seed or 0,
    )
    if args.json or path == "-":
        print(to_json(facts) if args.json else to_html(facts))
    if path != "-":
        save_facts(facts, path)
        for finding in facts.findings:
            say(args, f"- {finding.text}")
        say(args, f"written in {time.perf_counter() - start:.1f} s: {path}")
    return 0
