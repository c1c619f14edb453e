"""Crowds hit the kappa they are asked for."""

import numpy as np
import pytest

from crowdwise.errors import ParameterError
from crowdwise.evaluate import fleiss_kappa
from crowdwise.simulate import DirichletWorker, Spammer, crowd_with_kappa

TRUTH = (np.random.RandomState(0).rand(500) < 0.7).astype(int)
WORKERS = 7 * [DirichletWorker((0.7, 0.95), concentration=60.0)]
OPTIONS = {"truth": TRUTH, "n_classes": 2, "per_task": 7, "workers": WORKERS, "random_state": 0}


@pytest.mark.parametrize("kappa", [0.2, 0.41, 0.8])
def test_kappa_is_hit(kappa):
    crowd = crowd_with_kappa(kappa, **OPTIONS)
    assert float(fleiss_kappa(crowd.annotations)) == pytest.approx(kappa, abs=0.003)
    assert crowd.truth.tolist() == TRUTH.tolist()


def test_difficulties_keep_their_proportions():
    relative = np.exp(np.random.RandomState(1).randn(500))
    crowd = crowd_with_kappa(0.5, difficulty=relative, **OPTIONS)
    ratio = crowd.difficulty / relative
    assert ratio == pytest.approx(np.full(500, ratio[0]))
    assert float(fleiss_kappa(crowd.annotations)) == pytest.approx(0.5, abs=0.003)


def test_a_seed_repeats_it():
    one, same = (crowd_with_kappa(0.5, **OPTIONS) for _ in range(2))
    other = crowd_with_kappa(0.5, **{**OPTIONS, "random_state": 1})
    assert one.annotations.equals(same.annotations)
    assert not one.annotations.equals(other.annotations)


def test_a_kappa_out_of_reach_is_refused():
    with pytest.raises(ParameterError, match="No difficulty gives these workers a kappa"):
        crowd_with_kappa(0.5, **{**OPTIONS, "workers": 3 * [Spammer()]})
