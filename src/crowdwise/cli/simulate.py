"""Simulate a crowd with known truths, and write it to a folder.

crowdwise simulate -o crowd --tasks 300 --workers 11 --spammers 2 --classes 3
crowdwise simulate -o crowd --classes 2 --prior 0.8,0.2 --redundancy 5 --difficulty 0.5 --seed 1
crowdwise simulate syn1 -o syn1 --npz
crowdwise simulate classroom -o lessons --json
"""

import json
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from crowdwise.cli.numbers import amount, finite, natural, seed, whole
from crowdwise.cli.outcome import say
from crowdwise.errors import ParameterError, explain, plural
from crowdwise.typing import Json

if TYPE_CHECKING:
    from crowdwise.datasets import Crowd
    from crowdwise.simulate import Worker

POSITIVE = whole(1)

# Flags of a custom crowd: default, type and help.
CUSTOM: dict[str, tuple[Any, Callable[[str], float], str]] = {
    "tasks": (300, POSITIVE, "number of tasks"),
    "workers": (11, POSITIVE, "number of workers of all kinds together"),
    "classes": (2, POSITIVE, "number of classes"),
    "redundancy": (5, POSITIVE, "number of labels per task"),
    "spammers": (0, natural, "workers who label at random"),
    "adversaries": (0, natural, "workers who are wrong on purpose"),
    "colluders": (0, natural, "workers who copy the first worker"),
    "drifters": (0, natural, "workers who get worse over time"),
    "n_features": (10, natural, "number of features"),
    "difficulty": (0.0, amount, "spread of task difficulty; 0 for none"),
    "abstention": (0.0, amount, "probability that a worker skips a task"),
}


def flag(name: str) -> str:
    """Return the flag that sets a parameter."""
    return "--" + name.replace("_", "-")


def numbers(text: str) -> tuple[float, ...]:
    """Parse comma-separated numbers as a tuple."""
    try:
        return tuple(finite(part) for part in text.split(","))
    except ArgumentTypeError:
        raise ArgumentTypeError(f"{text!r} is not a list of numbers such as 0.7,0.2,0.1") from None


def add_arguments(parser: ArgumentParser) -> None:
    from crowdwise.simulate import SETS

    names = ", ".join(SETS)
    parser.add_argument("set", nargs="?", metavar="SET", help=f"{names}; default: a custom crowd")
    group = parser.add_argument_group("custom crowd")
    for name, (default, kind, text) in CUSTOM.items():
        label = "S" if name == "difficulty" else "P" if kind is amount else "N"
        words = f"{text} (default: {default})"
        group.add_argument(flag(name), type=kind, metavar=label, help=words)
    group.add_argument(
        "--prior", type=numbers, metavar="P,P,…", help="share of every class (default: equal)"
    )
    group.add_argument(
        "--accuracy",
        type=numbers,
        metavar="P,P",
        help="range of the good workers' accuracy (default: 0.7,0.95)",
    )
    group = parser.add_argument_group("randomness and output")
    group.add_argument(
        "--seed", type=seed, default=0, metavar="N", help="random seed (default: %(default)s)"
    )
    group.add_argument(
        "-o", "--output", metavar="FOLDER", required=True, help="folder for the files"
    )
    group.add_argument("--npz", action="store_true", help="write features as .npz instead of .csv")
    group.add_argument("--force", action="store_true", help="replace the files of an earlier run")
    group.add_argument("--json", action="store_true", help="print JSON, for programs")


def run(args: Namespace) -> int:
    from crowdwise.simulate import make, write_set

    given = [name for name in (*CUSTOM, "prior", "accuracy") if getattr(args, name) is not None]
    if args.set is not None and given:
        raise ParameterError(
            explain(
                f"{flag(given[0])} cannot be combined with {args.set!r}, whose crowd is fixed.",
                fix="leave out the flag, or the name of the set",
            )
        )
    made = make_custom(args) if args.set is None else make(args.set, random_state=args.seed)
    paths = [str(path) for path in write_set(made, args.output, npz=args.npz, replace=args.force)]
    if args.json:
        print(json.dumps({**facts(made), "seed": args.seed, "files": paths}, indent=1))
    else:
        print(*paths, sep="\n")
    for text in (str(made).strip("<>"), *made.info.warnings):
        say(args, text)
    return 0


def make_custom(args: Namespace) -> "Crowd":
    """Make the crowd that the flags describe."""
    from crowdwise.simulate import simulate_dataset

    wanted = {
        name: default if getattr(args, name) is None else getattr(args, name)
        for name, (default, _, _) in CUSTOM.items()
    }
    if wanted["redundancy"] > wanted["workers"]:
        raise ParameterError(
            explain(
                f"A task cannot get {wanted['redundancy']} labels from "
                f"{plural(wanted['workers'], 'worker')}.",
                fix="lower --redundancy, or raise --workers",
            )
        )
    return simulate_dataset(
        make_workers(wanted, args.accuracy or (0.7, 0.95)),
        wanted["tasks"],
        n_classes=wanted["classes"],
        prior=args.prior,
        per_task=wanted["redundancy"],
        n_features=wanted["n_features"],
        difficulty=wanted["difficulty"],
        abstention=wanted["abstention"],
        random_state=args.seed,
    )


def make_workers(wanted: dict[str, Any], accuracy: Any) -> "list[Worker]":
    """Make good workers first, then the others."""
    from crowdwise.simulate import Adversary, Colluder, Drifter, OneCoinWorker, Spammer

    kinds: dict[str, Worker] = {
        "spammers": Spammer(),
        "adversaries": Adversary(),
        "colluders": Colluder(leader=0),
        "drifters": Drifter(),
    }
    n_good = wanted["workers"] - sum(wanted[kind] for kind in kinds)
    if n_good < 1:
        raise ParameterError(
            explain(
                f"{wanted['workers'] - n_good} of {plural(wanted['workers'], 'worker')} "
                "would not be good workers.",
                expected="at least one good worker",
                fix="raise --workers, or lower the other kinds",
            )
        )
    others = [worker for kind, worker in kinds.items() for _ in range(wanted[kind])]
    return [*n_good * [OneCoinWorker(accuracy)], *others]


def facts(made: "Crowd") -> Json:
    """Return plain values that describe the simulated crowd."""
    from crowdwise.evaluate import fleiss_kappa

    crowd = made.extra["simulated"]
    classes = Counter(made.annotations.classes[crowd.truth].tolist())
    return {
        "name": made.name,
        **made.info.counts,
        "kinds": dict(Counter(crowd.kinds.tolist())),
        "tasks_of_class": {str(name): classes[name] for name in made.annotations.classes.tolist()},
        "fleiss_kappa": round(float(fleiss_kappa(made.annotations)), 4),
        "warnings": list(made.info.warnings),
    }
