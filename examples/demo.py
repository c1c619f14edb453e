"""A labeling job from end to end, on a simulated crowd whose truth is known.

Thirty workers labeled a thousand tasks, five labels each; four of them did not look. We measure
their agreement, infer the labels, find the spammers, and see who was right. The files that a
real job would need are left in the folder demo/.
"""

import sys
import time
from pathlib import Path

from crowdwise import aggregate
from crowdwise.data.write import consensus_frame, write_labels
from crowdwise.evaluate import agreement, score, worker_quality
from crowdwise.simulate import simulate_crowd

OUT = Path("demo")
METHODS = ("MajorityVote", "Wawa", "OneCoin", "MACE", "IBCC", "DawidSkene")


def main() -> None:
    OUT.mkdir(exist_ok=True)
    crowd = simulate_crowd(1000, 30, 4, 5, spammers=4 / 30, random_state=0)
    votes = crowd.annotations
    votes.to_frame().to_csv(OUT / "votes.csv", index=False)
    print(f"A simulated crowd: {votes}\n")

    print("How much do the workers agree?\n")
    print(agreement(votes, random_state=0).iloc[:, :3].round(3).to_string(), "\n")

    print("One label per task: how many are right, and how honest is the confidence?\n")
    print(f"{'method':<14}{'accuracy':>10}{'log loss':>10}{'calibration error':>20}{'seconds':>10}")
    for name in METHODS:
        model = getattr(aggregate, name)()
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        start = time.perf_counter()
        model.fit(votes)
        seconds = time.perf_counter() - start
        found = score(model, dict(enumerate(crowd.truth)))["value"]
        line = (found["accuracy"], found["log loss"], found["calibration error"], seconds)
        print(f"{name:<14}{line[0]:>10.3f}{line[1]:>10.3f}{line[2]:>20.3f}{line[3]:>10.3f}")

    model = aggregate.DawidSkene().fit(votes)
    write_labels(OUT / "labels.csv", consensus_frame(model, votes))
    workers = worker_quality(votes, model)
    workers.to_csv(OUT / "workers.csv")
    flagged = workers[workers["flag"] != ""]
    print("\nWhom should we not trust? (workers 0 to 3 are the ones who did not look)\n")
    print(flagged.iloc[:, :4].round(3).assign(flag=flagged["flag"]).to_string())
    print("\nWritten: demo/votes.csv, demo/labels.csv, demo/workers.csv")
    print("The same on the command line:")
    print("  .venv/bin/crowdwise aggregate demo/votes.csv -o demo/labels.csv")
    print("  .venv/bin/crowdwise workers demo/votes.csv")
    print("  .venv/bin/crowdwise agreement demo/votes.csv")


if __name__ == "__main__":
    sys.exit(main())
