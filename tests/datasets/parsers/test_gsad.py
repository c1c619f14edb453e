"""Ten batches standardized, eight raw."""

from crowdwise.datasets.parsers import gsad


def test_standardized_batches_are_stacked(published):
    files = {f"batch{b}_ext__txt": f"{b}.5 -1\n" * (2 if b == 1 else 1) for b in range(1, 11)}
    files |= {f"batch{b}_lab__txt": f"{b % 6 + 1}\r\n" * (2 if b == 1 else 1) for b in range(1, 11)}
    tables = gsad.parse(published(**files), variant="standardized")
    assert tables.X_tasks.tolist()[:3] == ["b01-0000", "b01-0001", "b02-0000"]
    assert tables.X_tasks[-1] == "b10-0000"
    assert tables.X[:3].tolist() == [[1.5, -1], [1.5, -1], [2.5, -1]]
    assert tables.truth["b10-0000"] == 5
    assert tables.items["batch"].tolist() == [1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_raw_batches_are_class_and_numbered_features(published):
    numbers = (1, 2, 3, 4, 5, 6, 8, 9)
    files = {f"batch{b}__dat": f"{b % 6 + 1} 1:{b}.25 2:-7\n" for b in numbers}
    tables = gsad.parse(published(**files), variant="raw")
    assert tables.X.tolist() == [[b + 0.25, -7] for b in numbers]
    assert tables.truth.tolist() == [b % 6 + 1 for b in numbers]
    assert tables.X_tasks[-2] == "b08-0000"
