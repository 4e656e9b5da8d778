"""Test oracles: sufficient reasons to call a state a bug ([J] section 6, [D] section 4.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders.base import require_decider_of
from safetest_gym.deciders.verdict import Verdict
from safetest_gym.errors import ConfigError
from safetest_gym.faults.analysis import Decider
from safetest_gym.faults.confirmation import bug_gap, normalized_gap
from safetest_gym.faults.objectives import Objective
from safetest_gym.faults.task_graph import TaskGraph
from safetest_gym.fuzzing import PolicyGraph
from safetest_gym.policies import Policy

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["BugReport", "DeciderOracle", "LookaheadOracle", "Oracle", "PerfectOracle"]

TOLERANCE = 1e-7
"""Gaps up to this are not told from rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class BugReport:
    """A state in which another policy is surely better.

    Attributes:
        policy: the policy's value, or a bound of it on the better side.
        reachable: a value that another policy surely has, or is at least as good as.
        gap: at least so much is lost ([F] Def. 3).
        normalized: the same relative to ``reachable``; None if that is 0.
        reason: in words.
        radius: deviations from the policy that suffice, where that was asked.
    """

    state: NDArray[Any]
    oracle: str
    objective: str
    policy: float
    reachable: float
    gap: float
    normalized: float | None
    reason: str
    radius: float | None = None


class Oracle(Protocol):
    """Says of a state that it is a bug, or nothing."""

    def confirm(self, state: NDArray[Any]) -> BugReport | None:
        """A report if the state is surely a bug; None says nothing."""
        ...


def report(
    state: NDArray[Any],
    names: tuple[str, Objective],
    values: tuple[float, float],
    reason: str,
) -> BugReport | None:
    """A report if the second value is better than the policy's, the first one."""
    oracle, objective = names
    gap = bug_gap(objective, *values)
    if gap <= TOLERANCE:
        return None
    return BugReport(
        np.asarray(state),
        oracle,
        objective.name,
        values[0],
        values[1],
        gap,
        normalized_gap(gap, values[1]),
        reason,
    )


class DeciderOracle:
    """Safety by a decider: the policy can fail although failing can surely be avoided.

    Args:
        decider: of the task; its radius is that of the bugs (infinite: [J] Def. 2).
        severity: makes a decider of a given radius; the least of ``radii`` that suffices is
            reported with each bug.
        limit: states of the policy's graph that may be looked at to see whether it fails.
    """

    def __init__(
        self,
        task: Task,
        policy: Policy,
        decider: Decider,
        *,
        severity: Callable[[float], Decider] | None = None,
        radii: Sequence[int] = (0, 1, 2),
        limit: int = 1_000_000,
    ) -> None:
        require_decider_of(task, decider)
        self._graph = PolicyGraph(task, policy)
        self._decider = decider
        self._weaker = [(r, severity(r)) for r in sorted(radii)] if severity else []
        self._limit = limit

    def confirm(self, state: NDArray[Any]) -> BugReport | None:
        """A bug if the policy can fail and the decider says SAFE."""
        states = np.asarray(state).reshape(1, -1)
        if not self._fails(states):
            return None
        if int(self._decider.decide_many(states)[0]) != Verdict.SAFE:
            return None
        radius = math.inf if self._weaker else None
        for r, decider in self._weaker:
            if int(decider.decide_many(states)[0]) == Verdict.SAFE:
                radius = r
                break
        reason = "the policy can fail, but failing can surely be avoided"
        name = type(self).__name__
        return BugReport(states[0], name, "Safety", 1.0, 0.0, 1.0, None, reason, radius)

    def _fails(self, states: NDArray[Any]) -> bool:
        """Can the policy fail? What it reaches is searched layer by layer."""
        graph = self._graph
        layer = graph.intern(states)
        seen = set(layer.tolist())
        while len(layer):
            if (graph.kind[layer] & 1).any():
                return True
            if len(seen) > self._limit:
                return False
            graph.expand(layer)
            found = np.concatenate([graph.successors(int(s)) for s in layer])
            fresh = [s for s in np.unique(found).tolist() if s not in seen]
            seen.update(fresh)
            layer = np.array(fresh, np.int64)
        return False


class PerfectOracle:
    """Exact values by exploring everything; for small tasks.

    Where the limit cuts the exploration, only what the bounds prove is reported.
    """

    def __init__(
        self, task: Task, policy: Policy, objective: Objective, *, limit: int = 1_000_000
    ) -> None:
        self._task, self._policy, self._limit = task, policy, limit
        self.objective = objective

    def confirm(self, state: NDArray[Any]) -> BugReport | None:
        """A bug if the policy's value is worse than the optimal one."""
        return self.confirm_all(np.asarray(state).reshape(1, -1))[0]

    def confirm_all(self, states: NDArray[Any]) -> list[BugReport | None]:
        """The same for several states with one exploration."""
        graph = TaskGraph(self._task, states, policy=self._policy, limit=self._limit)
        own = self.objective.values(graph.policy_choices())
        best = self.objective.values(graph.all_choices())
        optimistic = own.low if self.objective.minimize else own.high
        pessimistic = best.high if self.objective.minimize else best.low
        names = type(self).__name__, self.objective
        reason = "the best policy is better"
        return [
            report(state, names, (float(optimistic[n]), float(pessimistic[n])), reason)
            for state, n in zip(states, graph.roots, strict=True)
        ]


class LookaheadOracle:
    """[D]'s Lookahead: other actions in the first ``depth`` steps, then the policy again."""

    def __init__(
        self,
        task: Task,
        policy: Policy,
        objective: Objective,
        *,
        depth: int = 2,
        limit: int = 1_000_000,
    ) -> None:
        if depth < 1:
            raise ConfigError(f"depth must be at least 1, got {depth}")
        self._task, self._policy, self._limit = task, policy, limit
        self.objective, self.depth = objective, depth

    def confirm(self, state: NDArray[Any]) -> BugReport | None:
        """A bug if the policy gets better by deviating at first."""
        roots = np.asarray(state).reshape(1, -1)
        graph = TaskGraph(
            self._task, roots, policy=self._policy, depth=self.depth, limit=self._limit
        )
        own = self.objective.values(graph.policy_choices())
        other = self.objective.lookahead(graph, self.depth)
        minimize = self.objective.minimize
        optimistic = (own.low if minimize else own.high)[graph.roots[0]]
        pessimistic = (other.high if minimize else other.low)[graph.roots[0]]
        reason = f"deviating in the first {self.depth} steps is better"
        names = type(self).__name__, self.objective
        return report(state, names, (float(optimistic), float(pessimistic)), reason)
