"""What ten restarts cost: SpeeLFC on MGC from one start, and from ten trained side by side.

python benchmarks/restarts.py
"""

import os
import statistics
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "2")

from results_files import provenance, save, table

from crowdwise.bench.sets import learning_set
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
        seconds, right = [], []
        for seed in range(REPEATS + 1):  # the first one warms up
            start = time.perf_counter()
            model = SpeeLFC(training=training, random_state=seed)
            model.fit(data.X, data.annotations)
            seconds.append(time.perf_counter() - start)
            right.append(float((model.predict(data.X_test) == data.y_test).mean()))
        row = {"restarts": n_restarts, "seconds": statistics.median(seconds[1:])}
        rows.append({**row, "accuracy": statistics.mean(right)})
    for row in rows:
        row["ratio"] = row["seconds"] / rows[0]["seconds"]
    header = ["restarts", f"seconds, {EPOCHS} epochs", "times one", "test accuracy"]
    lines = [
        [
            str(row["restarts"]),
            f"{row['seconds']:.2f}",
            f"{row['ratio']:.2f}",
            f"{row['accuracy']:.4f}",
        ]
        for row in rows
    ]
    text = "# Ten restarts as one ensemble\n\n" + table(header, lines)
    sys.stdout.write(text + "\n")
    save("restarts", provenance("python benchmarks/restarts.py"), rows, text)


if __name__ == "__main__":
    main()
