"""Google's fact evaluation of the CrowdScale 2013 challenge, as packaged by Li et al. (2019)."""

from crowdwise.datasets.tables import Files, PublishedTables, by_task, read_table


def parse(files: Files) -> PublishedTables:
    """Parse two plain tables."""
    rows = read_table(files["label.csv"]).set_axis(["task", "worker", "label"], axis=1)
    known = read_table(files["truth.csv"])
    return PublishedTables(
        rows, by_task(known["item"].to_numpy(), known["truth"].to_numpy(), "truth")
    )
