"""A matrix with gaps, three parts, and features for all of them."""

from io import BytesIO

import numpy as np

from crowdwise.datasets.parsers import labelme


def as_bytes(array):
    buffer = BytesIO()
    np.save(buffer, np.asarray(array, dtype=np.float32))
    return buffer.getvalue()


def test_parts_follow_one_another(published):
    parts = {"train": ["coast", "forest"], "valid": ["forest"], "test": ["coast"]}
    number = {"forest": 0, "coast": 1}
    files = {"answers__txt": "-1 1 0\n0 -1 -1\n"}
    for part, names in parts.items():
        files[f"filenames_{part}__txt"] = "".join(f"{name}_1.jpg\n" for name in names)
        files[f"labels_{part}__txt"] = "".join(f"{number[name]}\n" for name in names) + ""
        files[f"labels_{part}_names__txt"] = "\n".join(names)
        files[f"LabelMe_VGG_avg_{part}__npy"] = as_bytes([[number[name], 9] for name in names])
    for part in ("valid", "test"):  # loadtxt gives a lone number no dimension
        files[f"labels_{part}__txt"] *= 2
        files[f"filenames_{part}__txt"] *= 2
        files[f"LabelMe_VGG_avg_{part}__npy"] = as_bytes([[number[parts[part][0]], 9]] * 2)
    tables = labelme.parse(published(**files))
    assert tables.annotations.to_numpy().tolist() == [
        ["train_0000", 1, 1],
        ["train_0000", 2, 0],
        ["train_0001", 0, 0],
    ]
    assert tables.truth.tolist() == [1, 0, 0, 0, 1, 1]
    assert tables.X[:, 0].tolist() == tables.truth.tolist()
    assert tables.split.tolist() == ["train"] * 2 + ["valid"] * 2 + ["test"] * 2
    assert tables.items["filename"].iloc[-1] == "coast_1.jpg"
    assert tables.extra["class_names"].to_dict() == {0: "forest", 1: "coast"}
