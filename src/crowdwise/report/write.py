"""Reports as files."""

from pathlib import Path
from typing import Any

from crowdwise.errors import ParameterError, explain
from crowdwise.evaluate.truth_alignment import Truths
from crowdwise.io.atomic import replace_file
from crowdwise.report.facts import Facts, gather, to_json
from crowdwise.report.page import to_html
from crowdwise.typing import AnnotationsLike, FeaturesLike

PAGES = ("", ".html", ".htm", ".json")


def write_report(
    annotations: AnnotationsLike,
    path: str | Path,
    X: FeaturesLike = None,
    truth: Truths | None = None,
    **options: Any,
) -> Facts:
    """Write one HTML page about a crowd: labels, workers, agreement, and anything odd.

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
        Anything that :func:`crowdwise.io.as_annotations` accepts.
    path : str or Path
        Path of the page; with ``.json``, the numbers are written instead.
    X : array of shape (n_tasks, n_features) or DataFrame, optional
        Features, for the map of tasks.
    truth : mapping, Series or frame, optional
        Known truths of some tasks, for scores; no method learns from them.
    **options
        ``embedding``, ``method``, ``methods``, ``title`` and ``random_state``, as for
        :func:`crowdwise.report.gather`.

    Returns
    -------
    Facts
        The numbers on the page.

    Examples
    --------
    >>> import tempfile
    >>> labels = {"q1": {"ann": "yes", "bob": "yes"}, "q2": {"ann": "no", "bob": "yes"}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     facts = write_report(labels, f"{folder}/report.html")
    >>> facts.data.n_annotations, facts.method
    (4, 'BayesBag')
    """
    refuse_other_pages(path)
    facts = gather(annotations, X=X, truth=truth, **options)
    save_facts(facts, path)
    return facts


def refuse_other_pages(path: str | Path) -> None:
    """Refuse a path that ends neither in .html nor in .json, before any work is done."""
    suffix = Path(path).suffix
    if suffix.lower() not in PAGES:
        raise ParameterError(
            explain(
                f"A report cannot be written as {suffix} ({path}).",
                expected="a path that ends in .html, or .json for the numbers",
                fix="write .html, and print it to PDF in a browser" if suffix == ".pdf" else "",
            )
        )


def save_facts(facts: Facts, path: str | Path) -> None:
    """Write facts as a page, or as JSON if the path says so."""
    text = to_json(facts) if Path(path).suffix.lower() == ".json" else to_html(facts)
    with replace_file(path) as file:
        file.write(text)
