"""WRENCH's weak labels."""


def test_reads_weak_labels(export, triples, gold):
    annotations = export("wrench.json")
    assert triples(annotations) == [(0, 0, 1), (0, 2, 0), (1, 1, 0), (1, 2, 0)]
    assert gold(annotations) == {0: 1, 1: 0}
