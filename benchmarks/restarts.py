"""What ten restarts cost: SpeeLFC on MGC from one start, and from ten trained side by side.

The last line is a whole fit as in the table speelfc-table2: ten starts, stopped and selected by
held-out labels.

python benchmarks/restarts.py
"""

import os
import statistics
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "2")

from results_files import provenance, save, table

from crowdbench.registry import table as published_table
from crowdbench.sets import LearningSet, learning_set
from crowdwise.learn import SpeeLFC, Training

REPEATS = 5
EPOCHS = 500


def main() -> None:
    data = learning_set("mgc")
    rows = []
    for n_restarts in (1, 10):
        training = Training(
            learning_rate=1e-2, epochs=EPOCHS, patience=EPOCHS, n_restarts=n_restarts
        )
        found = measure(SpeeLFC(training=training), data)
        rows.append({"restarts": f"{n_restarts}, {EPOCHS} epochs", **found})
    for row in rows:
        row["ratio"] = row["seconds"] / rows[0]["seconds"]
    whole = published_table("speelfc-table2").rows["SpeeLFC"].make("MGC")
    rows.append({"restarts": "10, stopped by held-out labels", **measure(whole, data)})
    header = ["restarts", "seconds", "times one", "test accuracy"]
    lines = [
        [
            row["restarts"],
            f"{row['seconds']:.2f}",
            f"{row['ratio']:.2f}" if "ratio" in row else "",
            f"{row['accuracy']:.4f}",
        ]
        for row in rows
    ]
    text = "# Ten restarts as one ensemble\n\n" + table(header, lines)
    sys.stdout.write(text + "\n")
    save("restarts", provenance("python benchmarks/restarts.py"), rows, text)


def measure(model: SpeeLFC, data: LearningSet) -> dict[str, float]:
    """Median time of a fit, and mean accuracy on the test tasks."""
    seconds, right = [], []
    for seed in range(REPEATS + 1):  # the first one warms up
        start = time.perf_counter()
        model.set_params(random_state=seed).fit(data.X, data.annotations)
        seconds.append(time.perf_counter() - start)
        right.append(float((model.predict(data.X_test) == data.y_test).mean()))
    return {"seconds": statistics.median(seconds[1:]), "accuracy": statistics.mean(right)}


if __name__ == "__main__":
    main()
