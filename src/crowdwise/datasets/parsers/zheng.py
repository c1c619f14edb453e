"""Sets of the truth inference survey of Zheng et al. (2017): one archive, one folder per set."""

from ast import literal_eval
from zipfile import ZipFile

import pandas as pd

from crowdwise.datasets.tables import Files, PublishedTables, read_table, truth_of

ARCHIVE = "datasets.zip"


def parse(files: Files, folder: str) -> PublishedTables:
    """Parse a folder's ``answer.csv`` and ``truth.csv``."""
    return PublishedTables(annotations_in(files, folder), truth_in(files, folder))


def tweets(files: Files, folder: str) -> PublishedTables:
    """Do the same, and parse the qualification test that every worker took."""
    return PublishedTables(
        annotations_in(files, folder),
        truth_in(files, folder),
        extra={
            "qualification_annotations": annotations_in(files, folder, "quali.csv"),
            "qualification_truth": truth_in(files, folder, "quali_truth.csv"),
        },
    )


def product(files: Files, folder: str) -> PublishedTables:
    """Do the same, and parse product records; task ids are ``<record>_<record>_<truth>``."""
    with ZipFile(files[ARCHIVE]) as archive:
        text = archive.read(f"datasets/{folder}/data_product").decode()
    header, *rows = map(literal_eval, text.splitlines())  # one Python list per line
    records = pd.DataFrame(rows, columns=header).astype({"id": str}).set_index("id")
    truth = truth_in(files, folder)
    id_a, id_b, _ = zip(*truth.index.str.split("_"), strict=True)
    names = [records["name"].loc[list(ids)].to_numpy() for ids in (id_a, id_b)]
    items = {"text": names[0] + " [SEP] " + names[1], "id_a": id_a, "id_b": id_b}
    return PublishedTables(
        annotations_in(files, folder),
        truth,
        items=pd.DataFrame(items, index=truth.index),
        extra={"records": records},
    )


def annotations_in(files: Files, folder: str, file: str = "answer.csv") -> pd.DataFrame:
    """Return the columns task, worker and label, whose names vary."""
    return _table(files, folder, file).set_axis(["task", "worker", "label"], axis=1)


def truth_in(files: Files, folder: str, file: str = "truth.csv") -> pd.Series:
    """Return the truths, by task."""
    return truth_of(_table(files, folder, file).set_axis(["task", "truth"], axis=1))


def _table(files: Files, folder: str, file: str) -> pd.DataFrame:
    with ZipFile(files[ARCHIVE]) as archive, archive.open(f"datasets/{folder}/{file}") as handle:
        return read_table(handle)
