"""What a debugging loop is to do, and when it is to stop."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from safetest_gym.campaign.pipeline import TestPlan
from safetest_gym.deciders import Budget
from safetest_gym.errors import ConfigError
from safetest_gym.policies import EvaluationConfig, Policy
from safetest_gym.repair.repairing import RepairOptions, default_methods

__all__ = ["BUDGETS", "REPAIR_GAP", "REPAIR_WORK", "DebugConfig", "DebugEnd"]

DebugEnd = Literal[
    "proof",
    "no-fault",
    "unavoidable",
    "unresolved",
    "stuck",
    "iterations",
    "seconds",
    "repair-failed",
]
REPAIR_WORK, REPAIR_GAP = 5.0, 0.02
"""When a repair of a loop is good enough; faults found later make most of them begin anew."""

BUDGETS = ("iterations", "seconds")
"""Ends after which a loop goes on when it is given more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DebugConfig:
    """How to find faults, how to repair, and when to stop.

    The result depends on no clock unless ``seconds``, or a limit of time within ``repair`` or
    ``verify_budget``, is given and reached.

    Attributes:
        repair: by default `default_methods` of the policy, each repair being improved by
            `REPAIR_WORK` or until it is within `REPAIR_GAP` of the least change.
        test: fuzzing and fault analysis of every policy, with its budgets; the policy's
            number is added to the seed, so that every test does new runs.
        exhaust: after the runs, so many of the states that the policy can visit from the
            debugging starts are searched for faults, too; 0 for none.
        iterations: repairs at most.
        seconds: of the whole loop; what is at work then ends soon, and what it did not come to
            is done when the loop goes on with more.
        debugging_starts: start states that faults are looked for from.
        evaluation_starts: others, for %Unsafe and %Goal.
        runs_per_start: sampled for %Goal.
        keep: safe decisions on runs to the goal that a repair shall keep if it can; 0 for
            none, and then a change for a few faults can move all other decisions.
        keep_penalty: what giving one of them up may cost, in units of change.
        verify: how a policy without a new fault is verified, see `safetest_gym.verify.verify`;
            the faults of an unsafe run that this finds are repaired, too.
        verify_budget: of each verification; it answers UNKNOWN beyond. With seconds in it the
            result depends on the machine, without them it does not.
        settle: of tree ensembles: once so many verifications have found unsafe runs, new faults
            get penalty trees on top of the newest policy, which change no other decision, so
            that what is left becomes less and less; 0 for never.
        visited: states on the input policy's runs where side effects are counted.
    """

    repair: RepairOptions | None = None
    test: TestPlan = field(default_factory=lambda: TestPlan(runs=10_000))
    exhaust: int = 20_000
    iterations: int = 20
    seconds: float = math.inf
    debugging_starts: int = 10_000
    evaluation_starts: int = 1_000
    runs_per_start: int = 10
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    keep: int = 500
    keep_penalty: float = 1.0
    verify: Literal["none", "auto", "explicit", "abstract"] = "auto"
    verify_budget: Budget = field(default_factory=lambda: Budget(megabytes=1000))
    settle: int = 2
    visited: int = 2_000

    def __post_init__(self) -> None:
        counts = (self.iterations, self.keep, self.visited, self.exhaust, self.settle)
        if min(counts) < 0 or not self.seconds > 0:
            raise ConfigError(
                "iterations, keep, visited, exhaust and settle must not be negative, seconds "
                "must be positive"
            )

    def options_for(self, policy: Policy) -> RepairOptions:
        """How this policy is repaired."""
        return self.repair or RepairOptions(
            method=default_methods(policy), work=REPAIR_WORK, gap=REPAIR_GAP
        )

    def as_dict(self, policy: Policy) -> dict[str, Any]:
        """What decides the result, budgets of the whole loop left out; plain data."""
        data = asdict(replace(self, repair=self.options_for(policy)))
        return {key: _plain(value) for key, value in data.items() if key not in BUDGETS}


def _plain(value: Any) -> Any:
    """As JSON gives it back."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value
