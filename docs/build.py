"""Bring the generated parts of README and docs up to date, and build the site.

python docs/build.py

A page with a pair of marks such as ``<!-- methods … -->`` and ``<!-- end of methods -->`` gets
what stands between them from the code or from benchmarks/results. The site adds a page for every
method, from its docstring; for every table in benchmarks/results; and for every script in
examples, with its figures. It is plain HTML that needs no network and opens from disk.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from sitegen import benched, crowds, measured, method_pages
from sitegen.docstrings import Docstring
from sitegen.pages import GROUPS, all_pages
from sitegen.site import write_site

ROOT = Path(__file__).resolve().parent.parent
PAGES = {name: title for group in GROUPS.values() for name, title in group.items()}


def main() -> None:
    for file in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = file.read_text()
        fresh = refreshed(text)
        if fresh != text:
            file.write_text(fresh)
            sys.stdout.write(f"updated {file.relative_to(ROOT)}\n")
    with tempfile.TemporaryDirectory() as folder:
        draw_figures(Path(folder))
        build_site(ROOT / "site", Path(folder))
    sys.stdout.write("built site/index.html\n")


def build_site(folder: Path, figures: Path | None = None) -> None:
    """Write the site; with the figures of examples where they were drawn."""
    write_site(all_pages(figures), folder)


def draw_figures(folder: Path) -> None:
    """Run the examples that draw, each into a folder of its own."""
    for script in sorted((ROOT / "examples").glob("*.py")):
        if "matplotlib" in script.read_text() or "crowdwise.plot" in script.read_text():
            sys.stdout.write(f"drawing the figures of {script.name}\n")
            (folder / script.stem).mkdir()
            subprocess.run(
                [sys.executable, str(script), str(folder / script.stem)],
                cwd=folder / script.stem,
                stdout=subprocess.DEVNULL,
                check=True,
            )


def refreshed(text: str) -> str:
    """The page with every generated part made anew."""
    for mark, make in PARTS.items():
        if f"<!-- {mark}:" in text:
            pattern = rf"(<!-- {re.escape(mark)}:.*?-->\n).*?(<!-- end of {re.escape(mark)} -->)"
            made = make()
            text = re.sub(
                pattern, lambda found, made=made: found[1] + made + found[2], text, flags=re.S
            )
    return text


def table_of(family: str) -> str:
    """One line per method of a family, from the code."""
    rows = [
        [f"`{name}`", Docstring.of(cls).summary.rstrip("."), reference(cls)]
        for name, cls in method_pages.methods()[family].items()
    ]
    return measured.table(["method", "what it does", "reference"], rows, text=3)


def reference(cls: type) -> str:
    """Authors, year and DOI of a method's first reference."""
    text = " ".join(Docstring.of(cls).sections.get("References", "").split())
    found = re.match(r"(.*?\(\d{4}\))", text)
    link = re.search(r"doi:(\S+?)\.?(\s|$)", text)
    if not found:
        return ""
    return f"[{found[1]}](https://doi.org/{link[1]})" if link else found[1]


def results(name: str) -> str:
    """A committed result table, without its heading."""
    file = measured.RESULTS / f"{name}.md"
    if not file.exists():
        return "Not measured yet.\n"
    return file.read_text().partition("\n\n")[2]


def formats() -> str:
    from crowdwise.io.formats import FORMATS

    rows = [[f"`{f.name}`", f.about] for f in FORMATS]
    return measured.table(["format", "what it is"], rows, text=2)


def datasets() -> str:
    from crowdwise.datasets import info, names

    rows = ["| set | what it is | tasks | workers | annotations | licence |"]
    rows.append("|---|---|---:|---:|---:|---|")
    for name in names():
        about = info(name)
        sizes = [about.counts.get(key, "") for key in ("tasks", "workers", "annotations")]
        shown = " | ".join(f"{size:,}" if size != "" else "" for size in sizes)
        rows.append(f"| `{name}` | {about.title} | {shown} | {about.licence} |")
    return "\n".join(rows) + "\n"


def commands() -> str:
    """The help text of every command."""
    from crowdwise.cli import COMMANDS

    parts = [f"## crowdwise {name}\n\n```text\n{help_of(name)}```\n" for name in COMMANDS]
    return "\n".join(parts)


def command_list() -> str:
    """A line for every command: the first of its help."""
    from crowdwise.cli import COMMANDS, command

    lines = [(f"crowdwise {name}", Docstring.of(command(name)).summary) for name in COMMANDS]
    width = max(len(name) for name, _ in lines)
    return "```bash\n" + "".join(f"{name:<{width}}   # {said}\n" for name, said in lines) + "```\n"


def examples() -> str:
    """A line for every script: the first of its docstring."""
    import ast

    rows = []
    for file in sorted((ROOT / "examples").glob("*.py")):
        said = (ast.get_docstring(ast.parse(file.read_text())) or "").partition("\n")[0]
        rows.append([f"[{file.name}](../examples/{file.name})", said])
    return measured.table(["script", "what it shows"], rows, text=2)


def help_of(name: str) -> str:
    """What ``crowdwise NAME --help`` prints, 92 columns wide."""
    from crowdwise.cli import main

    os.environ["COLUMNS"] = "92"
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        main([name, "--help"])
    return text.getvalue()


PARTS = {
    "methods": lambda: table_of("aggregate"),
    "learners": lambda: table_of("learn"),
    "embedders": lambda: table_of("embed"),
    "formats": formats,
    "datasets": datasets,
    "commands": commands,
    "command list": command_list,
    "examples": examples,
    "results index": measured.index,
    "best by kind": crowds.best_by_kind,
    "best by aim": crowds.best_by_aim,
    "best learners": benched.best_learners,
    "accuracy": lambda: results("truth-inference"),
    "speed": lambda: results("speed"),
    "learning on mgc and spc": lambda: results("speelfc-table2"),
    "learning on labelme": lambda: results("labelme"),
    "entailment": lambda: measured.column("lia-table2", "RTE R=10", ["accuracy"]),
    "reading": lambda: results("reading"),
    "embedding speed": lambda: results("embedding-speed"),
    "representations on hotel": lambda: measured.column(
        "neucrowd-table2", "Hotel", ["accuracy", "AUC"]
    ),
    "embedding speed on a gpu": lambda: results("embedding-speed-cuda"),
    "learning on a gpu": lambda: results("speelfc-table2-h200"),
    "speed at 10^8": lambda: results("speed-1e8"),
    "peers": lambda: results("same-as-crowdkit"),
    "same as peers": lambda: results("same-as-peers"),
}


if __name__ == "__main__":
    main()
