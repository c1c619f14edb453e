"""One epoch of NeuCrowd on Hotel: ours compared with a straightforward loop over groups.

The loop does the same work one group at a time, as a first version would: five rows through the
encoder, a loss, and backpropagation of the sum over a batch. Each measurement runs in a process
of its own; epochs of more and more groups show what memory depends on. On a GPU, where steps
cost the same for many groups as for few, larger batches are measured too, but not the loop:
with a few kernels for each group it would be slower there than on the CPU.

python benchmarks/embedding_speed.py [--device cuda]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

import numpy as np
import torch
from results_files import provenance, save, table

from crowdbench.sets import learning_set
from crowdwise import Annotations
from crowdwise.embed import Encoder, EuclideanSoftmax, NeuCrowd, robust_anchor
from crowdwise.embed.hard_groups import HardnessNet
from crowdwise.learn import Training

BATCH, HARD_RATE, N_NEGATIVES = 256, 2, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=60_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", default="embedding-speed")
    parser.add_argument("--once", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.once:
        data = learning_set("hotel")
        n_groups, batch = map(int, args.once[1:])
        found = TOOLS[args.once[0]](data.X, data.annotations, n_groups, batch, args.device)
        sys.stdout.write(json.dumps(found))
        return
    n, small = args.groups, args.device == "cpu"
    jobs = [("crowdwise", size, BATCH) for size in (n // 10, n, n * 5)]
    wide = [("crowdwise", size, 16 * BATCH) for size in (n, n * 5)]
    jobs += [("loop", n, BATCH)] if small else wide
    rows = [once(*job, args.device) for job in jobs]
    text = report(rows, "" if small else ", on a GPU")
    sys.stdout.write(text + "\n")
    about = provenance(f"python benchmarks/embedding_speed.py --device {args.device}")
    if not small:
        about["machine"] = f"{about['machine']}, {torch.cuda.get_device_name()}"
    save(args.output if small else f"{args.output}-{args.device}", about, rows, text)


def once(tool: str, n_groups: int, batch: int, device: str) -> dict[str, object]:
    """What one epoch took, in a process of its own on one core."""
    sizes = [str(n_groups), str(batch)]
    command = [sys.executable, __file__, "--once", tool, *sizes, "--device", device]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found = {"tool": tool, "groups": n_groups, "batch": batch, **json.loads(done.stdout)}
    sys.stderr.write(f"{found}\n")
    return found


def ours(
    X: np.ndarray, votes: Annotations, n_groups: int, batch: int, device: str
) -> dict[str, float]:
    """The second of two epochs: from then on safety and hardness are at work."""

    def fit(epochs: int, groups: int) -> float:
        training = Training(learning_rate=1e-3, batch_size=batch, epochs=epochs, device=device)
        model = NeuCrowd(groups_per_epoch=groups, training=training, random_state=0)
        start = clock(device)
        model.fit(X, votes)
        return clock(device) - start

    fit(2, batch)  # loads what is loaded lazily
    before = peak_mb()
    one, two = fit(1, n_groups), fit(2, n_groups)
    return {"seconds": two - one, "extra_mb": peak_mb() - before}


def loop(
    X: np.ndarray, votes: Annotations, n_groups: int, batch: int, device: str
) -> dict[str, float]:
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
    softmax = EuclideanSoftmax()
    optimizer = torch.optim.Adam([*encoder.parameters(), *hardness.parameters()], lr=1e-3)
    members = torch.arange(5, device=device)[None]
    for first in range(0, len(groups), HARD_RATE * batch):
        some = groups[first : first + HARD_RATE * batch]
        with torch.no_grad():
            score = [float(hardness(x[group], members)) for group in some]
        picked = [some[i] for i in np.argsort(score)[-batch:]]
        vectors = [encoder(x[group]) for group in picked]
        anchors = torch.stack([v[0] for v in vectors])
        weight = sure[[group[0] for group in picked]]
        kind = torch.ones(len(picked), dtype=torch.long, device=device)
        anchor = robust_anchor(anchors, weight, kind, 2)[:1]
        total = torch.zeros((), device=device)
        for group, vector in zip(picked, vectors, strict=True):
            loss = softmax.compare(anchor, vector[None, 1:], sure[group[1:]][None])[0]
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


def report(rows: list[dict], where: str = "") -> str:
    for row in rows:
        row["microseconds"] = row["seconds"] / row["groups"] * 1e6
    header = ["tool", "groups", "batch", "seconds", "µs per group", "extra MB"]
    lines = [
        [
            row["tool"],
            f"{row['groups']:,}",
            f"{row['batch']:,}",
            f"{row['seconds']:.2f}",
            f"{row['microseconds']:.1f}",
            f"{row['extra_mb']:.0f}",
        ]
        for row in rows
    ]
    if rows[-1]["tool"] == "loop":
        header.append("times faster")
        for line, row in zip(lines, rows, strict=True):
            line.append(f"{rows[-1]['microseconds'] / row['microseconds']:.0f} x")
    return f"# One epoch of NeuCrowd on Hotel{where}\n\n" + table(header, lines)


TOOLS = {"crowdwise": ours, "loop": loop}

if __name__ == "__main__":
    main()
