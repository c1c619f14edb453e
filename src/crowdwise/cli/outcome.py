"""Running a command: inputs protected, one clear message for an error, no traceback."""

import logging
import os
import signal
import sys
import traceback
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from pathlib import Path

from crowdwise import progress
from crowdwise.cli.files import refuse_output, refuse_overwriting
from crowdwise.errors import CrowdwiseError, ParameterError, explain
from crowdwise.screen import Screen, printable

INTERRUPTED = 130  # the exit status that shells expect after Ctrl-C


class Stopped(BaseException):
    """Ctrl-C as an exception that training does not catch to keep its progress."""


def run_safely(run: Callable[[Namespace], int], args: Namespace) -> int:
    """Run a command; turn any error into a message and an exit status."""
    try:
        refuse_overwriting(args)
        refuse_output(args)
        with stop_at_once(args), show_steps(args), word_warnings(args), guard_screen():
            status = run(args)
            sys.stdout.flush()
            return INTERRUPTED if args.interrupted else status
    except BrokenPipeError:  # the reader has stopped, as in "| head"
        _close_quietly()
        return 0
    except (KeyboardInterrupt, Stopped):
        return report_interrupt()
    except Exception as error:
        if args.debug:
            sys.stderr.write(printable(traceback.format_exc()))
        print(printable(f"crowdwise: {explain_error(error)}"), file=sys.stderr)
        _close_quietly()
        of_command = isinstance(error, ParameterError)  # whose flags give the parameters
        return 2 if of_command else 1


def report_interrupt() -> int:
    """Confirm Ctrl-C; returns the exit status."""
    print("crowdwise: stopped.", file=sys.stderr)
    return INTERRUPTED


@contextmanager
def stop_at_once(args: Namespace) -> Iterator[None]:
    """Let Ctrl-C end the whole command, not just the training of one network.

    With ``--keep-partial``, the first one ends the training and the second one the command.
    """
    args.interrupted = False

    def stop(*_: object) -> None:
        first, args.interrupted = not args.interrupted, True
        raise KeyboardInterrupt if first and getattr(args, "keep_partial", False) else Stopped

    try:
        before = signal.signal(signal.SIGINT, stop)
    except ValueError:  # not in the main thread, the only one that is interrupted
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def explain_error(error: Exception) -> str:
    """Explain what went wrong, and what to do about it."""
    if isinstance(error, CrowdwiseError):
        return str(error)
    if isinstance(error, MemoryError):
        return explain("there is not enough memory.", fix="use a machine with more memory")
    if isinstance(error, UnicodeEncodeError):
        what = f"this terminal or pipe cannot show {error.object[error.start]!r}."
        return explain(what, fix="set PYTHONIOENCODING=utf-8, or write a file with -o")
    if isinstance(error, OSError):
        what = f"reading or writing failed: {error.strerror or error}."
        return explain(what, fix="check the disk, or use other files")
    return explain_bug(error)


def explain_bug(error: Exception) -> str:
    """Explain an unexpected error, which is a bug."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    first = str(error).partition("\n")[0]
    return explain(
        f"this is a bug: {type(error).__name__}: {first}",
        first=f"{Path(place.filename).name}, line {place.lineno}, in {place.name}",
        fix="please report the command and this message; --debug shows the whole trace",
    )


@contextmanager
def guard_screen() -> Iterator[None]:
    """Print only printable text to a terminal; a pipe gets all of it."""
    with redirect_stdout(Screen(sys.stdout)) if sys.stdout.isatty() else nullcontext():
        yield


class LogLines(logging.Handler):
    """Shows log lines above any progress bars; a repeated warning only once."""

    def __init__(self) -> None:
        super().__init__()
        self.warned: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        if text not in self.warned:
            progress.write(text)
        if record.levelno >= logging.WARNING:
            self.warned.add(text)


@contextmanager
def show_steps(args: Namespace) -> Iterator[None]:
    """Show progress bars on a terminal, and every step with --verbose."""
    log = logging.getLogger("crowdwise")
    level, handler = log.level, logging.NullHandler() if args.quiet else LogLines()
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
def word_warnings(args: Namespace) -> Iterator[None]:
    """Show warnings for users as messages, and none for programmers."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        say(args, f"crowdwise: warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield


def say(args: Namespace, text: str) -> None:
    """Print a message on standard error."""
    if not args.quiet:
        progress.write(text)


def _close_quietly() -> None:
    """Let Python exit without a second error about a failed standard output."""
    with suppress(OSError):
        sys.stdout.flush()
        return
    with suppress(OSError, ValueError):  # there may be none, as in a notebook
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
