"""Sets of start states: counted, drawn uniformly, listed, tested."""

from safetest_gym.starts.base import StartSet
from safetest_gym.starts.condition import ConditionStarts, Satisfies
from safetest_gym.starts.listed import ListedStarts
from safetest_gym.starts.making import default_condition, default_starts, make_starts

__all__ = [
    "ConditionStarts",
    "ListedStarts",
    "Satisfies",
    "StartSet",
    "default_condition",
    "default_starts",
    "make_starts",
]
