from .feedback import FeedbackCallback
from .priority_starts import PriorityStarts
from .repair import RepairCallback
from .safety_test import SafetyTestCallback
from .shield import ShieldCallback
from .tester import SafetyPlan, SafetyResult

__all__ = [
    "FeedbackCallback",
    "PriorityStarts",
    "RepairCallback",
    "SafetyPlan",
    "SafetyResult",
    "SafetyTestCallback",
    "ShieldCallback",
]
