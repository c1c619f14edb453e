"""A label matrix, one row a task and one column a worker: .npy, Snorkel's, plain text."""

import pandas as pd

from crowdwise.annotations.table import Annotations
from crowdwise.errors import FormatError, explain
from crowdwise.io.content import Content, Long, Matrix, Options


def matches(content: Content) -> bool:
    """Whether the file holds an array."""
    return isinstance(content, Matrix)


def parse(content: Matrix, options: Options) -> Long:
    """One row for each cell with a label; -1 is none, unless ``missing`` says otherwise."""
    array = content.array
    if array.ndim != 2 or array.dtype.kind not in "iufbUO":
        raise FormatError(
            explain(
                f"{content.name} holds {array.dtype} of shape {array.shape}.",
                expected="two dimensions: rows are tasks, columns are workers",
            )
        )
    return long_of(Annotations.from_matrix(array, options.missing))


def long_of(annotations: Annotations, notes: tuple[str, ...] = (), *, scale: bool = False) -> Long:
    """Annotations as a table again, which keeps tasks and workers without any label.

    ``scale`` says that the order of the classes is their own, and stays.
    """
    names = {"task": annotations.tasks, "worker": annotations.workers, "label": annotations.classes}
    frame = pd.DataFrame(
        {
            role: pd.Categorical.from_codes(
                getattr(annotations, role),
                pd.Index(own, tupleize_cols=False),
                ordered=scale and role == "label",
            )
            for role, own in names.items()
        }
    )
    declared = {"tasks": annotations.tasks, "workers": annotations.workers}
    return Long(frame, notes, names=declared)
