"""[J] Algorithm 1 step by step on plain Python values, to judge what the fuzzer does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from safetest_gym.policies import Policy
from safetest_gym.task import Task

__all__ = ["SlowFuzzing", "State"]

State = tuple[Any, ...]


class SlowFuzzing:
    """The policy's graph by asking the task state by state, and what a search may choose."""

    def __init__(
        self, task: Task, policy: Policy, distance: Callable[[State], float] | None = None
    ) -> None:
        self.task = task
        self.policy = policy
        self._distance = distance or (lambda state: task.distance(np.array(state)))
        self._outcomes: dict[State, frozenset[State]] = {}
        self._actions: dict[State, int | None] = {}

    def action(self, state: State) -> int | None:
        """What the policy does; None where nothing is applicable."""
        if state not in self._actions:
            vector = np.array(state)
            mask = self.task.applicable(vector)
            self._actions[state] = (
                int(self.policy.actions(vector.reshape(1, -1), mask.reshape(1, -1))[0])
                if mask.any()
                else None
            )
        return self._actions[state]

    def failing(self, state: State) -> bool:
        return self.task.is_failing(np.array(state))

    def over(self, state: State) -> bool:
        return self.failing(state) or self.task.is_goal(np.array(state))

    def outcomes(self, state: State) -> frozenset[State]:
        """States the policy may go to; none where the run is over."""
        if state not in self._outcomes:
            found: set[State] = set()
            if not self.over(state):
                for action, outcomes in self.task.successors(np.array(state)):
                    if action == self.action(state):
                        found |= {tuple(s.tolist()) for p, s in outcomes if p > 0}
            self._outcomes[state] = frozenset(found)
        return self._outcomes[state]

    def choices(self, state: State, strategy: str, lookahead: float) -> dict[State, float]:
        """Where a continuation may lead, with probabilities; empty: "failed".

        Failing states of a layer are all named with probability 1: any of them will do.
        """
        if strategy == "uniform":
            found = self.outcomes(state)
            return {s: 1 / len(found) for s in found}
        seen, layer, depth = {state}, {state}, 0
        while depth < lookahead:
            layer = {t for s in layer for t in self.outcomes(s)} - seen
            if not layer:
                return {}
            depth += 1
            seen |= layer
            bad = {s for s in layer if self.failing(s)}
            if bad:
                return dict.fromkeys(bad, 1.0)
            nearest = min(map(self._distance, layer))
            closest = {s for s in layer if self._distance(s) == nearest}
            if len(closest) == 1:
                break
        if strategy == "greedy":
            return {s: 1 / len(closest) for s in closest}
        weights = {s: math.exp(-self._distance(s)) for s in seen - {state}}
        total = sum(weights.values())
        return {s: weight / total for s, weight in weights.items()}

    def layers(self, state: State, lookahead: float) -> Iterator[set[State]]:
        """The states one step away, two steps away and so on, each where it is met first."""
        seen, layer, depth = {state}, {state}, 0
        while layer and depth < lookahead:
            layer = {t for s in layer for t in self.outcomes(s)} - seen
            seen |= layer
            depth += 1
            yield layer

    def way_out(self, state: State, lookahead: float) -> set[State]:
        """The failing states of the first layer that has any: where a run that goes round goes."""
        for layer in self.layers(state, lookahead):
            bad = {s for s in layer if self.failing(s)}
            if bad:
                return bad
        return set()

    def ahead(self, state: State, lookahead: float) -> set[State]:
        """All states within some layers, where nothing fails: a run may leave a cycle there."""
        return set().union(*self.layers(state, lookahead))

    def has_choice(self, state: State, lookahead: float) -> bool:
        """Can a run that goes round from ``state`` go anywhere else?"""
        here, seen = state, set[State]()
        while here not in seen:
            seen.add(here)
            for layer in self.layers(here, lookahead):
                if len(layer) > 1:
                    return True
                here = next(iter(layer), here)
        return False

    def reachable(self, state: State) -> set[State]:
        """All states the policy may come to, ``state`` included."""
        seen, todo = {state}, [state]
        while todo:
            for target in self.outcomes(todo.pop()) - seen:
                seen.add(target)
                todo.append(target)
        return seen

    def fails(self, state: State) -> bool:
        """Can the policy fail from here?"""
        return any(map(self.failing, self.reachable(state)))
