"""Call one library the way its users do, or crowdwise.compat in its place, and write the results.

The calls are the same for both: only the import differs. Run by same_as_peers.py, in the
interpreter of the library or in ours:

python benchmarks/peers_once.py crowdkit theirs folder result.json
"""

import json
import random
import sys
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd

MODULES = {
    "crowdkit": "crowdkit.aggregation",
    "cleanlab": "cleanlab.multiannotator",
    "snorkel": "snorkel.labeling.model",
}
STEPS = {"n_iter": 20, "tol": -np.inf}
CROWDKIT = {
    "MajorityVote": {},
    "Wawa": {},
    "ZeroBasedSkill": {},
    "GoldMajorityVote": {},
    "DawidSkene": STEPS,
    "OneCoinDawidSkene": STEPS,
    "GLAD": STEPS,
    "MMSR": {},
    "KOS": {},
    "MACE": {},
}
SLOW = ("GLAD", "MMSR")
SLOW_AT_MOST = 5_000  # annotations
LEARNED = ("labels_", "probas_", "skills_", "priors_", "errors_", "alphas_", "betas_", "scores_",
           "spamming_")  # fmt: skip


def main() -> None:
    warnings.simplefilter("ignore")
    library, side, folder, target = sys.argv[1:]
    home = MODULES[library] if side == "theirs" else f"crowdwise.compat.{library}"
    calls = {"crowdkit": crowdkit, "cleanlab": cleanlab, "snorkel": snorkel}
    found = calls[library](import_module(home), Path(folder))
    text = {name: describe(value) for name, value in found.items()}
    Path(target).write_text(json.dumps(text))


def crowdkit(module, folder: Path) -> dict[str, object]:
    """Every aggregator on a table of task, worker and label."""
    text = {"dtype": str, "keep_default_na": False}
    data = pd.read_csv(folder / "votes.csv", **text)[["task", "worker", "label"]]
    truth = pd.read_csv(folder / "truth.csv", **text).set_index("task")["label"]
    found = {}
    for name, settings in CROWDKIT.items():
        if (name == "KOS" and data["label"].nunique() != 2) or (
            name in SLOW and len(data) > SLOW_AT_MOST
        ):
            continue
        model = getattr(module, name)(**settings)
        known = data[data["worker"].isin(data[data["task"].isin(truth.index)]["worker"])]
        try:
            given = (known, truth) if name == "GoldMajorityVote" else (data,)
            found[f"{name}.fit_predict"] = model.fit_predict(*given)
        except Exception as error:  # what a library does not survive is a result, too
            found[f"{name}.error"] = type(error).__name__
            continue
        for part in LEARNED:
            if getattr(model, part, None) is not None:
                found[f"{name}.{part}"] = getattr(model, part)
    return found


def cleanlab(module, folder: Path) -> dict[str, object]:
    """Consensus, quality and active learning on a table of examples x annotators."""
    data = np.load(folder / "cleanlab.npz")
    labels, probs, fresh = data["labels"], data["pred_probs"], data["unlabeled"]
    frame = pd.DataFrame(labels, columns=[f"w{k}" for k in range(labels.shape[1])])
    found = {"get_majority_vote_label": module.get_majority_vote_label(labels, probs)}
    found |= judge(module, frame, probs, fresh)
    if hasattr(module, "value_counts"):
        mend(module)
    again = judge(module, frame, probs, fresh)
    counted = ("agreement", "calibrated", "active")  # what rests on counts of labels
    return found | {f"mended {n}": v for n, v in again.items() if n.startswith(counted)}


def mend(module) -> None:
    """Let cleanlab 2.9 count float labels by class; it counts them in order of appearance."""
    utils = import_module("cleanlab.internal.multiannotator_utils")
    for place in (module, utils):
        place.value_counts = lambda labels, num_classes: np.bincount(
            np.asarray(labels, dtype=int), minlength=num_classes
        )


def judge(module, frame, probs, fresh) -> dict[str, object]:
    found: dict[str, object] = {}
    cases = {
        "best_quality": {},
        "both": {"consensus_method": ["majority_vote", "best_quality"], "return_weights": True},
        "agreement": {"quality_method": "agreement", "consensus_method": "majority_vote"},
        "calibrated": {"calibrate_probs": True},
    }
    for case, settings in cases.items():
        info = module.get_label_quality_multiannotator(frame, probs, verbose=False, **settings)
        found |= {f"{case}.{key}": value for key, value in info.items()}
    scores = module.get_active_learning_scores(frame, probs, fresh)
    found |= {"active.labeled": np.asarray(scores[0]), "active.unlabeled": np.asarray(scores[1])}
    return found


def snorkel(module, folder: Path) -> dict[str, object]:
    """The label model on a matrix of examples x labeling functions."""
    data = np.load(folder / "snorkel.npz")
    L, truth = data["L"], data["Y"]
    found: dict[str, object] = {}
    balance = np.bincount(truth) / len(truth)
    for case, settings in {
        "plain": {},
        "balanced": {"class_balance": balance.tolist(), "n_epochs": 500},
        "dev": {"Y_dev": truth, "lr": 0.005, "prec_init": 0.8},
    }.items():
        random.seed(0)
        model = module.LabelModel(cardinality=len(balance), verbose=False)
        model.fit(L, seed=7, progress_bar=False, **settings)
        found[f"{case}.predict_proba"] = model.predict_proba(L)
        found[f"{case}.predict"] = model.predict(L)
        found[f"{case}.predict random"] = model.predict(L, tie_break_policy="random")
        found[f"{case}.get_weights"] = model.get_weights()
        found[f"{case}.get_conditional_probs"] = model.get_conditional_probs()
        found[f"{case}.score"] = pd.Series(
            model.score(L, truth, ["accuracy", "coverage", "f1_macro"])
        )
    voter = module.MajorityLabelVoter(cardinality=len(balance))
    found["MajorityLabelVoter.predict"] = voter.predict(L)
    found["MajorityLabelVoter.predict_proba"] = voter.predict_proba(L)
    return found


def describe(value: object) -> dict[str, object]:
    """A series, frame, array or number as plain values, with all its names."""
    if isinstance(value, pd.Series):
        return {"kind": "Series", "name": value.name, "index": names(value.index),
                "values": plain(value.to_numpy())}  # fmt: skip
    if isinstance(value, pd.DataFrame):
        return {"kind": "DataFrame", "index": names(value.index), "columns": names(value.columns),
                "values": plain(value.to_numpy())}  # fmt: skip
    return {"kind": "array", "values": plain(np.asarray(value))}


def names(index: pd.Index) -> dict[str, object]:
    return {"names": list(index.names), "values": [str(name) for name in index]}


def plain(values: np.ndarray) -> object:
    whole = values.dtype.kind in "iub"
    return {"kind": "whole" if whole else values.dtype.kind, "values": values.tolist()}


if __name__ == "__main__":
    main()
