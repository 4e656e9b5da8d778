"""Testing objectives: what a policy is worth in a state, and what the best one is ([F], [D]).

Every objective is a backup over choices and outcomes. The same code gives the policy's value
(its own choices) and the optimal one (all choices); where the graph was cut off, both are
bounds. Runs end in failing states, goal states and dead ends, in that order of tests.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError
from safetest_gym.faults.task_graph import Part, TaskGraph

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = [
    "Bounds",
    "FailureAvoidance",
    "GoalReaching",
    "Objective",
    "Safety",
    "SoftGoals",
    "StepCost",
]

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Values of states lie between ``low`` and ``high``, the numbers, both included."""

    low: Reals
    high: Reals


class Objective(ABC):
    """A value V of policies in states.

    Attributes:
        minimize: are smaller values better?
        worst, best: what no value is beyond.
    """

    minimize: bool
    worst: float
    best: float

    @property
    def name(self) -> str:
        """For reports."""
        return type(self).__name__

    def better(self, first: float, second: float) -> bool:
        """Is the first value strictly better ([D] Def. 7)?"""
        return first < second if self.minimize else first > second

    @abstractmethod
    def final(self, graph: TaskGraph) -> Reals:
        """Values of states where runs end; of the others, the value without any step."""

    @abstractmethod
    def backup(self, part: Part, values: Reals) -> Reals:
        """Values one step earlier, of the states that act in ``part``, in their order."""

    def values(self, part: Part, *, fewer: int = 0) -> Bounds:
        """Value of the best policy within ``part``, per state of its graph.

        Args:
            fewer: for objectives with a bound on steps: that many steps fewer.
        """
        sides = []
        for cut in (self.best, self.worst):
            values = self.final(part.graph)
            values[part.graph.open] = cut
            sides.append(self._solve(part, values, fewer))
        low, high = sides if self.minimize else sides[::-1]
        return Bounds(low, high)

    def _solve(self, part: Part, values: Reals, fewer: int) -> Reals:
        """Iterate the backup from the values without any step until nothing changes."""
        while len(part.acting):
            changed = self.backup(part, values)
            if np.array_equal(changed, values[part.acting]):
                break
            values[part.acting] = changed
        return values

    def lookahead(self, graph: TaskGraph, depth: int) -> Bounds:
        """Values of the best policy that follows the tested one after ``depth`` steps."""
        bounds = self.values(graph.policy_choices(), fewer=depth)
        part = graph.all_choices()
        for _ in range(depth):
            for side in (bounds.low, bounds.high):
                side[part.acting] = self.backup(part, side)
        return bounds

    def _pick(self, part: Part, per_choice: Reals) -> Reals:
        best: Reals = part.best(np.minimum if self.minimize else np.maximum, per_choice)
        return best


class Safety(Objective):
    """[J] Def. 1: 1 if the policy can fail, else 0."""

    minimize = True
    worst, best = 1.0, 0.0

    def final(self, graph: TaskGraph) -> Reals:
        return graph.failures()

    def backup(self, part: Part, values: Reals) -> Reals:
        return self._pick(part, part.outcomes(np.maximum, values))


class GoalReaching(Objective):
    """[F] Def. 1: 1 if all runs reach the goal, 0.5 if some do, 0 if none does.

    On deterministic tasks this is [D] Def. 3.
    """

    minimize = False
    worst, best = 0.0, 1.0

    def final(self, graph: TaskGraph) -> Reals:
        return graph.goals()

    def backup(self, part: Part, values: Reals) -> Reals:
        least = part.outcomes(np.minimum, values)
        most = part.outcomes(np.maximum, values)
        return self._pick(part, np.where(least == 1, 1.0, np.where(most > 0, 0.5, 0.0)))


class StepCost(Objective):
    """[D] Def. 2: cost of reaching the goal, in the worst case; infinite if it may not be.

    Args:
        cost: expression for the cost of the step that led into a state, never negative; by
            default minus the property's step-reward, or 1 if it has none.
    """

    minimize = True
    worst, best = math.inf, 0.0

    def __init__(self, task: Task, cost: str | None = None) -> None:
        reward = task.property.step_reward
        self._factor = -1.0 if cost is None else 1.0
        given = reward if cost is None else cost
        self._evaluator = None if given is None else task.evaluator([given])

    def share_costs(self, other: StepCost) -> None:
        """Count steps as another objective does."""
        self._factor, self._evaluator = other._factor, other._evaluator

    def costs(self, graph: TaskGraph) -> Reals:
        """Per state, what the step into it costs."""
        if self._evaluator is None:
            return np.ones(graph.size)
        costs = self._factor * self._evaluator(graph.words)[:, 0]
        wrong = ~(costs >= 0)
        if wrong.any():
            state = graph.task.as_dict(graph.vectors(np.flatnonzero(wrong)[:1])[0])
            raise ConfigError(f"the cost of a step into {state} is negative, or no number")
        return costs

    def final(self, graph: TaskGraph) -> Reals:
        return np.where(graph.kind == 2, 0.0, math.inf)

    def backup(self, part: Part, values: Reals) -> Reals:
        through = values + self.costs(part.graph)
        return self._pick(part, part.outcomes(np.maximum, through))


class _Bounded(Objective):
    """An objective over the first steps of runs."""

    def __init__(self, steps: int) -> None:
        if steps < 0:
            raise ConfigError(f"a bound on steps must not be negative, got {steps}")
        self.steps = steps

    def _solve(self, part: Part, values: Reals, fewer: int) -> Reals:
        for _ in range(max(0, self.steps - fewer)):
            if len(part.acting):
                values[part.acting] = self.backup(part, values)
        return values


class FailureAvoidance(_Bounded, Safety):
    """1 if the policy can fail within some number of steps, else 0."""


class SoftGoals(_Bounded):
    """Oversubscription: the rewards of the goals that hold together at some time within a bound.

    A run is worth its best state within the bound, since a plan may end there; a policy, its
    worst run.

    Args:
        goals: conditions as text, with what each is worth (not negative).
    """

    minimize = False
    worst = 0.0

    def __init__(self, task: Task, goals: dict[str, float], steps: int) -> None:
        super().__init__(steps)
        if not goals or not all(worth >= 0 for worth in goals.values()):
            raise ConfigError("soft goals need at least one condition and no negative reward")
        self.best = float(sum(goals.values()))
        self._rewards = np.array(list(goals.values()), np.float64)
        self._evaluator = task.evaluator(list(goals))

    def final(self, graph: TaskGraph) -> Reals:
        rewards: Reals = (self._evaluator(graph.words) != 0) @ self._rewards
        rewards[(graph.kind & 1) == 1] = 0.0
        return rewards

    def backup(self, part: Part, values: Reals) -> Reals:
        later = self._pick(part, part.outcomes(np.minimum, values))
        best: Reals = np.maximum(self.final(part.graph)[part.acting], later)
        return best
