"""Names for the array types that appear in signatures."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[Any]  # of any width: numpy's integer types do not mix under a type checker
