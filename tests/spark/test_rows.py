"""What ranks make of their rows, without Java; and what is said without pyspark."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from crowdwise.aggregate import GLAD, MinimaxEntropy
from crowdwise.inference import MemoryEngine


def test_without_pyspark_the_error_says_what_to_install():
    code = "import sys; sys.modules['pyspark'] = None; import crowdwise.spark"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'pip install "crowdwise[spark]"' in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("n_ranks", [1, 3, 8])
def test_every_bucket_belongs_to_the_rank_that_gets_its_rows(n_ranks):
    pytest.importorskip("pyspark", reason='no pyspark: pip install "crowdwise[spark]"')
    from crowdwise.spark import rows

    owner = {
        bucket: rank for rank in range(n_ranks) for bucket in rows.buckets_of(rank, n_ranks, 8)
    }
    assert owner == {bucket: bucket * n_ranks // 8 for bucket in range(8)}


def test_rows_become_blocks_whose_tasks_go_across_batches(monkeypatch):
    pytest.importorskip("pyspark", reason='no pyspark: pip install "crowdwise[spark]"')
    import pyarrow

    from crowdwise.annotations import Pairs
    from crowdwise.inference.engines.ranks import CrowdNames
    from crowdwise.spark import rows

    crowd = CrowdNames(
        np.array(["a", "b"], object), np.array(["x", "y"], object), Pairs.all_of(2, 2)
    )
    table = pyarrow.table(
        {
            "bucket": pyarrow.array([0, 0, 0, 2, 2], pyarrow.int32()),
            "task": ["p", "q", "q", "q", "r"],
            "worker": ["a", "a", "b", "b", "a"],
            "label": ["x", "y", "x", "y", "y"],
        }
    )
    batches = table.to_batches(max_chunksize=2)
    monkeypatch.setattr(rows.gather_rows, "__defaults__", (2,))
    cells = rows.read_rows(batches, crowd).blocks(range(3))
    assert [block.n_tasks for block in cells] == [2, 0, 2]
    assert_array_equal(cells[0].indptr, [0, 1, 3])
    assert_array_equal(cells[0].code, [0, 1, 2])
    assert_array_equal(cells[2].code, [3, 1])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", [GLAD(max_iter=5), MinimaxEntropy(max_iter=5)], ids=str)
def test_what_is_learned_of_each_task_goes_to_it_again(method, voters):
    pytest.importorskip("pyspark", reason='no pyspark: pip install "crowdwise[spark]"')
    import pyarrow

    from crowdwise.spark.tasks import hand_out, leave_tasks, pack_tasks

    votes = voters.annotations[:60]
    expected = clone(method).fit(votes)
    left = clone(method).fit(votes)
    flat = leave_tasks(left, MemoryEngine(votes))
    names = [pyarrow.array(votes.tasks.astype(str))]
    (content,) = pack_tasks(names, flat)
    with pyarrow.ipc.open_stream(content) as stream:
        kept = stream.read_all().combine_chunks()
    assert kept.column("task").to_pylist() == votes.tasks.astype(str).tolist()
    nothing = pyarrow.nulls(1, kept["rows"].type)
    rows = pyarrow.concat_arrays([kept.column("rows").chunk(0), nothing])
    own = hand_out(left, rows)
    ((name, known),) = expected._task_rows().items()
    assert_array_equal(getattr(own, name)[:-1], known)
    assert_allclose(getattr(own, name)[-1], expected._average_task(known), atol=1e-12)
    found = own.predict_proba(replace(votes, tasks=np.arange(60)))
    assert_allclose(found, expected.predict_proba(votes), atol=1e-12)
