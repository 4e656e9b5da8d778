"""Safety and r-safety by their definitions, on everything that a small task can reach."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders.verdict import Verdict
from safetest_gym.policies import Policy
from safetest_gym.task import Task

__all__ = ["BruteDecider"]

Node = tuple[tuple[Any, ...], float]


class BruteDecider:
    """Greatest set of (state, deviations left) that some action never leaves."""

    def __init__(self, task: Task, policy: Policy | None = None, radius: float = math.inf) -> None:
        self.task = task
        self.policy = policy
        self.radius = radius
        self.asked: list[tuple[Any, ...]] = []
        self._choices: dict[tuple[Any, ...], dict[int, set[tuple[Any, ...]]]] = {}
        self._safe: dict[Node, bool] = {}

    def choices(self, state: tuple[Any, ...]) -> dict[int, set[tuple[Any, ...]]]:
        """Actions and their outcomes, also in states where a run is over."""
        if state not in self._choices:
            self._choices[state] = {
                action: {tuple(o.tolist()) for p, o in outcomes if p > 0}
                for action, outcomes in self.task.successors(np.array(state))
            }
        return self._choices[state]

    def own_action(self, state: tuple[Any, ...]) -> int:
        assert self.policy is not None
        mask = self.task.applicable(np.array(state)).reshape(1, -1)
        return int(self.policy.actions(np.array([state]), mask)[0])

    def _follow(self, node: Node) -> dict[int, set[Node]]:
        state, left = node
        found = {}
        for action, outcomes in self.choices(state).items():
            after = left
            if self.radius != math.inf and action != self.own_action(state):
                after = left - 1
            if after >= 0:
                found[action] = {(o, after) for o in outcomes}
        return found

    def _solve(self, root: Node) -> None:
        nodes, todo = {root}, [root]
        while todo:
            node = todo.pop()
            for outcomes in self._follow(node).values():
                todo += outcomes - nodes
                nodes |= outcomes
        safe = {n for n in nodes if not self.task.is_failing(np.array(n[0]))}
        while True:
            keep = {n for n in safe if self._over(n) or self._has_safe(n, safe)}
            if keep == safe:
                break
            safe = keep
        for node in nodes:
            self._safe[node] = node in safe

    def _over(self, node: Node) -> bool:
        return self.task.is_goal(np.array(node[0])) or not self.choices(node[0])

    def _has_safe(self, node: Node, safe: set[Node]) -> bool:
        return any(outcomes <= safe for outcomes in self._follow(node).values())

    def is_safe(self, state: tuple[Any, ...], left: float | None = None) -> bool:
        """Can failing surely be avoided?"""
        node = (state, self.radius if left is None else left)
        if node not in self._safe:
            self._solve(node)
        return self._safe[node]

    def decide(self, state: NDArray[Any]) -> Verdict:
        return Verdict.SAFE if self.is_safe(tuple(state.tolist())) else Verdict.UNSAFE

    def decide_many(self, states: NDArray[Any]) -> NDArray[np.uint8]:
        self.asked += [tuple(row) for row in states.tolist()]
        return np.array([self.decide(state) for state in states], np.uint8)

    def safe_actions(self, state: NDArray[Any]) -> NDArray[np.bool_]:
        mask = np.zeros(self.task.num_actions, np.bool_)
        for action, outcomes in self._follow((tuple(state.tolist()), self.radius)).items():
            mask[action] = all(self.is_safe(o, left) for o, left in outcomes)
        return mask
