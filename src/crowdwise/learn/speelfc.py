"""SpeeLFC: a classifier and a confusion matrix per worker, trained end to end."""

from crowdwise.learn.crowd_classifier import CrowdClassifier
from crowdwise.learn.parts import NoisePart, ObjectivePart, PerAnnotation, WorkerConfusion
from crowdwise.nets.modules import MLP, NetworkLike
from crowdwise.nets.training import Training
from crowdwise.typing import RandomState


class SpeeLFC(CrowdClassifier):
    """Learn a classifier through a probabilistic crowd layer.

    Worker ``w`` gives label ``l`` to a task with features ``x`` with probability
    ``sum_k truth(x)[k] * confusion_[w, k, l]``; both are learned by maximizing the likelihood of
    every annotation on its own. Rows of the confusion matrices are softmaxes, so they are
    interpretable probabilities.

    Parameters
    ----------
    truth : "linear", MLP, torch.nn.Module or function, default="linear"
        The classifier.
    penalty, prior : float or "auto", default="auto"
        Regularization of the classifier and of the workers' parameters; see
        :class:`crowdwise.learn.CrowdClassifier`.
    diagonal, off_diagonal : float, default=4.7 and 1.0
        Initial values of the free matrices: at first, a worker is right with
        probability ``exp(diagonal) / (exp(diagonal) + (n_classes - 1) * exp(off_diagonal))``.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    training : Training, optional
        How to train; ``SpeeLFC.default_training`` if not given.
    random_state : int or RandomState, optional
        Random seed of initialization, batches, dropout and held-out labels.

    Attributes
    ----------
    posterior_, confusion_, worker_accuracy_, history_, search_, net_
        See :class:`crowdwise.learn.CrowdClassifier`.

    Notes
    -----
    The maths::

        P(w gives i the label l) = sum over k of truth(x_i)[k] * confusion[w, k, l]
        loss = - mean over annotations of log P(label), confusion[w, k] = softmax(free[w, k])

    Works when features separate the classes and workers have a few dozen labels; one label
    per task is enough.

    Fails when workers have few labels for the number of classes (use SpeeLFCD), when a strong
    network memorizes single tasks (hold tasks out, stop early), and when workers start below
    chance.

    References
    ----------
    Chen, Wang, Sun, Chen, Han, Liu and Yang (2020). Structured probabilistic end-to-end
    learning from crowds. IJCAI. doi:10.24963/ijcai.2020/210

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(SpeeLFC(random_state=0).fit(X, votes).score(X, truth) > 0.9)
    True
    """

    recipes = {
        "mgc": {
            "truth": "linear",
            "diagonal": 4.7,
            "penalty": 0.0,
            "prior": 0.0,
            "scale": False,
            "training": Training(learning_rate=1e-3, batch_size=64, batch_of="tasks", epochs=5000),
        },
        "spc": {
            "truth": MLP(hidden=(1200,), dropout=0.5),
            "diagonal": 1.4,
            "penalty": 0.0,
            "prior": 0.0,
            "scale": False,
            "training": Training(learning_rate=1e-4, batch_size=64, batch_of="tasks", epochs=200),
        },
    }

    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        **WorkerConfusion._parameter_constraints,
    }

    def __init__(
        self,
        *,
        truth: NetworkLike = "linear",
        penalty: float | str = "auto",
        prior: float | str = "auto",
        diagonal: float = 4.7,
        off_diagonal: float = 1.0,
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.truth = truth
        self.penalty = penalty
        self.prior = prior
        self.diagonal = diagonal
        self.off_diagonal = off_diagonal
        self.scale = scale
        self.training = training
        self.random_state = random_state

    def _noise(self) -> NoisePart:
        return WorkerConfusion(self.diagonal, self.off_diagonal)

    def _objective(self) -> ObjectivePart:
        return PerAnnotation()
