"""Hand out tasks, take labels and learn from each, as a web service.

crowdwise serve --project tasks.csv --classes yes,no
crowdwise serve --project votes.csv --target .95
crowdwise serve --token ann:worker
crowdwise serve --database postgresql://user@host/name --port 8080
crowdwise serve --audit log.jsonl
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from crowdwise.cli.numbers import amount, count, port, share
from crowdwise.cli.outcome import say
from crowdwise.errors import (
    CrowdwiseError,
    FileError,
    MissingExtraError,
    ParameterError,
    explain,
)
from crowdwise.typing import Json

if TYPE_CHECKING:
    from crowdwise.serve import Service

ROLES = ("worker", "lead", "admin")


def add_arguments(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("project", "Stored in the database; flags change it.")
    text = "tasks (columns task, text, image, gold), or labels in any known format, to start with"
    group.add_argument("--project", type=Path, metavar="FILE", help=text)
    group.add_argument("--classes", metavar="A,B,…", help="the labels to choose from")
    group.add_argument("--title", metavar="TEXT", help="title shown to workers and leads")
    group.add_argument("--instructions", metavar="TEXT", help="instructions for workers")
    text = "share of labels that should be right (default: 0.95)"
    group.add_argument("--target", type=share, metavar="P", help=text)
    text = "minimum number of labels per task (default: 2)"
    group.add_argument("--min-labels", type=count, metavar="N", help=text)
    text = "maximum number of labels per task (default: 10)"
    group.add_argument("--max-labels", type=count, metavar="N", help=text)
    group.add_argument("--cost", type=amount, metavar="X", help="what a label costs (default: 1)")
    text = "seconds that a worker keeps a task (default: 600)"
    group.add_argument("--lease", type=amount, metavar="S", help=text)
    text = "share of workers' tasks that have a known truth, to check them (default: 0)"
    group.add_argument("--checks", type=share, metavar="P", help=text)
    text = "folder of the tasks' pictures (default: that of --project)"
    group.add_argument("--images", type=Path, metavar="FOLDER", help=text)
    group = parser.add_argument_group("serving")
    text = "sqlite:///FILE or postgresql://USER@HOST/NAME (default: %(default)s)"
    group.add_argument("--database", default="sqlite:///crowdwise.db", metavar="URL", help=text)
    text = "address to listen on; other machines need tokens (default: %(default)s)"
    group.add_argument("--host", default="127.0.0.1", metavar="NAME", help=text)
    text = "port; 0 for any free one (default: %(default)s)"
    group.add_argument("--port", type=port, default=8000, metavar="N", help=text)
    group.add_argument("--certificate", type=Path, metavar="FILE", help="certificate, for https")
    group.add_argument(
        "--private-key", type=Path, metavar="FILE", help="private key of the certificate"
    )
    group = parser.add_argument_group("once", "Do this and exit.")
    text = "make a token for a worker, lead or admin, and print it"
    group.add_argument("--token", type=parse_holder, metavar="NAME:ROLE", help=text)
    text = "write every event to a file of JSON lines; - for standard output"
    group.add_argument("--audit", metavar="FILE", help=text)
    text = "restore an empty database from such a file, checking every event"
    group.add_argument("--replay", type=Path, metavar="FILE", help=text)


def parse_holder(text: str) -> tuple[str, str]:
    """Parse the name and the role in ``ann:worker``."""
    name, _, role = text.rpartition(":")
    if not name or role not in ROLES:
        raise ArgumentTypeError(f"{text!r} is not NAME:ROLE, with a role of {', '.join(ROLES)}")
    return name, role


def run(args: Namespace) -> int:
    try:
        from crowdwise.serve.start import Address, prepare, serve
    except ImportError as error:
        raise MissingExtraError.of("crowdwise serve", str(error.name), "serve") from None
    from crowdwise.serve import Service
    from crowdwise.serve.project import Start, read_project

    if args.replay is not None:
        return replay_log(args)
    begin = Start() if args.project is None else read_project(args.project)
    with Service(args.database) as service:
        if args.token is not None or args.audit is not None:
            return do_once(args, service)
        for note in (prepare(service, begin, list_changes(args)), *begin.notes):
            say(args, note)
        images = args.images or (args.project.parent if args.project is not None else None)
        address = Address(args.host, args.port, args.certificate, args.private_key)
        serve(service, address, images, lambda url: say(args, f"serving on {url}  (Ctrl-C ends)"))
    return 0


def list_changes(args: Namespace) -> Json:
    """Collect the project settings that the flags change."""
    names = (
        "title",
        "instructions",
        "target",
        "min_labels",
        "max_labels",
        "cost",
        "lease",
        "checks",
    )
    found = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if args.classes is not None:
        found["classes"] = tuple(name.strip() for name in args.classes.split(","))
    return found


def do_once(args: Namespace, service: "Service") -> int:
    """Make a token, or write the log."""
    from crowdwise.serve.audit import write_events
    from crowdwise.serve.keys import Role
    from crowdwise.serve.start import issue_token

    if args.token is not None:
        name, role = args.token
        if not service.board.keys and role != "admin":
            raise ParameterError(
                explain(
                    "The first token has to be an admin's, or nobody could make another.",
                    fix="crowdwise serve --token NAME:admin",
                )
            )
        print(issue_token(service, name, Role[role.upper()]))
        say(args, f"token for {name} ({role}); it will not be shown again")
    if args.audit is not None:
        write_log(args.audit, write_events(service.database))
    return 0


def write_log(target: str, lines: Iterable[str]) -> None:
    """Write lines to a file, whole or not at all, or to standard output."""
    import sys

    from crowdwise.io.atomic import replace_file

    if target == "-":
        sys.stdout.writelines(lines)
        return
    with replace_file(target) as file:
        file.writelines(lines)


def replay_log(args: Namespace) -> int:
    """Restore an empty database from a log."""
    from crowdwise.serve.audit import replay
    from crowdwise.serve.database import Database

    try:
        with args.replay.open(encoding="utf-8") as lines:
            board = replay(Database(args.database), lines)
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, CrowdwiseError):
            raise
        raise FileError(
            explain(
                f"{args.replay} cannot be read: {getattr(error, 'strerror', None) or error}.",
                fix="check its path and permissions",
            )
        ) from error
    say(
        args,
        f"{board.seq:,} events replayed: {len(board.task):,} labels of {len(board.tasks):,} tasks",
    )
    return 0
