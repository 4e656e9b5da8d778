"""Values of policies by their definitions, and the best of all policies by trying each one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from safetest_gym.task import Task

__all__ = ["SmallTask", "best_value", "policy_value"]

State = tuple[Any, ...]
Plan = Mapping[State, int]


class SmallTask:
    """Everything reachable from some states, as dictionaries."""

    def __init__(self, task: Task, roots: Any) -> None:
        self.task = task
        self.choices: dict[State, dict[int, list[tuple[float, State]]]] = {}
        todo = [tuple(row) for row in np.asarray(roots).tolist()]
        while todo:
            state = todo.pop()
            if state in self.choices:
                continue
            vector = np.array(state)
            over = task.is_failing(vector) or task.is_goal(vector)
            found = [] if over else task.successors(vector)
            self.choices[state] = {
                action: [(p, tuple(o.tolist())) for p, o in outcomes if p > 0]
                for action, outcomes in found
            }
            todo += [o for outs in self.choices[state].values() for _, o in outs]

    def failing(self, state: State) -> bool:
        return self.task.is_failing(np.array(state))

    def goal(self, state: State) -> bool:
        return self.task.is_goal(np.array(state)) and not self.failing(state)

    def plans(self) -> Iterator[Plan]:
        """All policies."""
        acting = [s for s, choices in self.choices.items() if choices]
        for picked in itertools.product(*(self.choices[s] for s in acting)):
            yield dict(zip(acting, picked, strict=True))

    def outcomes(self, plan: Plan, state: State) -> list[tuple[float, State]]:
        return self.choices[state][plan[state]] if state in plan else []

    def reach(self, plan: Plan, state: State) -> set[State]:
        seen, todo = {state}, [state]
        while todo:
            for _, target in self.outcomes(plan, todo.pop()):
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        return seen


def policy_value(kind: str, small: SmallTask, plan: Plan, state: State) -> float:
    """Value of a policy in a state."""
    return _VALUES[kind](small, plan, state)


def best_value(kind: str, small: SmallTask, state: State) -> float:
    """Best value of all policies."""
    values = [policy_value(kind, small, plan, state) for plan in small.plans()]
    return min(values) if kind in ("Safety", "StepCost") else max(values)


def _safety(small: SmallTask, plan: Plan, state: State) -> float:
    return float(any(map(small.failing, small.reach(plan, state))))


def _cost(small: SmallTask, plan: Plan, state: State) -> float:
    """Length of the longest run, infinite if one does not end in a goal."""

    def longest(here: State, path: tuple[State, ...]) -> float:
        if small.goal(here):
            return 0.0
        outcomes = small.outcomes(plan, here)
        if here in path or not outcomes:
            return math.inf
        return 1 + max(longest(o, (*path, here)) for _, o in outcomes)

    return longest(state, ())


def _goal(small: SmallTask, plan: Plan, state: State) -> float:
    if not any(map(small.goal, small.reach(plan, state))):
        return 0.0
    return 0.5 if _cost(small, plan, state) == math.inf else 1.0


def _linear(
    small: SmallTask, plan: Plan, state: State, discount: float, reward: Callable[[State], float]
) -> float:
    """Expected sum of rewards for entering states, solved as linear equations."""
    states = sorted(small.reach(plan, state))
    number = {s: i for i, s in enumerate(states)}
    matrix, constant = np.eye(len(states)), np.zeros(len(states))
    for s in states:
        for p, o in small.outcomes(plan, s):
            matrix[number[s], number[o]] -= discount * p
            constant[number[s]] += p * reward(o)
    return float(np.linalg.solve(matrix, constant)[number[state]])


def _discounted(small: SmallTask, plan: Plan, state: State) -> float:
    def reward(s: State) -> float:
        return -0.1 - 2.0 * small.failing(s) + 1.0 * small.goal(s)

    return _linear(small, plan, state, 0.9, reward)


def _probability(small: SmallTask, plan: Plan, state: State) -> float:
    """By many steps of the chain, doubled each time."""
    states = sorted(small.reach(plan, state))
    number = {s: i for i, s in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for s in states:
        for p, o in small.outcomes(plan, s) or [(1.0, s)]:
            matrix[number[s], number[o]] += p
    for _ in range(40):
        matrix = matrix @ matrix
    goals = [number[s] for s in states if small.goal(s)]
    return float(matrix[number[state], goals].sum())


_VALUES = {
    "Safety": _safety,
    "GoalReaching": _goal,
    "StepCost": _cost,
    "GoalProbability": _probability,
    "DiscountedReward": _discounted,
}
