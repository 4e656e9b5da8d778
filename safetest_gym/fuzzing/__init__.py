"""Test-case generation: runs of a policy that look for trouble, and pools of test states."""

from safetest_gym.fuzzing.biases import Bias
from safetest_gym.fuzzing.fuzzer import FuzzBudget, Fuzzer, Strategy
from safetest_gym.fuzzing.graph import Distance, PolicyGraph
from safetest_gym.fuzzing.operators import Backward, Forward, Operator, Perturb, Reached
from safetest_gym.fuzzing.pool import PoolConfig, PoolFuzzer, TestState
from safetest_gym.fuzzing.runs import End, Run, Runs

__all__ = [
    "Backward",
    "Bias",
    "Distance",
    "End",
    "Forward",
    "FuzzBudget",
    "Fuzzer",
    "Operator",
    "Perturb",
    "PolicyGraph",
    "PoolConfig",
    "PoolFuzzer",
    "Reached",
    "Run",
    "Runs",
    "Strategy",
    "TestState",
]
