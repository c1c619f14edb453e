"""What to label next, by whom, and when to stop."""

from crowdwise.plan.feature_skills import FeatureSkills
from crowdwise.plan.outlook import Outlook
from crowdwise.plan.planner import Planner
from crowdwise.plan.policies import (
    AccuracyGain,
    FewestLabels,
    InformationGain,
    LeastConfident,
    Policy,
    RandomTasks,
)
from crowdwise.plan.promise import MOST_TRUTHS, Promise, truths_needed
from crowdwise.plan.skills import PlainSkills, PredictedSkills, Skills

__all__ = [
    "MOST_TRUTHS",
    "AccuracyGain",
    "FeatureSkills",
    "FewestLabels",
    "InformationGain",
    "LeastConfident",
    "Outlook",
    "PlainSkills",
    "Planner",
    "Policy",
    "PredictedSkills",
    "Promise",
    "RandomTasks",
    "Skills",
    "truths_needed",
]
