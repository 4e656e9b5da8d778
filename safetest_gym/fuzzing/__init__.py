"""Test-case generation: runs of a policy that look for trouble, and pools of test states."""

from safetest_gym.fuzzing.fuzzer import FuzzBudget, Fuzzer, Strategy
from safetest_gym.fuzzing.graph import Distance, PolicyGraph
from safetest_gym.fuzzing.runs import End, Run, Runs

__all__ = [
    "Distance",
    "End",
    "FuzzBudget",
    "Fuzzer",
    "PolicyGraph",
    "Run",
    "Runs",
    "Strategy",
]
