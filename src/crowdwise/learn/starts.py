"""Where confusion matrices start when they do not all start alike."""

from torch import Tensor

from crowdwise.nets.batches import CrowdData, as_shares, label_shares


def counted(data: CrowdData, smoothing: float) -> Tensor:
    """Log P(label | truth) of each worker, where truths are the tasks' shares of labels."""
    shares = label_shares(data)
    label = as_shares(data.label, data.n_classes)
    count = shares.new_full((data.n_workers, data.n_classes, data.n_classes), smoothing)
    pairs = shares[data.task][:, :, None] * (label * data.weight[:, None])[:, None, :]
    count = count.index_add(0, data.worker, pairs)
    return (count / count.sum(dim=-1, keepdim=True)).log()
