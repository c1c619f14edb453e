"""The registry: the sets, their contents, and where their files are published."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files as package_files
from pathlib import PurePosixPath
from typing import Any

from crowdwise.errors import ParameterError, explain, listing


@dataclass(frozen=True)
class RemoteFile:
    """A published file: its address, hash and license."""

    url: str
    size: int
    sha256: str
    license: str
    citation: str

    @property
    def name(self) -> str:
        return PurePosixPath(self.url).name

    @property
    def stored_name(self) -> str:
        """Return its name in the cache and on a mirror: ``<sha256>.<ext>``."""
        return self.sha256 + PurePosixPath(self.url).suffix


@dataclass(frozen=True)
class Info:
    """Facts about a set that need no download.

    Attributes
    ----------
    name, title, about : str
        Its names, and who was asked what.
    license : str
        As its publishers state it; ``"not stated"`` if they state nothing.
    citation : tuple of str
        Works to cite.
    counts : dict
        ``tasks``, ``workers``, ``annotations``, ``classes``, ``truths``, ``features``.
    warnings : tuple of str
        Its pitfalls. Read them before using it.
    workers : {"people", "slots", "none"}
        Whether a worker is a person. People's ids are replaced by numbers.
    features : str
        What ``X`` is, or where to get it.
    truths, variants : dict
        Choices for ``load``, with their meanings; the first is the default.
    files : tuple of RemoteFile
        Files to download, for all variants.
    home : str
        The authors' page about it.
    labels : {"classes", "numbers"}
        Whether labels are classes, or numbers on a scale.
    openml : bool
        Whether scikit-learn fetches it from OpenML, instead of this package.
    parser, options, variant_files
        How the files are parsed, and which ones if variants differ.
    """

    name: str
    title: str
    about: str
    license: str
    citation: tuple[str, ...]
    counts: dict[str, int]
    warnings: tuple[str, ...]
    workers: str
    features: str
    truths: dict[str, str]
    variants: dict[str, str]
    files: tuple[RemoteFile, ...]
    home: str
    labels: str
    openml: bool
    parser: str
    options: dict[str, Any]
    variant_files: dict[str, tuple[RemoteFile, ...]]

    @property
    def license_stated(self) -> bool:
        return "not stated" not in self.license

    @property
    def size(self) -> int:
        """Total size of all files in bytes."""
        return sum(file.size for file in self.files)

    def files_of(self, variant: str | None) -> tuple[RemoteFile, ...]:
        """List the files that a variant needs."""
        return self.variant_files.get(variant or next(iter(self.variants), ""), self.files)

    def choose(self, kind: str, wanted: str | None) -> dict[str, str]:
        """Return the parser option that selects a truth or variant, if there is a choice."""
        known = self.truths if kind == "truth" else self.variants
        if wanted is not None and wanted not in known:
            raise ParameterError(
                explain(
                    f"{self.name} has no {kind} {wanted!r}.",
                    expected=listing(list(known), most=10) or f"no choice: leave {kind} out",
                    fix="choose one of these, or leave it out",
                )
            )
        return {kind: wanted or next(iter(known))} if known else {}


def names() -> list[str]:
    """List all sets that can be loaded."""
    return sorted(_registry()["sets"])


@cache
def info(name: str) -> Info:
    """Describe a set, without downloading anything."""
    sets = _registry()["sets"]
    if name not in sets:
        close = get_close_matches(str(name), sets, n=3) or sorted(sets)[:5]
        raise ParameterError(
            explain(
                f"There is no dataset {name!r}.",
                expected=f"a name such as {listing(close)}",
                fix="crowdwise.datasets.names() lists them; simulated crowds are in "
                "crowdwise.simulate",
            )
        )
    return _info(name, sets[name])


def _info(name: str, row: dict[str, Any]) -> Info:
    variant_files = {key: _files(patterns) for key, patterns in row.get("files_of", {}).items()}
    files = _files(row.get("files", [])) + tuple(f for part in variant_files.values() for f in part)
    return Info(
        name=name,
        title=row["title"],
        about=row["about"],
        license=row.get("license") or _license(files),
        citation=tuple(dict.fromkeys([*row.get("citation", []), *(f.citation for f in files)])),
        counts=row["counts"],
        warnings=tuple(row.get("warnings", ())),
        workers=row["workers"],
        features=row.get("features", "There are none."),
        truths=row.get("truths", {}),
        variants=row.get("variants", {}),
        files=files,
        home=row.get("home", ""),
        labels=row.get("labels", "classes"),
        openml=row.get("openml", False),
        parser=row["parser"],
        options=row.get("options", {}),
        variant_files=variant_files,
    )


def _files(patterns: list[str]) -> tuple[RemoteFile, ...]:
    return tuple(file for pattern in patterns for file in _matching(pattern))


def _matching(pattern: str) -> Iterator[RemoteFile]:
    """Yield the files that match ``source:glob``."""
    source, _, glob = pattern.partition(":")
    row = _registry()["sources"][source]
    for path, facts in row["files"].items():
        if fnmatchcase(path, glob):
            yield RemoteFile(
                row["base"] + path,
                facts["size"],
                facts["sha256"],
                row["license"],
                row["citation"],
            )


def _license(files: tuple[RemoteFile, ...]) -> str:
    """Return the license, or each repository's if they differ."""
    stated = {file.license: "/".join(file.url.split("/")[3:5]) for file in files}
    if len(stated) == 1:
        return next(iter(stated))
    return "; ".join(f"{repository}: {license}" for license, repository in stated.items())


@cache
def _registry() -> dict[str, Any]:
    text = package_files("crowdwise.datasets").joinpath("registry.toml").read_text("utf-8")
    return tomllib.loads(text)
