"""One epoch of NeuCrowd on Hotel: ours against a straightforward loop over groups.

The loop does the same work one group at a time, as a first version of it would: five rows
through the encoder, a loss, and the sum of a batch backwards. Each measurement runs in a process
of its own; epochs of ever more groups show what memory depends on.

python benchmarks/embedding_speed.py
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

import numpy as np
import real_crowds
import torch
from results_files import provenance, save, table

from crowdwise import Annotations
from crowdwise.embed import Encoder, GroupSoftmax, HardnessNet, NeuCrowd, robust_anchor
from crowdwise.learn import Training

BATCH, HARD_RATE, N_NEGATIVES = 256, 2, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=60_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", default="embedding-speed")
    parser.add_argument("--once", nargs=2, metavar=("TOOL", "GROUPS"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.once:
        found = TOOLS[args.once[0]](*hotel(), int(args.once[1]), args.device)
        sys.stdout.write(json.dumps(found))
        return
    jobs = [("crowdwise", n) for n in (args.groups // 10, args.groups, args.groups * 5)]
    rows = [once(tool, n, args.device) for tool, n in [*jobs, ("loop", args.groups)]]
    text = report(rows, args.groups)
    sys.stdout.write(text + "\n")
    name = args.output if args.device == "cpu" else f"{args.output}-{args.device}"
    save(
        name, provenance(f"python benchmarks/embedding_speed.py --device {args.device}"), rows, text
    )


def once(tool: str, n_groups: int, device: str) -> dict[str, object]:
    """What one epoch took, in a process of its own on one core."""
    command = [sys.executable, __file__, "--once", tool, str(n_groups), "--device", device]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found = {"tool": tool, "groups": n_groups, **json.loads(done.stdout)}
    sys.stderr.write(f"{found}\n")
    return found


def hotel() -> tuple[np.ndarray, Annotations]:
    """Features and labels of the published training part."""
    import pandas as pd

    root = real_crowds.folder() / "hotel"
    split = pd.read_csv(root / "split.csv").set_index("task")["split"]
    tasks = split.index[split == "train"].to_numpy()
    stored = np.load(root / "features.npz", allow_pickle=False)
    X = pd.DataFrame(stored["X"], index=stored["task"].astype(str)).loc[tasks].to_numpy()
    labels = pd.read_csv(root / "annotations.csv.gz")
    return X, Annotations.from_frame(labels[labels["task"].isin(tasks)], tasks=tasks)


def ours(X: np.ndarray, votes: Annotations, n_groups: int, device: str) -> dict[str, float]:
    """The second of two epochs: from then on safety and hardness are at work."""

    def fit(epochs: int, groups: int) -> float:
        training = Training(learning_rate=1e-3, batch_size=BATCH, epochs=epochs, device=device)
        model = NeuCrowd(groups_per_epoch=groups, training=training, random_state=0)
        start = clock(device)
        model.fit(X, votes)
        return clock(device) - start

    fit(2, BATCH)  # loads what is loaded lazily
    before = peak_mb()
    one, two = fit(1, n_groups), fit(2, n_groups)
    return {"seconds": two - one, "extra_mb": peak_mb() - before}


def loop(X: np.ndarray, votes: Annotations, n_groups: int, device: str) -> dict[str, float]:
    """All groups in a list, then one after the other; the safe set is left out."""
    torch.manual_seed(0)
    rng, before = np.random.default_rng(0), peak_mb()
    x = torch.as_tensor((X - X.mean(0)) / X.std(0), dtype=torch.float32, device=device)
    share = votes.shares()[:, 1]
    sure = torch.as_tensor(np.abs(1 - 2 * share), dtype=torch.float32, device=device)
    positives, negatives = np.flatnonzero(share > 0.5), np.flatnonzero(share <= 0.5)
    start = clock(device)
    groups = [
        [
            *rng.choice(positives, 2, replace=False).tolist(),
            *rng.choice(negatives, N_NEGATIVES, replace=False).tolist(),
        ]
        for _ in range(HARD_RATE * n_groups)
    ]
    encoder = Encoder().build(x.shape[1]).to(device)
    hardness = HardnessNet(Encoder(dropout=0.0).build(x.shape[1]), 5, 32).to(device)
    softmax = GroupSoftmax(similarity="euclidean")
    optimizer = torch.optim.Adam([*encoder.parameters(), *hardness.parameters()], lr=1e-3)
    members = torch.arange(5, device=device)[None]
    for first in range(0, len(groups), HARD_RATE * BATCH):
        some = groups[first : first + HARD_RATE * BATCH]
        with torch.no_grad():
            score = [float(hardness(x[group], members)) for group in some]
        picked = [some[i] for i in np.argsort(score)[-BATCH:]]
        vectors = [encoder(x[group]) for group in picked]
        anchors = torch.stack([v[0] for v in vectors])
        weight = sure[[group[0] for group in picked]]
        kind = torch.ones(len(picked), dtype=torch.long, device=device)
        anchor = robust_anchor(anchors, weight, kind, 2)[:1]
        total = torch.zeros((), device=device)
        for group, vector in zip(picked, vectors, strict=True):
            loss = softmax(anchor, vector[None, 1:], sure[group[1:]][None])[0]
            total = total + loss + (hardness(x[group], members)[0] - loss.detach()) ** 2
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    return {"seconds": clock(device) - start, "extra_mb": peak_mb() - before}


def clock(device: str) -> float:
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(rows: list[dict], n_groups: int) -> str:
    slow = next(row["seconds"] for row in rows if row["tool"] == "loop")
    lines = [
        [
            row["tool"],
            f"{row['groups']:,}",
            f"{row['seconds']:.2f}",
            f"{row['seconds'] / row['groups'] * 1e6:.1f}",
            f"{row['extra_mb']:.0f}",
            f"{slow / row['seconds']:.0f} x" if row["groups"] == n_groups else "",
        ]
        for row in rows
    ]
    header = ["tool", "groups", "seconds", "µs per group", "extra MB", "times faster"]
    return "# One epoch of NeuCrowd on Hotel\n\n" + table(header, lines)


TOOLS = {"crowdwise": ours, "loop": loop}

if __name__ == "__main__":
    main()
