"""What every repair method is given and gives back."""

from __future__ import annotations

from dataclasses import dataclass, field

from safetest_gym.policies.policy import Policy
from safetest_gym.repair.least_change import Limits
from safetest_gym.repair.problem import Variant
from safetest_gym.repair.solver import SolverChoice

__all__ = ["MARGIN", "Outcome", "Settings"]

MARGIN = 1e-3
"""By how much a good action must win: far above what sums in float32 are off."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """How to repair."""

    variant: Variant
    solver: SolverChoice
    limits: Limits
    margin: float = MARGIN


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """A repaired policy, and what `safetest_gym.repair.report.RepairReport` says about it.

    Attributes:
        final: nothing is gained by asking again with a wider margin.
    """

    policy: Policy
    algorithm: str
    objective: float
    lower_bound: float
    changed: int
    trees_added: int = 0
    notes: tuple[str, ...] = field(default=())
    final: bool = False
