"""The registry: which sets there are, what they hold, and where their files are published."""

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
    """One published file: where it is, what it must hash to, and on which terms."""

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
        """Its name in the cache and on a mirror: ``<sha256>.<ext>``."""
        return self.sha256 + PurePosixPath(self.url).suffix


@dataclass(frozen=True)
class Info:
    """What is known about a set without downloading it.

    Attributes
    ----------
    name, title, about : str
        What it is called, and who was asked what.
    license : str
        What its publishers state; ``"not stated"`` where they state nothing.
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
        Choices for ``load``, and what they mean; the first is the default.
    files : tuple of RemoteFile
        What would be downloaded, for all variants.
    home : str
        Where the authors present it.
    labels : {"classes", "numbers"}
        Whether labels are classes, or numbers on a scale.
    openml : bool
        Whether scikit-learn fetches it from OpenML, rather than this package its files.
    parser, options, variant_files
        How the files are parsed, and which ones where variants differ.
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
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def files_of(self, variant: str | None) -> tuple[RemoteFile, ...]:
        """The files that one variant needs."""
        return self.variant_files.get(variant or next(iter(self.variants), ""), self.files)

    def choose(self, kind: str, wanted: str | None) -> dict[str, str]:
        """The option for a parser that chooses a truth or variant; none if there is no choice."""
        known = self.truths if kind == "truth" else self.variants
        if wanted is not None and wanted not in known:
            raise ParameterError(
                explain(
                    f"{self.name} has no {kind} {wanted!r}.",
                    expected=listing(list(known), most=10) or f"no choice: leave {kind} out",
                    fix="name one of these, or leave it out",
                )
            )
        return {kind: wanted or next(iter(known))} if known else {}


def names() -> list[str]:
    """All sets that can be loaded."""
    return sorted(_registry()["sets"])


@cache
def info(name: str) -> Info:
    """What is known about a set, without downloading anything."""
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
    """The files that ``source:glob`` names."""
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
    """One license, or each repository's where they differ."""
    stated = {file.license: "/".join(file.url.split("/")[3:5]) for file in files}
    if len(stated) == 1:
        return next(iter(stated))
    return "; ".join(f"{repository}: {license}" for license, repository in stated.items())


@cache
def _registry() -> dict[str, Any]:
    text = package_files("crowdwise.datasets").joinpath("registry.toml").read_text("utf-8")
    return tomllib.loads(text)
