"""Counts as weights, and arrays out of a pickle that is never run."""

import pickle
from io import BytesIO
from zipfile import ZipFile

import numpy as np
from numpy.testing import assert_array_equal

from crowdwise.datasets.parsers import cifar


def test_counts_are_weights_of_one_nameless_worker(published):
    counts = np.array([[3, 0, 48], [0, 51, 0]])
    buffer = BytesIO()
    np.save(buffer, counts)
    rows = "\n".join(",".join(["0"] * 20 + [truth]) for truth in ("3", "2"))
    files = {"cifar10h-counts__npy": buffer.getvalue(), "human_model_truth_cifar10h__csv": rows}
    tables = cifar.counts(published(**files))
    assert tables.annotations.to_numpy().tolist() == [
        [0, "crowd", 0, 3],
        [0, "crowd", 2, 48],
        [1, "crowd", 1, 51],
    ]
    assert tables.truth.tolist() == [2, 1]


def torch_file(arrays):
    """What torch.save writes for a dict of numpy arrays."""
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(arrays, protocol=2))
    return buffer.getvalue()


def test_three_labels_an_image_go_to_slots(published):
    rng = np.random.default_rng(0)
    names = ["clean_label", "aggre_label", "worse_label", *(f"random_label{k}" for k in (1, 2, 3))]
    arrays = {name: rng.integers(0, 10, 200) for name in names}
    tables = cifar.slots(published(**{"CIFAR-10_human__pt": torch_file(arrays)}))
    labels = tables.annotations.pivot(index="task", columns="worker", values="label")
    for slot, name in (("v1", "random_label1"), ("v2", "random_label2"), ("v3", "random_label3")):
        assert_array_equal(labels[slot], arrays[name])
    assert_array_equal(tables.truth, arrays["clean_label"])
    assert_array_equal(tables.extra["aggregate"], arrays["aggre_label"])
    assert_array_equal(tables.extra["worst"], arrays["worse_label"])


class Trap:
    def __reduce__(self):
        return exec, ("raise SystemExit('a pickle was run')",)


def test_nothing_in_the_file_is_run(published):
    files = published(a__pt=torch_file({"clean_label": np.arange(200), "trap": Trap()}))
    assert_array_equal(cifar.arrays_in(files["a.pt"])["clean_label"], np.arange(200))
