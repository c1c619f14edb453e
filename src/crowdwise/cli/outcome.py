"""How a command runs and ends: files kept safe, one clear message, never a traceback."""

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
from crowdwise.errors import CrowdwiseError, ParameterError, explain

# Flags and arguments that name files to read, and files to write.
READ = ("annotations", "features", "gold", "gold_file", "truth", "model")
WRITTEN = ("output", "saved")


def run_safely(run: Callable[[Namespace], int], args: Namespace) -> int:
    """Run a command; turn whatever happens into a message and an exit status."""
    try:
        refuse_overwriting(args)
        with show_steps(args), word_warnings(args):
            status = run(args)
            sys.stdout.flush()
            return status
    except BrokenPipeError:  # the reader has seen enough, as in "| head"
        _close_quietly()
        return 0
    except KeyboardInterrupt:
        return report_interrupt()
    except Exception as error:
        if args.debug:
            traceback.print_exc()
        print(f"crowdwise: {explain_error(error)}", file=sys.stderr)
        _close_quietly()
        return 2 if isinstance(error, ParameterError) else 1  # parameters are in the command


def report_interrupt() -> int:
    """Confirm Ctrl-C; returns the exit status that shells expect then."""
    print("crowdwise: stopped.", file=sys.stderr)
    return 130


def explain_error(error: Exception) -> str:
    """What went wrong, and what to do about it."""
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
    """What to say about an error that nobody expected."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    first = str(error).partition("\n")[0]
    return explain(
        f"this is a bug: {type(error).__name__}: {first}",
        first=f"{Path(place.filename).name}, line {place.lineno}, in {place.name}",
        fix="please report the command and this message; --debug shows the whole trace",
    )


class LogLines(logging.Handler):
    """Shows what is logged, above any progress bars; a warning once, however often it comes."""

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
    """Show warnings meant for the user as messages; those for programmers not at all."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        say(args, f"crowdwise: warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield


def say(args: Namespace, text: str) -> None:
    """Tell the user something, on standard error."""
    if not args.quiet:
        progress.write(text)


def refuse_overwriting(args: Namespace) -> None:
    """Refuse to write a file that the command reads; ``convert`` may change one in place."""
    read = [name for name in READ if (args.command, name) != ("convert", "annotations")]
    inputs = [path for name in read if (path := _path(getattr(args, name, None))) is not None]
    for target in (_path(getattr(args, name, None)) for name in WRITTEN):
        if target is not None and target.is_file() and any(_reads(p, target) for p in inputs):
            raise ParameterError(
                explain(
                    f"{target} is an input, and would be overwritten.",
                    expected="an output that is not one of the inputs",
                    fix="write to another file",
                )
            )


def refuse_screen(path: str | None, what: str) -> None:
    """Refuse to print what is not text."""
    if path == "-":
        raise ParameterError(explain(f"{what} cannot be printed.", fix="name a file"))


def _path(value: object) -> Path | None:
    """A path that exists; None for standard output, and for anything that is not a path."""
    if not isinstance(value, str) or value == "-":
        return None
    try:
        path = Path(value).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError, ValueError):  # too long for a name, or an unknown user's home
        return None


def _reads(path: Path, file: Path) -> bool:
    """Whether reading a path reads the file: it is the file, or a folder it is read from."""
    from crowdwise.io.open import is_readable

    inside = path.is_dir() and file.parent.samefile(path)
    return file.samefile(path) or (inside and is_readable(file.name.removesuffix(".gz")))


def _close_quietly() -> None:
    """Let Python exit without another word about a standard output that failed."""
    with suppress(OSError):
        sys.stdout.flush()
        return
    with suppress(OSError, ValueError):  # there may be no real one, as in a notebook
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
