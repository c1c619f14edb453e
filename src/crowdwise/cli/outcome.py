"""How a command ends, and what is said on the way: one clear message, never a traceback."""

import logging
import os
import sys
import traceback
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from crowdwise import progress
from crowdwise.cli.paths import refuse_overwriting
from crowdwise.errors import CrowdwiseError, ParameterError, explain


class Steps(logging.Handler):
    """Shows what is logged, above any bars."""

    def emit(self, record: logging.LogRecord) -> None:
        progress.write(self.format(record))


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
    """Show bars of long work where somebody looks, and with --verbose every step."""
    log = logging.getLogger("crowdwise")
    level, handler = log.level, logging.NullHandler() if args.quiet else Steps()
    handler.setLevel(logging.DEBUG if args.verbose else logging.WARNING)
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    wanted = not args.quiet and (args.verbose or sys.stderr.isatty())
    try:
        with progress.shown() if wanted else nullcontext():
            yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


@contextmanager
def warnings_in_words(args: Namespace) -> Iterator[None]:
    """Show warnings meant for the user as messages; those for programmers not at all."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        if not args.quiet:
            progress.write(f"crowdwise: warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield


def say(args: Namespace, text: str) -> None:
    """Words for the user, on standard error."""
    if not args.quiet:
        progress.write(text)


def _close_quietly() -> None:
    """Let Python exit without another word about a standard output that failed."""
    with suppress(OSError):
        sys.stdout.flush()
        return
    with suppress(OSError, ValueError):  # there may be no real one, as in a notebook
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
