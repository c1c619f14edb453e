"""Names for the types that appear in signatures."""

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[Any]  # of any width, since type checkers keep numpy's integer types apart
Names: TypeAlias = Sequence[Hashable] | Array  # also an Index or a Series
Indices: TypeAlias = int | slice | Sequence[int] | Array
Json: TypeAlias = dict[str, Any]  # an object of JSON

# Inputs in any of the users' libraries, which are checked when they come in.
AnnotationsLike: TypeAlias = Any  # anything that crowdwise.io.as_annotations accepts
GoldLike: TypeAlias = Any  # anything that crowdwise.io.as_gold accepts, or None
FeaturesLike: TypeAlias = Any  # an array, sparse matrix, tensor or frame with one row per task
RandomState: TypeAlias = int | np.random.RandomState | None
