"""A policy that mostly knows better: good enough to be worth testing, with holes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders import Budget, make_decider
from safetest_gym.deciders.base import Decider
from safetest_gym.policies import Interface, RandomPolicy
from safetest_gym.task import Task

__all__ = ["CarefulPolicy"]


@dataclass(eq=False)
class CarefulPolicy:
    """A random policy that takes a safe action instead, but for one state in ``holes``."""

    task: Task
    inner: RandomPolicy
    decider: Decider
    holes: int

    @classmethod
    def of(
        cls, task: Task, seed: int, holes: int = 30, budget: Budget | None = None
    ) -> CarefulPolicy:
        inner = RandomPolicy(Interface.of(task), seed)
        return cls(task, inner, make_decider("otf", task, budget=budget), holes)

    @property
    def interface(self) -> Interface:
        return self.inner.interface

    def bind(self, task: Any) -> CarefulPolicy:
        return self

    def native(self) -> None:
        return None

    def actions(self, states: NDArray[Any], applicable: NDArray[np.bool_]) -> NDArray[np.int64]:
        chance = RandomPolicy(
            Interface(("x",), tuple(f"a{n}" for n in range(self.holes))), self.inner.seed + 1
        )
        keys = (states * (1 + np.arange(states.shape[1]))).sum(axis=1).reshape(-1, 1)
        careless = chance.actions(keys, np.ones((len(states), self.holes), np.bool_)) == 0
        safe = (self.decider.action_verdicts(states) == 1) & applicable
        masks = np.where((careless | ~safe.any(axis=1))[:, None], applicable, safe)
        return self.inner.actions(states, masks)
