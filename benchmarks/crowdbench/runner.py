"""Runs a table: side by side over seeds, saved as it goes, resumed where it stopped."""

from __future__ import annotations

import logging
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from crowdbench.registry import table, with_third_party
from crowdbench.results import Results
from crowdwise import progress
from crowdwise.errors import CrowdwiseError, MissingExtraError

log = logging.getLogger("crowdwise")


class Job(NamedTuple):
    """One run: a method on one column's data from one seed."""

    table: str
    row: str
    column: str
    seed: int
    others: tuple[str, ...] = ()


def run_table(
    name: str,
    folder: str | Path,
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    seeds: int | None = None,
    quick: bool = False,
    others: Sequence[str] = (),
    jobs: int = 2,
    again: bool = False,
    command: str = "",
    tell: Callable[[str], None] = log.info,
) -> Results:
    """Run a table, and write ``<name>.json`` and ``<name>.md`` into ``folder``.

    Parameters
    ----------
    name : str
        One of :func:`crowdbench.names`.
    folder : path
        Where results go. Runs that are there already, with the same settings, are kept.
    rows, columns : sequence of str, optional
        Only these, and the ``others``.
    seeds : int, optional
        How many runs make a figure; the table's own number by default.
    quick : bool, default=False
        Whether to run few seeds, and on large tables few rows: a check, not a result.
    others : sequence of str
        Estimators of third parties, as ``package.module:Class``, each an extra row.
    jobs : int, default=2
        How many runs to do side by side.
    again : bool, default=False
        Whether to forget what is in ``folder``.
    tell : function
        Called with a message about every finished run.
    """
    made = with_third_party(table(name), others)
    if quick:
        rows, columns = rows or made.quick_rows, columns or made.quick_columns
    if rows is not None:
        rows = [*rows, *others]  # another method always gets its row
    n_seeds = seeds or (made.quick_seeds if quick else made.seeds)
    wanted = [
        Job(name, row, column, seed, tuple(others))
        for row, column in made.cells(rows, columns)
        for seed in range(n_seeds if made.needs_seeds(row, column) else 1)
    ]
    results = Results(made, Path(folder), command=command, again=again)
    missing = [job for job in wanted if not results.has(job.row, job.column, job.seed)]
    if len(missing) < len(wanted):
        tell(f"{name}: {len(wanted) - len(missing)} of {len(wanted)} runs are already there")
    done = 0
    try:
        counted = progress.track(outcomes(missing, jobs), name, len(missing), "run")
        for done, (job, found) in enumerate(counted, start=1):
            results.add(job.row, job.column, job.seed, found)
            tell(f"{name} {done}/{len(missing)}: {_describe(job, found)}")
    finally:  # also when interrupted: finished runs are kept, and old ones if there are none
        if done or not missing:
            results.write()
    results.has_figures = any(results.has(job.row, job.column, job.seed) for job in wanted)
    return results


def outcomes(jobs: Sequence[Job], n_jobs: int) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Every job with its outcome, as they finish."""
    if n_jobs == 1 or len(jobs) <= 1:
        yield from map(perform, jobs)
        return
    from joblib import Parallel, delayed

    pool = Parallel(n_jobs, return_as="generator_unordered", batch_size=1)
    yield from pool(delayed(perform)(job) for job in jobs)


def perform(job: Job) -> tuple[Job, dict[str, Any]]:
    """Do one run; if it cannot run, the reason is its outcome."""
    _one_thread()
    made = with_third_party(table(job.table), job.others)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            data = _data(job.table, job.column, job.seed)
        except (CrowdwiseError, FileNotFoundError) as error:
            return job, {"skipped": str(error).splitlines()[0]}
        start = time.perf_counter()
        try:
            model = set_seed(made.rows[job.row].make(job.column), job.seed)
            figures = replace_nan(made.measure(model, data, job.seed))
        except MissingExtraError:
            raise
        except CrowdwiseError as error:
            return job, {"skipped": str(error).splitlines()[0]}
        except Exception as error:
            if job.row not in job.others:
                raise
            log.debug("%s failed", job.row, exc_info=True)
            return job, {"skipped": f"{type(error).__name__}: {error}".splitlines()[0]}
    seconds = time.perf_counter() - start
    return job, {"figures": figures, "seconds": seconds, "peak_mb": peak_memory()}


def replace_nan(figures: dict[str, float]) -> dict[str, float | None]:
    """Figures as JSON can store them: None for NaN."""
    return {k: float(v) if math.isfinite(v) else None for k, v in figures.items()}


def set_seed(model: Any, seed: int) -> Any:
    """The estimator, with the seed wherever it or one of its parts takes one."""
    if not hasattr(model, "get_params"):
        return model
    names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    return model.set_params(**dict.fromkeys(names, seed)) if names else model


@lru_cache(maxsize=2)
def _data(name: str, column: str, seed: int) -> Any:
    made = table(name)
    chosen = made.columns[column]
    return chosen.load(seed) if chosen.redrawn else _fixed(name, column)


@lru_cache(maxsize=4)
def _fixed(name: str, column: str) -> Any:
    return table(name).columns[column].load(0)


def _one_thread() -> None:
    """Runs go side by side already; more threads for each would only compete."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    else:
        try:
            import torch
        except ImportError:
            return
        torch.set_num_threads(1)


def peak_memory() -> float:
    """The most memory that this process has held, in megabytes; 0 where it is unknown."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0.0
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _describe(job: Job, found: dict[str, Any]) -> str:
    what = f"{job.row} on {job.column}, seed {job.seed}"
    if "skipped" in found:
        return f"{what}: skipped, {found['skipped']}"
    figures = ", ".join(
        f"{name} {value:.4f}" for name, value in found["figures"].items() if value is not None
    )
    return f"{what}: {figures} ({found['seconds']:.1f} s)"
