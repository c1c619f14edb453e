"""Bring the generated parts of README and docs up to date, and draw the figures of the examples.

python docs/build.py

A page with a pair of marks such as ``<!-- methods: … -->`` and ``<!-- end of methods -->`` gets
what stands between them from the code or from benchmarks/results. ``mkdocs build`` then makes the
site; docs/hooks.py says how.
"""

import ast
import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import baselines
import measured
import pages
from docstrings import section, summary

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    for file in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = file.read_text()
        fresh = refresh(text)
        if fresh != text:
            file.write_text(fresh)
            sys.stdout.write(f"updated {file.relative_to(ROOT)}\n")
    for script in pages.examples():
        if re.search("matplotlib|crowdwise.plot", script.read_text()):
            draw(script, pages.FIGURES / script.stem)


def draw(script: Path, folder: Path) -> None:
    """Run an example that draws into a folder."""
    sys.stdout.write(f"drawing the figures of {script.name}\n")
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(script), str(folder)]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)


def refresh(text: str) -> str:
    """Regenerate every generated part of a page."""
    for mark, make in PARTS.items():
        if f"<!-- {mark}:" in text:
            pattern = rf"(<!-- {re.escape(mark)}:.*?-->\n).*?(<!-- end of {re.escape(mark)} -->)"
            part = make()
            text = re.sub(pattern, rf"\1{_escaped(part)}\2", text, flags=re.S)
    return text


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\")


def table_of(family: str) -> str:
    """One line per method of a family, from the code."""
    rows = [
        [f"`{name}`", summary(cls).rstrip("."), reference(cls)]
        for name, cls in pages.methods()[family].items()
    ]
    return measured.table(["method", "what it does", "reference"], rows, text=3)


def method_names() -> str:
    """The methods of each family by name, from the code."""
    lines = [
        f"- {pages.FAMILIES[family]}: {', '.join(f'`{name}`' for name in members)}."
        for family, members in pages.methods().items()
    ]
    return "\n".join(lines) + "\n"


def reference(cls: type) -> str:
    """Authors, year and DOI of a method's first reference."""
    text = " ".join(section(cls, "References").split())
    found = re.match(r"(.*?\(\d{4}\))", text)
    link = re.search(r"doi:(\S+?)\.?(\s|$)", text)
    if not found:
        return ""
    return f"[{found[1]}](https://doi.org/{link[1]})" if link else found[1]


def formats() -> str:
    from crowdwise.io.formats import FORMATS

    rows = [[f"`{f.name}`", f.about] for f in FORMATS]
    return measured.table(["format", "what it is"], rows, text=2)


def datasets() -> str:
    from crowdwise.datasets import info, names

    rows = ["| set | what it is | tasks | workers | annotations | license |"]
    rows.append("|---|---|---:|---:|---:|---|")
    for name in names():
        about = info(name)
        sizes = [about.counts.get(key, "") for key in ("tasks", "workers", "annotations")]
        shown = " | ".join(f"{size:,}" if size != "" else "" for size in sizes)
        rows.append(f"| `{name}` | {about.title} | {shown} | {about.license} |")
    return "\n".join(rows) + "\n"


def commands() -> str:
    """The help text of every command."""
    from crowdwise.cli import COMMANDS

    parts = [f"## crowdwise {name}\n\n```text\n{help_of(name)}```\n" for name in COMMANDS]
    return "\n".join(parts)


def help_of(name: str) -> str:
    """What ``crowdwise NAME --help`` prints, 92 columns wide."""
    from crowdwise.cli import main

    os.environ["COLUMNS"] = "92"
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        main([name, "--help"])
    return text.getvalue()


def command_list() -> str:
    """One line per command: the first of its help."""
    from crowdwise.cli import COMMANDS, command

    lines = [(f"crowdwise {name}", summary(command(name))) for name in COMMANDS]
    width = max(len(name) for name, _ in lines)
    return "```bash\n" + "".join(f"{name:<{width}}   # {text}\n" for name, text in lines) + "```\n"


def examples() -> str:
    """One line per script: the first of its docstring."""
    rows = []
    for file in pages.examples():
        text = (ast.get_docstring(ast.parse(file.read_text())) or "").partition("\n")[0]
        rows.append([f"[{file.name}](../examples/{file.name})", text])
    return measured.table(["script", "what it shows"], rows, text=2)


PARTS = {
    "methods": lambda: table_of("aggregate"),
    "method names": method_names,
    "learners": lambda: table_of("learn"),
    "embedders": lambda: table_of("embed"),
    "formats": formats,
    "datasets": datasets,
    "commands": commands,
    "command list": command_list,
    "examples": examples,
    "results index": measured.index,
    "best by kind": measured.best_by_kind,
    "best by aim": measured.best_by_aim,
    "best learners": measured.best_learners,
    "accuracy": lambda: measured.body("truth-inference"),
    "speed": lambda: measured.body("speed"),
    "learning on mgc and spc": lambda: measured.body("speelfc-table2"),
    "start beside baselines": baselines.start_beside_baselines,
    "learning on labelme": lambda: measured.body("labelme"),
    "entailment": lambda: measured.column("lia-table2", "RTE R=10", ["accuracy"]),
    "reading": lambda: measured.body("reading"),
    "embedding speed": lambda: measured.body("embedding-speed"),
    "representations on hotel": lambda: measured.column(
        "neucrowd-table2", "Hotel", ["accuracy", "AUC"]
    ),
    "embedding speed on a gpu": lambda: measured.body("embedding-speed-cuda"),
    "learning on a gpu": lambda: measured.body("speelfc-table2-h200"),
    "scale": lambda: measured.body("scale"),
    "spark": lambda: measured.body("spark"),
    "engines": lambda: measured.body("engines"),
    "gpu": lambda: measured.body("gpu"),
    "two processes": lambda: measured.body("torchrun"),
    "speed at 10^8": lambda: measured.body("speed-1e8"),
    "peers": lambda: measured.body("same-as-crowdkit"),
    "same as peers": lambda: measured.body("same-as-peers"),
}


if __name__ == "__main__":
    main()
