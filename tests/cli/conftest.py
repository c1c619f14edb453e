"""A small crowd with features, as files."""

import numpy as np
import pandas as pd
import pytest

from crowdwise.simulate import label_by_crowd, one_coin_confusion

NAMES = np.array(["no", "yes"])


class Files:
    """Paths of one crowd's annotations, truths and features."""

    def __init__(self, folder):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(80, 3))
        self.truth = (self.X[:, 0] > 0.3).astype(int)
        confusion = one_coin_confusion([0.9, 0.85, 0.8, 0.5], n_classes=2)
        crowd = label_by_crowd(self.truth, confusion, per_task=3, random_state=0)
        frame = crowd.to_frame()
        self.names = np.array([f"t{number}" for number in range(80)])
        frame = frame.assign(
            task=self.names[frame["task"]],
            worker=[f"w{worker}" for worker in frame["worker"]],
            label=NAMES[frame["label"]],
        )
        self.folder = folder
        self.votes = folder / "votes.csv"
        frame.to_csv(self.votes, index=False)
        self.gold = folder / "truth.csv"
        truths = pd.DataFrame({"task": self.names, "label": NAMES[self.truth]})
        truths.to_csv(self.gold, index=False)
        self.table = pd.DataFrame(self.X, columns=["a", "b", "c"]).assign(task=self.names)
        self.features = self.write("X.csv", self.table.sample(frac=1, random_state=1))

    def write(self, name, frame):
        """A table of features in the folder."""
        path = self.folder / name
        frame.to_parquet(path) if name.endswith("parquet") else frame.to_csv(path, index=False)
        return path


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


@pytest.fixture
def fails(capsys):
    """The message of a command that must fail, without a traceback."""
    from crowdwise.cli import main

    def run(*words, status=1):
        assert main([str(word) for word in words]) == status
        out, err = capsys.readouterr()
        assert out == ""
        assert "Traceback" not in err
        assert "this is a bug" not in err
        return err[err.rindex("crowdwise: ") :]

    return run


@pytest.fixture(scope="module", autouse=True)
def quick(quick_default):
    """Commands fit the default method again and again."""
