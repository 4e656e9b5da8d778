"""Oracles that improve the policy's own run, or go back to a better state ([D] section 4.4)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError
from safetest_gym.faults.objectives import GoalReaching, Objective, StepCost
from safetest_gym.faults.oracles import BugReport, report
from safetest_gym.faults.task_graph import TaskGraph
from safetest_gym.policies import Policy

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["ImprovementOracle", "UndoOracle", "eliminate_actions"]


class ImprovementOracle:
    """[D]'s Aras: is there a cheaper plan near the policy's run?

    First actions are eliminated from the run (deterministic tasks), then the states within
    a bounded neighbourhood of the run are searched for the best way.

    Args:
        objective: the cost; the worst case where outcomes are left to chance.
        neighbourhood: states after which the search around the run stops to expand.
        limit: states that the policy's own value may take.
    """

    def __init__(
        self,
        task: Task,
        policy: Policy,
        objective: StepCost,
        *,
        neighbourhood: int = 10_000,
        limit: int = 100_000,
    ) -> None:
        self._task, self._policy = task, policy
        self.objective = objective
        self._neighbourhood, self._limit = neighbourhood, limit

    def confirm(self, state: NDArray[Any]) -> BugReport | None:
        """A bug if a cheaper way is found."""
        roots = np.asarray(state).reshape(1, -1)
        own = TaskGraph(self._task, roots, policy=self._policy, depth=0, limit=self._limit)
        value = float(self.objective.values(own.policy_choices()).low[own.roots[0]])
        names = type(self).__name__, self.objective
        shorter = self._eliminated(own, state)
        if shorter is not None:
            reason = f"{shorter[1]} actions of the run can be left out"
            found = report(state, names, (value, shorter[0]), reason)
            if found is not None:
                return found
        near = TaskGraph(
            self._task, own.vectors(np.arange(own.size)), limit=self._neighbourhood + own.size
        )
        best = float(self.objective.values(near.all_choices()).high[near.roots[0]])
        return report(state, names, (value, best), "there is a cheaper way near the run")

    def _eliminated(self, own: TaskGraph, state: NDArray[Any]) -> tuple[float, int] | None:
        """Cost of the run without needless actions, and how many these are."""
        deterministic = bool((np.diff(own.first) == 1).all())
        if not deterministic or own.open.any() or not (own.kind == 2).any():
            return None
        following = dict(zip(own.owner.tolist(), own.target.tolist(), strict=True))
        doing = dict(zip(own.owner.tolist(), own.action.tolist(), strict=True))
        here = int(own.roots[0])
        actions: list[int] = []
        while here in following and len(actions) < own.size:
            actions.append(doing[here])
            here = following[here]
        if own.kind[here] != 2:
            return None
        kept = eliminate_actions(self._task, state, actions)
        states = _execute(self._task, state, kept)
        if states is None or len(kept) == len(actions):
            return None
        visited = TaskGraph(self._task, np.array(states), limit=1)  # a state may come twice
        costs = self.objective.costs(visited)[visited.roots[1:]]
        return float(costs.sum()), len(actions) - len(kept)


def eliminate_actions(task: Task, state: NDArray[Any], actions: list[int]) -> list[int]:
    """Leave out actions, with those that then cannot be taken, while the goal is reached.

    Args:
        actions: a plan: from ``state`` they lead to the goal, each with a single outcome.
    """
    place = 0
    plan = list(actions)
    while place < len(plan):
        shorter = _without(task, state, plan, place)
        if shorter is not None:
            plan = shorter
        else:
            place += 1
    return plan


def _without(task: Task, state: NDArray[Any], plan: list[int], place: int) -> list[int] | None:
    """The plan without one action and what depended on it, if it is still a plan."""
    kept = plan[:place]
    states = _execute(task, state, kept)
    here = None if states is None else states[-1]
    for action in plan[place + 1 :]:
        if here is None or task.classify(here.reshape(1, -1))[0]:
            break
        if task.applicable(here)[action]:
            here = _outcome(task, here, action)
            kept = [*kept, action]
    if here is None or task.classify(here.reshape(1, -1))[0] != 2:
        return None
    return kept


def _execute(task: Task, state: NDArray[Any], actions: list[int]) -> list[NDArray[Any]] | None:
    """The states of a plan; None if it cannot be followed or leaves something to chance."""
    states = [np.asarray(state)]
    for action in actions:
        if not task.applicable(states[-1])[action]:
            return None
        outcome = _outcome(task, states[-1], action)
        if outcome is None:
            return None
        states.append(outcome)
    return states


def _outcome(task: Task, state: NDArray[Any], action: int) -> NDArray[Any] | None:
    """The only outcome of an action, or None."""
    for number, outcomes in task.successors(state):
        if number == action:
            first = outcomes[0][1]
            return first if all((o == first).all() for _, o in outcomes) else None
    return None


class _Return(StepCost):
    """Cost of surely coming to one state."""

    target: NDArray[np.int64]

    def final(self, graph: TaskGraph) -> NDArray[np.float64]:
        return np.where((graph.words == self.target).all(axis=1), 0.0, math.inf)

    def backup(self, part: Any, values: NDArray[np.float64]) -> NDArray[np.float64]:
        arrived = self.final(part.graph)[part.acting] == 0
        return np.where(arrived, 0.0, super().backup(part, values))


class UndoOracle:
    """[D]'s UndoQual and InvQuant: go back to where the state came from, then follow the policy.

    That the way back exists, whatever the outcomes, is established by a search; nothing is
    assumed to be invertible.

    Args:
        objective: `GoalReaching` (UndoQual) or `StepCost` (InvQuant).
        limit: states that the search for the way back may see.
    """

    def __init__(
        self, task: Task, policy: Policy, objective: Objective, *, limit: int = 100_000
    ) -> None:
        if not isinstance(objective, GoalReaching | StepCost):
            raise ConfigError("going back tells about GoalReaching and StepCost only")
        self._task, self._policy, self._limit = task, policy, limit
        self.objective = objective

    def confirm(self, state: NDArray[Any], origin: NDArray[Any] | None = None) -> BugReport | None:
        """A bug if going back to ``origin`` and following the policy is better."""
        if origin is None:
            return None
        roots = np.array([state, origin])
        graph = TaskGraph(self._task, roots, policy=self._policy, depth=0, limit=self._limit)
        own = self.objective.values(graph.policy_choices())
        minimize = isinstance(self.objective, StepCost)
        here = float((own.low if minimize else own.high)[graph.roots[0]])
        there = float((own.high if minimize else own.low)[graph.roots[1]])
        if not self.objective.better(there, here):
            return None
        back = self._way_back(roots)
        if back == math.inf:
            return None
        reachable = back + there if minimize else there
        names = type(self).__name__, self.objective
        reason = f"going back (cost {back:g}) to where it came from is better"
        return report(state, names, (here, reachable), reason)

    def _way_back(self, roots: NDArray[Any]) -> float:
        finder = _Return(self._task)
        if isinstance(self.objective, StepCost):
            finder.share_costs(self.objective)
        finder.target = self._task.engine.pack(roots[1:])[0]
        graph = TaskGraph(self._task, roots[:1], limit=self._limit)
        return float(finder.values(graph.all_choices()).high[graph.roots[0]])
