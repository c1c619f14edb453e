"""Pull labels from a labeling tool, and push consensus and overlap to it.

crowdwise connect label-studio pull --url http://localhost:8080 --project 1 -o votes.jsonl
crowdwise connect label-studio push --url http://localhost:8080 --project 1
crowdwise connect label-studio overlap --url http://localhost:8080 --project 1 --target .95
crowdwise connect label-studio serve --url http://localhost:8080 --project 1 --port 9090
"""

import os
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from crowdwise.cli.files import refuse_screen
from crowdwise.cli.numbers import count, natural, port, share
from crowdwise.cli.outcome import say
from crowdwise.errors import FileError, ParameterError, explain, plural

if TYPE_CHECKING:
    from crowdwise.connect import LabelStudio, Overlap

TOKEN = "LABEL_STUDIO_TOKEN"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
LONGEST = 10_000  # characters of a token
ACTIONS = ("pull", "push", "overlap", "serve")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("tool", choices=("label-studio",), help="the labeling tool")
    text = "pull: write annotations to a file; push: add consensus labels as predictions; "
    text += "overlap: open uncertain tasks for one more label and close the others; "
    text += "serve: do that after every annotation, as an ML backend"
    parser.add_argument("action", choices=ACTIONS, help=text)
    group = parser.add_argument_group(
        "project", f"The personal access token is read from ${TOKEN}, or a file."
    )
    group.add_argument("--url", required=True, metavar="URL", help="address of the server")
    group.add_argument(
        "--project", required=True, type=natural, metavar="N", help="number of the project"
    )
    group.add_argument("--token-file", metavar="FILE", help="file with the token")
    text = "control of the labeling interface, if it has several"
    group.add_argument("--question", metavar="NAME", help=text)
    group = parser.add_argument_group("pull and push")
    text = "JSON lines file to pull to, readable by every command (default: %(default)s)"
    group.add_argument(
        "-o", "--output", type=Path, default="votes.jsonl", metavar="FILE", help=text
    )
    text = "labels to push (columns task, label, confidence), instead of the default method's"
    group.add_argument("--labels", metavar="FILE", help=text)
    text = "name of the model version (default: derived from the labels)"
    group.add_argument("--version-name", metavar="NAME", help=text)
    text = "offer the least certain tasks first, and hide predictions"
    group.add_argument("--order", action="store_true", help=text)
    group = parser.add_argument_group("overlap and serve")
    text = "share of labels that should be right (default: %(default)s)"
    group.add_argument("--target", type=share, default=0.95, metavar="P", help=text)
    text = "minimum number of labels per task (default: %(default)s)"
    group.add_argument("--min-labels", type=count, default=2, metavar="N", help=text)
    text = "maximum number of labels per task (default: %(default)s)"
    group.add_argument("--max-labels", type=count, default=10, metavar="N", help=text)
    text = "uncertain tasks open at a time (default: %(default)s)"
    group.add_argument("--ahead", type=count, default=50, metavar="N", help=text)
    group.add_argument("--host", default="127.0.0.1", metavar="NAME", help="address to listen on")
    group.add_argument(
        "--port", type=port, default=9090, metavar="N", help="port; 0 for any free one"
    )


def run(args: Namespace) -> int:
    from crowdwise.connect import LabelStudio

    studio = LabelStudio(args.url, read_token(args), args.project, question=args.question)
    {"pull": pull, "push": push, "overlap": set_overlap, "serve": serve}[args.action](args, studio)
    return 0


def read_token(args: Namespace) -> str:
    """Read the token, which is not an argument because others could see it."""
    token = os.environ.get(TOKEN, "")
    if args.token_file is not None:
        try:
            with Path(args.token_file).open(encoding="utf-8") as file:
                token = file.read(LONGEST)
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(
                explain(
                    f"{args.token_file} cannot be read: {getattr(error, 'strerror', error)}.",
                    fix="check its path and permissions",
                )
            ) from error
    if not token.strip():
        raise ParameterError(
            explain(
                "There is no token.",
                expected=f"${TOKEN}, or a file named by --token-file",
                fix="make a personal access token in Label Studio under Account & Settings",
            )
        )
    return token.strip()


def pull(args: Namespace, studio: "LabelStudio") -> None:
    refuse_screen(str(args.output), "What is pulled")
    count = studio.pull(args.output)
    say(args, f"{args.output}: {plural(count, 'task')} of project {args.project}")


def push(args: Namespace, studio: "LabelStudio") -> None:
    from crowdwise.aggregate import BayesBag
    from crowdwise.io import read
    from crowdwise.io.consensus import consensus_frame
    from crowdwise.io.open import read_table

    if args.labels is None:
        votes = read(list(studio.tasks()), "label_studio", question=args.question, repeats="last")
        labels = consensus_frame(BayesBag().fit(votes, votes.gold_labels), votes)
    else:
        labels = read_table(args.labels, "the columns task, label and confidence")
    found = studio.push(labels, args.version_name)
    if args.order:
        studio.order(found.version)
    known = f", {found.known:,} existed already" if found.known else ""
    say(args, f"{plural(found.new, 'prediction')} new{known}; model version {found.version}")


def make_overlap(args: Namespace) -> "Overlap":
    from crowdwise.connect import Overlap
    from crowdwise.plan import Planner

    planner = Planner(target=args.target, min_labels=args.min_labels)
    return Overlap(planner, max_labels=args.max_labels, ahead=args.ahead)


def set_overlap(args: Namespace, studio: "LabelStudio") -> None:
    from crowdwise.io import read

    tasks = list(studio.tasks())
    votes = read(tasks, "label_studio", question=args.question, repeats="last")
    wanted, promise = make_overlap(args).plan(votes)
    numbers = {int(str(task)): is_open for task, is_open in wanted.items()}
    changed = studio.set_overlap(tasks, numbers)
    done, n_open = len(promise.tasks), sum(numbers.values())
    say(args, f"{done:,} of {plural(len(numbers), 'labeled task')} done, {n_open:,} open for one")
    say(args, f"more label; {changed:,} were changed")


def serve(args: Namespace, studio: "LabelStudio") -> None:
    from crowdwise.connect.label_studio_backend import Backend, make_server

    if args.host not in LOOPBACK:
        raise ParameterError(
            explain(
                f"--host {args.host} lets other machines connect, and anyone could send requests.",
                expected=" or ".join(LOOPBACK),
                fix="run it on the machine of Label Studio, or behind a proxy with a password",
            )
        )
    backend = Backend(studio, make_overlap(args))
    server = make_server(backend, args.host, args.port)
    backend.start()
    host, port = server.server_address[:2]
    say(args, f"serving on http://{host!s}:{port}  (add it under Settings, Model; Ctrl-C ends)")
    with suppress(KeyboardInterrupt):
        server.serve_forever()
    server.server_close()
    backend.close()
