"""Results on disk, as JSON and as Markdown, with what produced them."""

import json
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("crowdwise", "numpy", "scipy", "scikit-learn", "pandas")


def provenance(command: str) -> dict[str, object]:
    """The command, versions and machine behind a result."""
    return {
        "command": command,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "machine": f"{platform.machine()}, {_cores()} cores",
    }


def save(name: str, about: dict[str, object], rows: list[dict[str, object]], text: str) -> None:
    """Write ``name.json`` and ``name.md`` under benchmarks/results."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(
        json.dumps({"about": about, "rows": rows}, indent=1) + "\n"
    )
    (RESULTS / f"{name}.md").write_text(text + "\n\n" + _footer(about))
    sys.stderr.write(f"wrote benchmarks/results/{name}.json and {name}.md\n")


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _footer(about: dict[str, object]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    return (
        f"Made by `{about['command']}` on {about['date']}; Python {about['python']}, {versions}; "
        f"{about['machine']}.\n"
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # run from its source
        return "0"


def _cores() -> int:
    import os

    return os.cpu_count() or 1
