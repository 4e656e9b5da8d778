"""Stable-Baselines3's face: callbacks that test, shield and teach while a policy trains.

Names are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from safetest_gym.callbacks.feedback import FeedbackCallback
    from safetest_gym.callbacks.priority_starts import PriorityStarts
    from safetest_gym.callbacks.repair import RepairCallback
    from safetest_gym.callbacks.safety_test import SafetyTestCallback
    from safetest_gym.callbacks.shield import ShieldCallback
    from safetest_gym.callbacks.tester import SafetyPlan, SafetyResult

__all__ = [
    "FeedbackCallback",
    "PriorityStarts",
    "RepairCallback",
    "SafetyPlan",
    "SafetyResult",
    "SafetyTestCallback",
    "ShieldCallback",
]

_HOMES = {
    "FeedbackCallback": "feedback",
    "PriorityStarts": "priority_starts",
    "RepairCallback": "repair",
    "SafetyPlan": "tester",
    "SafetyResult": "tester",
    "SafetyTestCallback": "safety_test",
    "ShieldCallback": "shield",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"safetest_gym.callbacks.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
