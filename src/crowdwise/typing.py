"""Names for the types that appear in signatures."""

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[Any]  # of any width: numpy's integer types do not mix under a type checker
Names: TypeAlias = Sequence[Hashable] | Array  # also an Index or a Series
Indices: TypeAlias = int | slice | Sequence[int] | Array
Json: TypeAlias = dict[str, Any]  # an object of JSON

# What people have, in the libraries that they have it in; checked where it comes in.
AnnotationsLike: TypeAlias = Any  # what crowdwise.io.as_annotations takes
GoldLike: TypeAlias = Any  # what crowdwise.io.as_gold takes, or None
FeaturesLike: TypeAlias = Any  # an array, sparse matrix, tensor or frame with one row per task
RandomState: TypeAlias = int | np.random.RandomState | None
