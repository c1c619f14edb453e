"""YAML of one kind, read without a YAML reader."""

from crowdwise.datasets.parsers import bluebirds


def test_workers_hold_their_labels(published):
    labels = "39: {11573: true,\n  11574: false}\n40: {11573: false, 11574: true}\n"
    files = published(labels__yaml=labels, gt__yaml="{11573: true, 11574: false}\n")
    tables = bluebirds.parse(files)
    assert tables.annotations.to_numpy().tolist() == [
        ["11573", "39", 1],
        ["11574", "39", 0],
        ["11573", "40", 0],
        ["11574", "40", 1],
    ]
    assert tables.truth.to_dict() == {"11573": 1, "11574": 0}
