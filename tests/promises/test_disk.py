"""What docs/promises.md says of annotations on disk."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from crowdwise import Annotations
from crowdwise.aggregate import DawidSkene
from crowdwise.errors import FormatError
from crowdwise.io import stream_labels

pytest.importorskip("pyarrow")


def spoil(kind, change):
    """A change of a file of numbers."""

    def make(path):
        array = np.fromfile(path, dtype=kind)
        path.write_bytes(change(array).astype(kind).tobytes())

    return make


def rename(**changed):
    """A change of the names and pairs."""

    def make(path):
        arrays = dict(np.load(path))
        changes = {name: change(arrays[name]) for name, change in changed.items()}
        np.savez(path, **(arrays | changes))

    return make


def tell(**changed):
    return lambda path: path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def start(change):
    return lambda path: np.save(path, change(np.load(path)))


def name_tasks(n):
    table = io.BytesIO()
    pd.DataFrame({"task": range(n)}).to_parquet(table)
    return lambda path: path.write_bytes(table.getvalue())


def set_first(value):
    return lambda array: np.r_[value, array[1:]]


DAMAGE = {
    "codes.bin": [spoil("<i4", set_first(value)) for value in (-1, 15, 2**31 - 1)],
    "sizes.bin": [spoil("u1", set_first(200)), lambda path: path.write_bytes(b"1")],
    "starts.npy": [
        start(lambda starts: starts - 5),
        start(lambda starts: starts + 10**9),
        start(lambda starts: starts[:0]),
        start(lambda starts: starts.astype(str)),
        lambda path: path.write_bytes(b"junk"),
    ],
    "names.npz": [
        rename(pair_worker=lambda own: own + 100),
        rename(pair_label=lambda own: own - 100),
        rename(pair_label=lambda own: own[:-1]),
        rename(pair_label=lambda own: own[:3], pair_worker=lambda own: own[:3]),
        rename(classes=lambda own: own[:2]),
        rename(classes=lambda own: own[[0, 0, 0]]),
        rename(workers=lambda own: own[None]),
        lambda path: path.write_bytes(b"PK\x03\x04junk"),
    ],
    "about.json": [
        tell(n_tasks=-1),
        tell(n_annotations=10**12),
        tell(size_type="O"),
        lambda path: path.write_bytes(b"\xff[]"),
    ],
    "tasks.parquet": [name_tasks(20), name_tasks(200), lambda path: path.write_bytes(b"junk")],
}


def test_promise_18_a_damaged_folder_on_disk_is_refused(tmp_path):
    path = tmp_path / "votes.csv"
    rows = [(f"t{t}", f"w{w}", "xyz"[(t + w) % 3]) for t in range(50) for w in range(5)]
    pd.DataFrame(rows, columns=["task", "worker", "label"]).to_csv(path, index=False)
    home = Annotations.open(path).folder
    for name, changes in DAMAGE.items():
        sound = (home / name).read_bytes()
        for number, change in enumerate(changes):
            change(home / name)
            try:
                stream_labels(DawidSkene().fit(Annotations.open(home)), tmp_path / "labels.parquet")
            except FormatError:
                continue
            pytest.fail(f"{name} {number} was read")
        (home / name).write_bytes(sound)
    stream_labels(DawidSkene().fit(Annotations.open(home)), tmp_path / "labels.parquet")
