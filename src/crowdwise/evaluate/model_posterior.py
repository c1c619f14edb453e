"""P(truth) of each task according to a model, in the order of the annotations."""

import numpy as np
import pandas as pd
from sklearn.base import clone

from crowdwise.aggregate import DEFAULT
from crowdwise.annotations import Annotations
from crowdwise.annotations.names import as_names, locate
from crowdwise.base.aggregator import Aggregator
from crowdwise.errors import AnnotationError, explain
from crowdwise.inference import CompactPosterior
from crowdwise.inference.posteriors import as_array
from crowdwise.typing import Floats, GoldLike


def model_posterior(
    data: Annotations, model: Aggregator | pd.DataFrame | None, gold: GoldLike
) -> Floats:
    """Return the posterior of a fitted model or frame; other models are fitted first."""
    if not data.n_annotations:
        return data.shares()
    if model is None:
        return DEFAULT().fit(data, gold).posterior_
    if not isinstance(model, pd.DataFrame):
        fitted = model if hasattr(model, "posterior_") else clone(model).fit(data, gold)
        if isinstance(fitted.posterior_, CompactPosterior):
            names = {"index": fitted.tasks_, "columns": fitted.classes_}
            model = pd.DataFrame(as_array(fitted.posterior_), **names)
        else:
            model = fitted.probas_
    row = locate(as_names(model.index), data.tasks)
    column = locate(as_names(model.columns), data.classes)
    if (row < 0).any() or (column < 0).any():
        raise AnnotationError(
            explain(
                f"The model does not know {int((row < 0).sum()):,} of {data.n_tasks:,} tasks and "
                f"{int((column < 0).sum())} of {data.n_classes} classes.",
                expected="a model fitted to the same annotations",
                fix="fit it to these annotations, or leave model out",
            )
        )
    return model.to_numpy(dtype=np.float64)[np.ix_(row, column)]
