"""Agreement, accuracy, calibration and worker quality, with intervals on all of them."""

from crowdwise.evaluate.agreement import (
    agreement,
    fleiss_kappa,
    gwet_ac,
    krippendorff_alpha,
    observed_agreement,
)
from crowdwise.evaluate.calibration import (
    confidence_auroc,
    expected_calibration_error,
    reliability_table,
)
from crowdwise.evaluate.cohen import cohen_kappa, cohen_kappa_matrix
from crowdwise.evaluate.intervals import Estimate, bootstrap, credible, wilson
from crowdwise.evaluate.scores import (
    accuracy,
    balanced_accuracy,
    brier_score,
    class_f1,
    class_recall,
    log_loss,
    macro_f1,
    score,
)
from crowdwise.evaluate.workers import worker_quality

__all__ = [
    "Estimate",
    "accuracy",
    "agreement",
    "balanced_accuracy",
    "bootstrap",
    "brier_score",
    "class_f1",
    "class_recall",
    "cohen_kappa",
    "cohen_kappa_matrix",
    "confidence_auroc",
    "credible",
    "expected_calibration_error",
    "fleiss_kappa",
    "gwet_ac",
    "krippendorff_alpha",
    "log_loss",
    "macro_f1",
    "observed_agreement",
    "reliability_table",
    "score",
    "wilson",
    "worker_quality",
]
