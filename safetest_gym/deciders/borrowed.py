"""Certificates for algorithms whose facts do not support each other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from safetest_gym.deciders.base import Decider
from safetest_gym.deciders.otf import OtfDecider
from safetest_gym.deciders.space import Order
from safetest_gym.deciders.verdict import Budget, Verdict
from safetest_gym.errors import LimitError

if TYPE_CHECKING:
    from safetest_gym.deciders.certificate import Certificate
    from safetest_gym.policies.policy import Policy
    from safetest_gym.task import Task

__all__ = ["BorrowingDecider"]


class BorrowingDecider(Decider):
    """Decides by itself and has its verdicts proved by otf."""

    def __init__(
        self,
        task: Task,
        *,
        policy: Policy | None = None,
        radius: float = math.inf,
        order: Order = "app",
        budget: Budget | None = None,
    ) -> None:
        super().__init__(task, policy=policy, radius=radius, order=order, budget=budget)
        self._followed = policy

    def follow(self, policy: Policy) -> None:
        super().follow(policy)
        self._followed = policy

    def certificate(self, state: NDArray[Any]) -> Certificate:
        """A proof of the verdict of ``state``, found by otf within the same budget."""
        if self.decide(state) is Verdict.UNKNOWN:
            raise LimitError(f"the budget {self.budget} ended before the state was decided")
        prover = OtfDecider(
            self.task, policy=self._followed, radius=self.radius, budget=self.budget
        )
        return prover.certificate(state)
