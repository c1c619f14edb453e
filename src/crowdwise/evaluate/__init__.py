"""Agreement, accuracy, calibration and worker quality, all with intervals."""

from crowdwise.evaluate.advice import advise
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
from crowdwise.evaluate.certainty import certainty
from crowdwise.evaluate.cohen import cohen_kappa, cohen_kappa_matrix
from crowdwise.evaluate.comparison import Comparison, compare_methods
from crowdwise.evaluate.dependence import Dependence, dependence
from crowdwise.evaluate.gold_estimate import GoldEstimate, estimate
from crowdwise.evaluate.imbalance import balanced_threshold, rebalance
from crowdwise.evaluate.independence import Independence, check_independence
from crowdwise.evaluate.intervals import Estimate, bootstrap, credible, wilson
from crowdwise.evaluate.label_uncertainty import Uncertainty, uncertainty
from crowdwise.evaluate.panel_assessment import PanelAssessment, assess_panel
from crowdwise.evaluate.replacement import Replacement, replaceable
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
    "Comparison",
    "Dependence",
    "Estimate",
    "GoldEstimate",
    "Independence",
    "PanelAssessment",
    "Replacement",
    "Uncertainty",
    "accuracy",
    "advise",
    "agreement",
    "assess_panel",
    "balanced_accuracy",
    "balanced_threshold",
    "bootstrap",
    "brier_score",
    "certainty",
    "check_independence",
    "class_f1",
    "class_recall",
    "cohen_kappa",
    "cohen_kappa_matrix",
    "compare_methods",
    "confidence_auroc",
    "credible",
    "dependence",
    "estimate",
    "expected_calibration_error",
    "fleiss_kappa",
    "gwet_ac",
    "krippendorff_alpha",
    "log_loss",
    "macro_f1",
    "observed_agreement",
    "rebalance",
    "reliability_table",
    "replaceable",
    "score",
    "uncertainty",
    "wilson",
    "worker_quality",
]
