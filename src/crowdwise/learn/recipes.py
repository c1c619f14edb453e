"""Settings that several methods share."""

from typing import Any

from crowdwise.nets.modules import MLP
from crowdwise.nets.training import Training

# One recipe for all methods, from the comparison in the maml package of Herde and others;
# theirs also has batch normalization.
MAML: dict[str, Any] = {
    "truth": MLP(hidden=(256, 128), dropout=0.5),
    "training": Training(
        optimizer="radam", learning_rate=1e-2, schedule="cosine", batch_size=64, epochs=50
    ),
}

# Noise that depends on features can explain the classes as well as the errors. The classifier is
# given the larger steps and the noise a penalty, so that the classes are learned first.
CAREFUL = Training(
    learning_rate={"truth": 3e-2, "noise": 1e-3}, weight_decay={"noise": 1e-2}, epochs=300
)
