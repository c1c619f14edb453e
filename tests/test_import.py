"""Importing the package is fast and light."""

import subprocess
import sys

HEAVY = ("pandas", "sklearn", "scipy", "torch", "matplotlib", "pyspark", "polars", "pyarrow")


def test_importing_the_package_loads_nothing_heavy():
    code = "import crowdwise, sys; print(' '.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not set(HEAVY) & set(loaded.stdout.split())


def test_truth_inference_needs_no_torch_or_plotting():
    code = "import crowdwise.aggregate, crowdwise.evaluate, sys; print(' '.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"torch", "matplotlib", "pyspark", "polars"} & set(loaded.stdout.split())


def test_every_name_it_offers_is_there():
    import crowdwise

    for name in crowdwise.__all__:
        assert getattr(crowdwise, name) is not None
    assert "aggregate" in dir(crowdwise)


def test_a_missing_name_is_an_attribute_error():
    import crowdwise

    assert not hasattr(crowdwise, "nonsense")
