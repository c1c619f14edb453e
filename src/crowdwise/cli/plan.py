"""Plan which tasks to label next and by whom, and show which are done.

crowdwise plan votes.csv --budget 500 -o next.csv
crowdwise plan votes.csv --target .95
crowdwise plan votes.csv --budget 50 --available ann,bob,judge=0.05 --gold-file truth.csv
"""

import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from math import inf, isnan
from typing import TYPE_CHECKING, Any

from crowdwise.cli.numbers import amount, share
from crowdwise.cli.options import (
    DEFAULT,
    add_input_options,
    add_method_options,
    choose_method,
    read_input,
)
from crowdwise.cli.outcome import say
from crowdwise.cli.tables import add_output_options, align, number, write_table
from crowdwise.errors import ParameterError, explain, listing, plural

if TYPE_CHECKING:
    import pandas as pd

    from crowdwise.annotations import Annotations
    from crowdwise.plan import Planner

MOST_ROWS = 20  # on a terminal
POLICIES = ("InformationGain", "AccuracyGain", "LeastConfident", "FewestLabels", "RandomTasks")


def add_arguments(parser: ArgumentParser) -> None:
    add_input_options(parser)
    add_method_options(parser)
    add_output_options(parser, aligned=True)
    group = parser.add_argument_group("planning")
    text = "list the labels to buy next with this amount; without it, list which tasks are done"
    group.add_argument("--budget", type=amount, metavar="X", help=text)
    text = "share of labels that should be right (default: %(default)s)"
    group.add_argument("--target", type=share, default=0.95, metavar="P", help=text)
    text = "how to value a label (default: %(default)s)"
    group.add_argument("--policy", choices=POLICIES, default=POLICIES[0], help=text)
    text = "what a label costs (default: %(default)s)"
    group.add_argument("--cost", type=amount, default=1.0, metavar="X", help=text)
    text = (
        "workers who are available, with the cost of a label by each if it is neither a price in "
        "--workers nor --cost, such as ann,bob,judge=0.05 (default: anyone)"
    )
    group.add_argument("--available", metavar="A,B=X,…", help=text)
    text = (
        "share of the budget for tasks with known truths (default: they are labeled like the rest)"
    )
    group.add_argument("--checks", type=share, metavar="P", help=text)


def run(args: Namespace) -> int:
    from crowdwise import plan

    model = None if args.method == DEFAULT and not args.set else choose_method(args)
    policy: Any = getattr(plan, args.policy)
    policy = policy(args.seed) if policy is plan.RandomTasks else policy()
    annotations = read_input(args)
    known = {str(name): name for name in annotations.workers.tolist()}
    given = find_prices(annotations)
    prices = {} if args.available is None else find_workers(args.available, args.cost, known, given)
    if args.available is None and given:
        say(args, "prices count for workers who are named with --available")
    if new := [str(name) for name in prices if name not in known.values()]:
        say(args, f"available, and new: {listing(new)}")
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


def find_prices(annotations: "Annotations") -> dict[Any, str]:
    """Return the prices in the table of workers, as they are written."""
    about = annotations.about_workers
    if about is None or "price" not in about:
        return {}
    return {name: str(price) for name, price in about["price"].dropna().items()}


def find_workers(
    text: str, usual: float, known: dict[str, Any], given: dict[Any, str]
) -> dict[Any, float]:
    """Return the listed workers, as the annotations have them, with their costs."""
    prices: dict[Any, float] = {}
    for word in filter(None, map(str.strip, text.split(","))):
        name, mark, price = word.rpartition("=")
        if not mark or word in known:
            own = given.get(known.get(word, word))
            name, cost = word, usual if own is None else read_cost(word, own, "--workers")
        else:
            cost = read_cost(name, price, "--available")
        if known.get(name, name) in prices:
            what = f"--available names {name} twice."
            raise ParameterError(explain(what, fix="name every worker once"))
        prices[known.get(name, name)] = cost
    if not prices:
        fix = "leave it out, if anyone may come"
        raise ParameterError(explain("--available names no worker.", fix=fix))
    return prices


def read_cost(name: str, text: str, flag: str) -> float:
    """Parse the price of a label by a worker."""
    try:
        return amount(text)
    except ArgumentTypeError as error:
        what = f"{flag}: the cost of {name or 'nobody'}, {error}."
        fix = "write it as in ann,bob,judge=0.05" if flag == "--available" else "such as 0.05"
        raise ParameterError(explain(what, fix=fix)) from None


def list_done(planner: "Planner") -> "pd.DataFrame":
    """List every task: its labels so far, its confidence, and whether it is done."""
    import pandas as pd

    outlook, promise = planner.outlook_, planner.done()
    table = pd.DataFrame({"task": outlook.votes.tasks, "labels": outlook.n_labels})
    table["confidence"] = outlook.posterior.max(axis=1)
    return table.assign(done=table["task"].isin(promise.tasks.index))


def show(table: "pd.DataFrame") -> str:
    """Show the first rows, with numbers rounded."""
    rows = [list(map(str, table.columns))]
    for _, row in table.head(MOST_ROWS).iterrows():
        rows.append([number(x, 3) if isinstance(x, float) else str(x) for x in row])
    text = align(rows, right=set(range(1, len(rows[0]))))
    left = len(table) - MOST_ROWS
    return text if left <= 0 else f"{text}\n… and {left:,} more; -o FILE writes all of them"


def summarize(planner: "Planner") -> str:
    """Summarize how many tasks are done, and what is promised or expected of them."""
    from crowdwise.plan import MOST_TRUTHS, truths_needed

    promise, n_tasks = planner.done(), planner.outlook_.votes.n_tasks
    n_known, target = int(planner.outlook_.known.sum()), f"{planner.target:.1%}"
    done = f"{len(promise.tasks):,} of {plural(n_tasks, 'task')} done"
    if promise.checked and isnan(promise.low):
        return (
            f"{done}, those with known truths: these do not show that {target} of the labels of any"
            " others are right; buy more labels, or lower --target"
        )
    if promise.checked:
        return (
            f"{done}: {promise.accuracy:.1%} of their labels are expected to be right, and at "
            f"least {promise.low:.1%} are, by {plural(promise.n_gold, 'known truth')}"
        )
    if not isnan(promise.accuracy):
        done += f": {promise.accuracy:.1%} of their labels are expected to be right"
    needed = truths_needed(planner.target, n_tasks)
    if truths_needed(planner.target) == inf:
        return f"{done}. No data can show that {target} are right; lower --target"
    if needed > MOST_TRUTHS * n_tasks:
        return (
            f"{done}. Nothing can be promised: {plural(n_tasks, 'task')} are too few to show that "
            f"{target} of their labels are right; lower --target, or add tasks"
        )
    return (
        f"{done}. Labels alone promise nothing: for {target}, give the truths of "
        f"{plural(int(needed), 'task')} drawn at random (--gold-file); {n_known:,} are known"
    )
