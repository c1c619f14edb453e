"""Laws of the engines that aggregators run on: blocks, threads, files and ranks."""

import tempfile
import warnings
from pathlib import Path
from typing import cast

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from crowdwise.annotations import Annotations, StoredAnnotations
from crowdwise.base.aggregator import Aggregator
from crowdwise.errors import CrowdwiseError
from crowdwise.inference import count_labels
from crowdwise.inference.engines import FileEngine, Group, run_ranks
from crowdwise.inference.engines.files import StreamedPosterior
from crowdwise.laws.checks import fit_copy, fit_posterior, seed, store_without_names
from crowdwise.typing import Floats


def blocks_of_tasks_add_up_to_the_whole(method: Aggregator, annotations: Annotations) -> None:
    """Posteriors depend only on their own tasks, and label counts add up over blocks of them."""
    model = fit_copy(method, annotations)
    cut = annotations.n_tasks // 3
    blocks = [annotations[:cut], annotations[cut:]]
    parts = [model.predict_proba(block).to_numpy() for block in blocks]
    whole = model.predict_proba(annotations).to_numpy()
    assert_allclose(np.concatenate(parts), whole, rtol=1e-6, atol=1e-8)
    counts = [count_labels(block, part) for block, part in zip(blocks, parts, strict=True)]
    assert_allclose(sum(counts), count_labels(annotations, whole), rtol=1e-6, atol=1e-8)


def every_engine_gives_the_same_bits(method: Aggregator, annotations: Annotations) -> None:
    """A blockwise method gives the same bits on 1 to 16 threads, on disk and on ranks.

    Any other refuses annotations on disk with one clear sentence.
    """
    votes, blockwise = annotations.nonempty(), method.traits.blockwise
    if "n_bags" in method.get_params():
        method = clone(method).set_params(n_bags=4)  # bits do not depend on how many there are
    with tempfile.TemporaryDirectory() as folder:
        stored = store_without_names(votes, Path(folder))
        if not blockwise:
            try:
                fit_copy(method, stored)
            except CrowdwiseError:
                return
            raise AssertionError("annotations on disk were accepted")
        expected = fit_posterior(method, votes)
        for n_jobs in (1, 2, 4, 16) if "n_jobs" in method.get_params() else (None,):
            model = method if n_jobs is None else clone(method).set_params(n_jobs=n_jobs)
            assert_array_equal(fit_posterior(model, votes), expected)
            assert_array_equal(fit_copy(model, stored).posterior_.toarray(), expected)
        assert_array_equal(fit_ranks(method, stored, 1), expected)
        for size in (2, 3):  # more blocks than usual for such a small crowd
            assert_allclose(fit_ranks(method, stored, size), expected, rtol=1e-6, atol=1e-8)


def fit_ranks(method: Aggregator, stored: StoredAnnotations, size: int) -> Floats:
    """Return the posterior of all tasks, fitted by ranks that share the blocks."""

    def work(group: Group) -> Floats:
        engine = FileEngine(stored, 1, group)
        found = cast("StreamedPosterior", seed(method).fit_engine(engine, stored.classes))
        return found.toarray()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.concatenate(run_ranks(size, work))
