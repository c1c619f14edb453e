"""How a command ends, and what is said on the way: one clear message, never a traceback."""

import logging
import os
import sys
import time
import traceback
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from crowdwise.cli.paths import refuse_overwriting
from crowdwise.errors import CrowdwiseError, ParameterError, explain

SECONDS = 5.0  # between signs of life, on long work


class Steps(logging.Handler):
    """Shows what is logged: warnings and, of the rest, all or a line every few seconds."""

    def __init__(self, every: float) -> None:
        super().__init__(logging.DEBUG)
        self.every, self.last = every, time.monotonic()

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING or time.monotonic() - self.last >= self.every:
            self.last = time.monotonic()
            print(self.format(record), file=sys.stderr)


def run_safely(run: Callable[[Namespace], int], args: Namespace) -> int:
    """Run a command; turn whatever happens into words and an exit status."""
    try:
        refuse_overwriting(args)
        with steps_shown(args), warnings_in_words(args):
            status = run(args)
            sys.stdout.flush()
            return status
    except BrokenPipeError:  # the reader has seen enough, as in "| head"
        _close_quietly()
        return 0
    except KeyboardInterrupt:
        return stopped()
    except Exception as error:
        if args.debug:
            traceback.print_exc()
        print(f"crowdwise: {in_words(error)}", file=sys.stderr)
        _close_quietly()
        return 2 if isinstance(error, ParameterError) else 1  # parameters are in the command


def stopped() -> int:
    """Say that Ctrl-C was heard; returns the exit status that shells expect then."""
    print("crowdwise: stopped.", file=sys.stderr)
    return 130


def in_words(error: Exception) -> str:
    """What went wrong, and what to do about it."""
    if isinstance(error, CrowdwiseError):
        return str(error)
    if isinstance(error, MemoryError):
        return explain("there is not enough memory.", fix="use a machine with more of it")
    if isinstance(error, UnicodeEncodeError):
        what = f"this terminal or pipe cannot show {error.object[error.start]!r}."
        return explain(what, fix="set PYTHONIOENCODING=utf-8, or write a file with -o")
    if isinstance(error, OSError):
        what = f"reading or writing failed: {error.strerror or error}."
        return explain(what, fix="look at the disk, or read and write other files")
    return bug(error)


def bug(error: Exception) -> str:
    """What to say about an error that nobody foresaw."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    first = str(error).partition("\n")[0]
    return explain(
        f"this is a bug: {type(error).__name__}: {first}",
        first=f"{Path(place.filename).name}, line {place.lineno}, in {place.name}",
        fix="please report the command and this message; --debug shows the whole trace",
    )


@contextmanager
def steps_shown(args: Namespace) -> Iterator[None]:
    """Show the steps of long work on standard error."""
    log = logging.getLogger("crowdwise")
    steps, level = Steps(0.0 if args.verbose else SECONDS), log.level
    handler = logging.NullHandler() if args.quiet else steps
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


@contextmanager
def warnings_in_words(args: Namespace) -> Iterator[None]:
    """Show warnings meant for the user as messages; those for programmers not at all."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        if not args.quiet:
            print(f"crowdwise: warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield


def say(args: Namespace, text: str) -> None:
    """Words for the user, on standard error."""
    if not args.quiet:
        print(text, file=sys.stderr)


def _close_quietly() -> None:
    """Let Python exit without another word about a standard output that failed."""
    with suppress(OSError):
        sys.stdout.flush()
        return
    with suppress(OSError, ValueError):  # there may be no real one, as in a notebook
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
