"""Write a report of every real crowd, and open each page in a browser.

Prints one line per set: annotations, seconds, megabytes, and what is wrong with the page, which
should be nothing. Needs ``CROWDWISE_DATA``; without a Chromium the pages are only written.
"""

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import page_checks
import pandas as pd
import real_crowds
from playwright.sync_api import Browser

from crowdwise.io.features import read_features
from crowdwise.io.reader import read
from crowdwise.report import write_report

LOOKS = ({}, {"color_scheme": "dark"}, {"width": 390, "height": 844})
MOST_MEGABYTES = 5.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="keep the pages here")
    parser.add_argument("names", nargs="*", help="sets (default: all)")
    args = parser.parse_args()
    root, bad = real_crowds.folder(), 0
    if root is None:
        sys.exit("CROWDWISE_DATA is not set: there are no real crowds here")
    with ExitStack() as stack:
        out = args.out or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        out.mkdir(parents=True, exist_ok=True)
        path = page_checks.find_chromium()
        browser = None if path is None else stack.enter_context(page_checks.launched(path))
        for file in files(root, args.names):
            name = f"{file.parent.name}{file.name.removeprefix('annotations').partition('.')[0]}"
            start = time.perf_counter()
            page = out / f"{name}.html"
            facts = report(file, page, name)
            seconds, size = time.perf_counter() - start, page.stat().st_size / 1e6
            found = [] if browser is None else check(browser, page)
            found += [f"{size:.1f} MB"] * (size > MOST_MEGABYTES)
            bad += bool(found)
            verdict = "; ".join(found) or ("fine" if browser else "not checked: no Chromium")
            counts = facts.data
            print(
                f"{name:<28}{counts.n_annotations:>9,}{seconds:>8.1f} s{size:>7.2f} MB  {verdict}"
            )
    return 1 if bad else 0


def files(root: Path, names: list[str]) -> list[Path]:
    """All files of annotations, of all sets or of those named."""
    found = sorted(root.glob("*/annotations*.csv*"))
    return [file for file in found if not names or file.parent.name in names]


def report(file: Path, page: Path, name: str):
    """Write one page, with truth and features where the set has them."""
    annotations = read(file, format="long")
    truth_file = file.parent / file.name.replace("annotations", "truth").removesuffix(".gz")
    features = file.parent / "features.npz"
    truth = None
    if truth_file.exists():
        table = pd.read_csv(truth_file)
        kind = type(annotations.tasks[0])
        table = table.assign(task=table["task"].map(kind), label=table["label"])
        if annotations.classes.dtype == object:
            table["label"] = table["label"].map(str)
        truth = table.dropna().set_index("task")["label"]
    X = None
    if features.exists():
        known = read_features(features)
        X = pd.DataFrame(known.values, index=[type(annotations.tasks[0])(i) for i in known.ids])
    return write_report(annotations, page, X=X, truth=truth, title=name)


def check(browser: Browser, page: Path) -> list[str]:
    """What is wrong with a page on a wide screen, in dark mode, and on a phone."""
    found = []
    for look in LOOKS:
        with page_checks.opened(browser, page.as_uri(), **look) as opened:
            found += page_checks.problems_of(opened)
    return sorted(set(found))


if __name__ == "__main__":
    sys.exit(main())
