"""Fit one crowd-kit method on a CSV and write its probabilities, for same_as_crowdkit.py."""

import sys
import warnings

import numpy as np
import pandas as pd
from crowdkit import aggregation

warnings.simplefilter("ignore")


def main() -> None:
    method, source, target, steps = sys.argv[1:]
    frame = pd.read_csv(source, dtype=str, keep_default_na=False)
    limits = {"n_iter": int(steps), "tol": -np.inf} if int(steps) else {}
    model = getattr(aggregation, method)(**limits)
    model.fit_predict_proba(frame).to_csv(target)


if __name__ == "__main__":
    main()
