"""Plan which tasks to label next, by whom, and say which are done.

crowdwise plan votes.csv --budget 500 -o next.csv
crowdwise plan votes.csv --target .95
crowdwise plan votes.csv --budget 50 --available ann,bob,judge=0.05 --gold-file truth.csv
"""

import time
from argparse import ArgumentParser, Namespace
from math import inf, isnan
from typing import TYPE_CHECKING, Any

from crowdwise.cli.options import (
    DEFAULT,
    add_input_options,
    add_method_options,
    choose_method,
    read_input,
)
from crowdwise.cli.outcome import say
from crowdwise.cli.tables import add_output_options, align, number, write_table
from crowdwise.errors import ParameterError, explain, plural

if TYPE_CHECKING:
    import pandas as pd

    from crowdwise.plan import Planner

MOST_ROWS = 20  # on a terminal
POLICIES = ("InformationGain", "AccuracyGain", "LeastConfident", "FewestLabels", "RandomTasks")


def add_arguments(parser: ArgumentParser) -> None:
    add_input_options(parser)
    add_method_options(parser)
    add_output_options(parser, aligned=True)
    group = parser.add_argument_group("planning")
    text = "list the labels to ask for next, for this money; without it, which tasks are done"
    group.add_argument("--budget", type=float, metavar="X", help=text)
    text = "share of labels that should be right (default: %(default)s)"
    group.add_argument("--target", type=float, default=0.95, metavar="P", help=text)
    text = "how much a label is worth (default: %(default)s)"
    group.add_argument("--policy", choices=POLICIES, default=POLICIES[0], help=text)
    text = "what a label costs (default: %(default)s)"
    group.add_argument("--cost", type=float, default=1.0, metavar="X", help=text)
    text = (
        "workers who are there, and what a label by them costs where that is not --cost, such "
        "as ann,bob,judge=0.05 (default: anyone may come)"
    )
    group.add_argument("--available", metavar="A,B=X,…", help=text)
    text = (
        "share of the budget for tasks whose truth is known (default: they are labeled as others)"
    )
    group.add_argument("--checks", type=float, metavar="P", help=text)


def run(args: Namespace) -> int:
    from crowdwise import plan

    for name in ("budget", "cost"):
        refuse_outside(name, getattr(args, name), float("inf"), "0 or more")
    for name in ("target", "checks"):
        refuse_outside(name, getattr(args, name), 1.0, "a number from 0 to 1")
    model = None if args.method == DEFAULT and not args.set else choose_method(args)
    policy: Any = getattr(plan, args.policy)
    policy = policy(args.seed) if policy is plan.RandomTasks else policy()
    annotations = read_input(args)
    prices = find_workers(args.available or "", args.cost, annotations)
    planner = plan.Planner(
        model, policy=policy, cost=prices or args.cost, target=args.target, checks=args.checks
    )
    start = time.perf_counter()
    gold = annotations.gold_labels
    if args.budget is None:
        planner.look(annotations, gold)
        write_table(list_done(planner), args, show)
    else:
        found = planner.next(annotations, args.budget, available=list(prices) or None, gold=gold)
        write_table(found, args, show)
    say(args, f"{summarize(planner)} ({time.perf_counter() - start:.1f} s)")
    return 0


def refuse_outside(name: str, value: float | None, most: float, expected: str) -> None:
    """Refuse a number out of its range, infinity, or what is no number."""
    if value is not None and not (0 <= value <= most and value < float("inf")):
        raise ParameterError(
            explain(
                f"--{name} {value} cannot be used.",
                expected=expected,
                fix="leave it out, or give another number",
            )
        )


def find_workers(text: str, usual: float, annotations: Any) -> dict[Any, float]:
    """The names in a list, as the annotations have them, and their costs; others are new."""
    known, prices = {str(name): name for name in annotations.workers.tolist()}, {}
    for word in filter(None, map(str.strip, text.split(","))):
        name, mark, price = word.rpartition("=")
        if not mark or word in known:
            prices[known.get(word, word)] = usual
            continue
        try:
            cost = float(price)
        except ValueError:
            cost = float("nan")
        refuse_outside(f"available: the cost of {name}", cost, float("inf"), "0 or more")
        prices[known.get(name, name)] = cost
    return prices


def list_done(planner: "Planner") -> "pd.DataFrame":
    """Every task: its labels so far, how sure its answer is, and whether it is done."""
    import pandas as pd

    outlook, promise = planner.outlook_, planner.done()
    table = pd.DataFrame({"task": outlook.votes.tasks, "labels": outlook.n_labels})
    table["confidence"] = outlook.posterior.max(axis=1)
    return table.assign(done=table["task"].isin(promise.tasks.index))


def show(table: "pd.DataFrame") -> str:
    """The first rows, with numbers rounded."""
    rows = [list(map(str, table.columns))]
    for _, row in table.head(MOST_ROWS).iterrows():
        rows.append([number(x, 3) if isinstance(x, float) else str(x) for x in row])
    text = align(rows, right=set(range(1, len(rows[0]))))
    left = len(table) - MOST_ROWS
    return text if left <= 0 else f"{text}\n… and {left:,} more; -o FILE writes all of them"


def summarize(planner: "Planner") -> str:
    """How many tasks are done, and what is promised or expected of them."""
    from crowdwise.plan import truths_needed

    promise, n_tasks = planner.done(), planner.outlook_.votes.n_tasks
    n_known, target = int(planner.outlook_.known.sum()), f"{planner.target:.1%}"
    done = f"{len(promise.tasks):,} of {plural(n_tasks, 'task')} done"
    if promise.checked and isnan(promise.low):
        return (
            f"{done}, those with known truths: these do not show that {target} of the labels of any"
            " others are right; buy more labels, or ask for less with --target"
        )
    if promise.checked:
        return (
            f"{done}: {promise.accuracy:.1%} of their labels are expected to be right, and at "
            f"least {promise.low:.1%} are, by {plural(promise.n_gold, 'known truth')}"
        )
    if not isnan(promise.accuracy):
        done += f": {promise.accuracy:.1%} of their labels are expected to be right"
    needed = truths_needed(planner.target)
    if needed == inf:
        return f"{done}. Nothing can show that {target} are right; ask for less with --target"
    return (
        f"{done}. Labels alone promise nothing: for {target}, give the truths of {needed:,} tasks "
        f"drawn at random (--gold-file); {n_known:,} are known"
    )
