"""A label matrix, one row per task and one column per worker: .npy, Snorkel's, plain text."""

from crowdwise.annotations import Annotations
from crowdwise.annotations.wide import columns_from_matrix
from crowdwise.errors import FormatError, explain
from crowdwise.io.build import LongTable
from crowdwise.io.document import Matrix, ReadOptions
from crowdwise.io.formats.wide import warn_odd_columns
from crowdwise.io.recognize import Format
from crowdwise.io.triples import refuse_triples

AS_FILE = (
    "write it with a first line task,worker,label; if each row is a task, name the format: matrix"
)


def parse(document: Matrix, options: ReadOptions) -> LongTable:
    """Return one row per cell with a label; -1 is none, unless ``missing`` says otherwise."""
    array = document.array
    if array.ndim != 2 or array.dtype.kind not in "iufbUO":
        raise FormatError(
            explain(
                f"{document.name} has {array.dtype} of shape {array.shape}.",
                expected="two dimensions: rows are tasks, columns are workers",
                fix="save a table of integers, np.save(path, labels)",
            )
        )
    if not options.named:
        refuse_triples(array, document.name, AS_FILE)
    built = Annotations.from_columns(columns_from_matrix(array, options.missing))
    warn_odd_columns(built, document.name)
    return LongTable.from_annotations(built)


FORMAT = Format("matrix", __doc__, Matrix, parse)
