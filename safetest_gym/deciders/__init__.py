"""Is a state safe? Several algorithms behind one interface."""

from safetest_gym.deciders.verdict import Budget, Statistics, Verdict

__all__ = ["Budget", "Statistics", "Verdict"]
