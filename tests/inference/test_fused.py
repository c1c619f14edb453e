"""Kernels for a GPU find what plain torch finds; Triton's interpreter runs them without one."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

torch = pytest.importorskip("torch")
pytest.importorskip("triton")


def random_cells(cells, n_classes, device, *, weighted, gold):
    """Tasks of no to six labels, and two of very many."""
    rng = np.random.default_rng(0)
    n_tasks, n_pairs = 90, 20
    sizes = rng.integers(0, 7, n_tasks)
    sizes[[5, 77]] = 500, 100
    starts = np.concatenate([[0], np.cumsum(sizes)])
    code = rng.integers(0, n_pairs, starts[-1])
    value = rng.random(starts[-1]) if weighted else None
    counts = n_tasks, len(code), n_pairs
    found = cells.build([(starts, code, value)], counts, device, torch.float64)
    known = np.where(rng.random(n_tasks) < 0.1, rng.integers(0, n_classes, n_tasks), -1)
    return found.with_gold(known if gold else None)


def compare(device="cuda"):
    from crowdwise.inference.engines import sorted_cells
    from crowdwise.inference.engines.fused import FusedCells

    sorted_cells.PER_TILE = 16
    for case in range(32):
        weighted, gold, hard, each, n_classes = (
            *(bool(case & bit) for bit in (1, 2, 4)),
            1 + bool(case & 8),
            (3, 18)[bool(case & 16)],
        )
        n_truths, found = n_classes * each, []
        for kind in (sorted_cells.SortedCells, FusedCells):
            place = torch.device(device)
            cells = random_cells(kind, n_classes, place, weighted=weighted, gold=gold)
            rng = np.random.default_rng(1)
            prior, table = (
                torch.tensor(np.log(rng.dirichlet(np.ones(n_truths), size)), device=place)
                for size in ((), 20)
            )
            sums = cells.sweep(prior, table, hard=hard, n_classes=n_classes, tie=1e-9)
            found.append([*sums, cells.count(sums[2]), cells.given])
        for expected, own in zip(*found, strict=True):
            assert_allclose(own.cpu(), expected.cpu(), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_kernels_in_the_interpreter_find_what_torch_finds():
    code = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import test_fused"  # noqa: PTH120
    subprocess.run(
        [sys.executable, "-c", f"{code}; test_fused.compare('cpu')"],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        check=True,
    )


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_kernels_on_a_gpu_find_what_torch_finds():
    compare()
