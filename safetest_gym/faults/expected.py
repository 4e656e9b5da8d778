"""Objectives over chance: the probability of the goal, and discounted reward ([F] section 2).

Values come as bounds from interval iteration; end components, where iteration from above
gets stuck, are held down by what leaves them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError
from safetest_gym.faults.components import end_components
from safetest_gym.faults.objectives import Bounds, Objective
from safetest_gym.faults.task_graph import Part, TaskGraph
from safetest_gym.policies import Policy
from safetest_gym.policies.policy import ask_policy

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["DiscountedReward", "GoalProbability", "SamplePlan", "sampled_value"]

Reals = NDArray[np.float64]

PRECISION = 1e-9
"""Iteration stops when no value's bounds are further apart; the bounds hold at any time."""

_MOST_ROUNDS = 200_000


class GoalProbability(Objective):
    """MaxProb: the probability of reaching a goal state."""

    minimize = False
    worst, best = 0.0, 1.0

    def final(self, graph: TaskGraph) -> Reals:
        return graph.goals()

    def backup(self, part: Part, values: Reals) -> Reals:
        return self._pick(part, part.mean(values))

    def values(self, part: Part, *, fewer: int = 0) -> Bounds:
        low = self.final(part.graph)
        high = low.copy()
        high[part.acting] = 1.0
        high[part.graph.open] = 1.0
        component = end_components(part)
        exits = np.zeros(len(part.choices), np.bool_)
        leaving = component[part.target] != component[part.owner][part.row_choice]
        exits[part.row_choice[leaving]] = True
        inside = component[part.owner] >= 0
        for _ in range(_MOST_ROUNDS):
            if not len(part.acting) or (high - low)[part.acting].max() <= PRECISION:
                break
            before = low[part.acting], high[part.acting]
            low[part.acting] = np.maximum(before[0], self.backup(part, low))
            per_choice = part.mean(high)
            high[part.acting] = np.minimum(before[1], self._pick(part, per_choice))
            if inside.any():
                _deflate(part, component, exits & inside, per_choice, high)
            if np.array_equal(before[0], low[part.acting]) and np.array_equal(
                before[1], high[part.acting]
            ):
                break
        return Bounds(low, high)


def _deflate(
    part: Part,
    component: NDArray[np.int64],
    exits: NDArray[np.bool_],
    per_choice: Reals,
    high: Reals,
) -> None:
    """Nothing in an end component is worth more than the best choice that can leave it."""
    best = np.zeros(int(component.max()) + 1)
    np.maximum.at(best, component[part.owner[exits]], per_choice[exits])
    held = np.flatnonzero(component >= 0)
    high[held] = np.minimum(high[held], best[component[held]])


class DiscountedReward(Objective):
    """Expected discounted reward; the rewards of a step are for the state it leads to.

    Args:
        discount: in [0, 1).
        goal, failing, step: reward for a step into a goal state, into a failing state, and
            for every step.
    """

    minimize = False

    def __init__(
        self,
        *,
        discount: float = 0.99,
        goal: float = 1.0,
        failing: float = -1.0,
        step: float = 0.0,
    ) -> None:
        if not 0 <= discount < 1 or not np.isfinite([goal, failing, step]).all():
            raise ConfigError("discount must be in [0, 1) and rewards finite")
        self.discount = discount
        self.rewards = np.array([step, step + failing, step + goal])
        self.worst = min(0.0, float(self.rewards.min())) / (1 - discount)
        self.best = max(0.0, float(self.rewards.max())) / (1 - discount)

    def reward(self, kind: NDArray[np.uint8]) -> Reals:
        """Per state, for a step into it; failing counts before goal."""
        result: Reals = self.rewards[np.where(kind & 1, 1, np.where(kind & 2, 2, 0))]
        return result

    def final(self, graph: TaskGraph) -> Reals:
        return np.zeros(graph.size)

    def backup(self, part: Part, values: Reals) -> Reals:
        through = self.reward(part.graph.kind) + self.discount * values
        return self._pick(part, part.mean(through))

    def values(self, part: Part, *, fewer: int = 0) -> Bounds:
        sides = []
        for start in (self.worst, self.best):
            values = self.final(part.graph)
            values[part.graph.open] = start
            values[part.acting] = start
            sides.append(values)
        low, high = sides
        for _ in range(_MOST_ROUNDS):
            if not len(part.acting) or (high - low)[part.acting].max() <= PRECISION:
                break
            before = low[part.acting], high[part.acting]
            low[part.acting] = np.maximum(before[0], self.backup(part, low))
            high[part.acting] = np.minimum(before[1], self.backup(part, high))
            if np.array_equal(before[0], low[part.acting]) and np.array_equal(
                before[1], high[part.acting]
            ):
                break
        return Bounds(low, high)


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplePlan:
    """How to sample: runs, after how many steps they are cut, and how sure to be."""

    runs: int = 10_000
    steps: int = 1_000
    confidence: float = 0.99
    seed: int = 0

    def __post_init__(self) -> None:
        if self.runs < 1 or self.steps < 0 or not 0 < self.confidence < 1:
            raise ConfigError("runs and steps must be positive, confidence between 0 and 1")


def sampled_value(
    objective: GoalProbability | DiscountedReward,
    task: Task,
    policy: Policy,
    state: NDArray[Any],
    plan: SamplePlan | None = None,
) -> tuple[float, float]:
    """Bounds of a policy's value, each wrong with half the probability ``1 - confidence``.

    Hoeffding's inequality; runs that were cut count from their worst to their best.
    """
    plan = plan or SamplePlan()
    low, high = _sample(objective, task, policy.bind(task), state, plan)
    span = objective.best - objective.worst
    radius = span * math.sqrt(math.log(2 / (1 - plan.confidence)) / (2 * plan.runs))
    return (
        max(objective.worst, float(low.mean()) - radius),
        min(objective.best, float(high.mean()) + radius),
    )


def _sample(
    objective: GoalProbability | DiscountedReward,
    task: Task,
    policy: Policy,
    state: NDArray[Any],
    plan: SamplePlan,
) -> tuple[Reals, Reals]:
    """Least and greatest worth of each run."""
    rng = np.random.default_rng(plan.seed % 2**64)
    states = np.repeat(np.asarray(state).reshape(1, -1), plan.runs, axis=0)
    low = np.zeros(plan.runs)
    if isinstance(objective, GoalProbability):
        low[:] = float(task.classify(states[:1])[0] == 2)
    alive = np.full(plan.runs, task.classify(states[:1])[0] == 0)
    factor = 1.0
    for _ in range(plan.steps):
        rows = np.flatnonzero(alive)
        masks = task.applicable_many(states[rows])
        stuck = ~masks.any(axis=1)
        alive[rows[stuck]] = False
        rows, masks = rows[~stuck], masks[~stuck]
        if not len(rows):
            break
        states[rows] = task.step_many(states[rows], ask_policy(policy, states[rows], masks), rng)
        kind = task.classify(states[rows])
        if isinstance(objective, DiscountedReward):
            low[rows] += factor * objective.reward(kind)
            factor *= objective.discount
        else:
            low[rows] = kind == 2
        alive[rows] = kind == 0
    high = low.copy()
    low[alive] += factor * objective.worst
    high[alive] += factor * objective.best
    return low, high
