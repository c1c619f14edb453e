"""From a name to a crowd: download what is missing, parse it, anonymize people."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from crowdwise.datasets import download as cached
from crowdwise.datasets.registry import Info, info
from crowdwise.errors import DownloadError, explain, plural
from crowdwise.progress import bar, hidden, shown

if TYPE_CHECKING:
    from crowdwise.datasets.crowd import Crowd

logger = logging.getLogger("crowdwise.datasets")


def load(
    name: str,
    *,
    truth: str | None = None,
    variant: str | None = None,
    download: bool = True,
    progress: bool | None = None,
) -> Crowd:
    """Load a real crowd, fetching it first if it is not in the cache.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    truth : str, optional
        Which truth to use, if there are several; ``info(name).truths`` describes them, and the
        first is the default.
    variant : str, optional
        Which variant to use, if there are several; see ``info(name).variants``.
    download : bool, default=True
        Whether files may be downloaded. The logger ``crowdwise.datasets`` reports downloads,
        and licenses that are not stated.
    progress : bool, optional
        Whether to show a progress bar on standard error; by default, inside
        :func:`crowdwise.progress.shown`.

    Returns
    -------
    Crowd
        ``annotations``, ``truth``, ``X``, ``items``, ``split``, ``workers`` and ``info``.

    Examples
    --------
    >>> digits = load("digits")  # part of scikit-learn: no network is needed
    >>> digits
    <digits: 0 annotations of 1,797 tasks by 0 workers, 10 classes; truth of 1,797; X 1,797 x 64>
    """
    from crowdwise.datasets.assemble import assemble
    from crowdwise.datasets.parsers import find_parser

    about = info(name)
    choices = {**about.choose("truth", truth), **about.choose("variant", variant)}
    files = _obtain(about, choices.get("variant"), download, progress)
    how = {"download": download} if about.openml else {}
    return assemble(about, find_parser(about.parser)(files, **about.options, **choices, **how))


def fetch(
    name: str, *, variant: str | None = None, progress: bool | None = None
) -> dict[str, Path]:
    """Fetch the files of a set into the cache, if they are missing; returns their paths."""
    about = info(name)
    if about.openml:
        load(name)
        return where(name)
    return _obtain(about, about.choose("variant", variant).get("variant"), True, progress)


def where(name: str) -> dict[str, Path]:
    """Return where the files of a set are, or will be, in the cache."""
    if info(name).openml:
        return {f"{name}.npz": cached.cache_folder() / f"{name}.npz"}
    return {file.name: cached.path_of(file) for file in info(name).files}


def _obtain(
    about: Info, variant: str | None, download: bool, progress: bool | None
) -> dict[str, Path]:
    """Return the paths of a variant's files, by file name, after fetching missing ones."""
    if not about.license_stated:
        logger.warning("%s: license: %s", about.name, about.license)
    files = about.files_of(variant)
    missing = [file for file in files if not cached.is_intact(file)]
    size = sum(file.size for file in missing)
    if missing and not download:
        raise DownloadError(
            explain(
                f"{about.name} is not in the cache, and download=False.",
                first=f"{len(missing)} of {plural(len(files), 'file')} missing ({megabytes(size)})",
                expected=f"all of them in {cached.cache_folder()}",
                fix=f"allow the download, or run: crowdwise datasets fetch {about.name}",
            )
        )
    if missing:
        # A warning, because nothing should be fetched without the user noticing.
        logger.warning(
            "%s: downloading %s in %s into %s, first %s",
            about.name,
            megabytes(size),
            plural(len(missing), "file"),
            cached.cache_folder(),
            cached.addresses(missing[0])[0],
        )
        with _asked(progress), bar(about.name, size, "B") as fetched:
            for file in missing:
                cached.fetch_file(file, fetched)
    return {file.name: cached.path_of(file) for file in files}


def _asked(progress: bool | None) -> AbstractContextManager[None]:
    """Show a progress bar from the start, show none, or follow the surrounding setting."""
    if progress is None:
        return nullcontext()
    return shown(delay=0.0) if progress else hidden()


def megabytes(n_bytes: int) -> str:
    """Format a size for people to read."""
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 100_000 else f"{n_bytes / 1e3:,.1f} kB"
