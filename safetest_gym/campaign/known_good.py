"""States that the input policy visits: to protect its good decisions, and to compare others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders import Budget, Verdict, make_decider
from safetest_gym.fuzzing import Fuzzer
from safetest_gym.fuzzing.runs import End, Runs
from safetest_gym.policies import Policy
from safetest_gym.repair.report import SideEffects, side_effects
from safetest_gym.repair.requests import KeepSet

if TYPE_CHECKING:
    from safetest_gym.deciders.base import Decider
    from safetest_gym.task import Task

__all__ = ["RUNS", "Visited", "visited_by", "visited_on"]

RUNS = 500
"""Runs that show which states a policy visits."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Visited:
    """Distinct states on runs of a policy.

    Attributes:
        states: shape (n, V).
        applicable, safe: masks (n, A); actions that are not decided in time count as not safe.
        actions: what the policy does, shape (n,).
        arrives: whether a run that reached the goal came by, shape (n,).
    """

    states: NDArray[Any]
    applicable: NDArray[np.bool_]
    safe: NDArray[np.bool_]
    actions: NDArray[np.int64]
    arrives: NDArray[np.bool_]

    def keep(self, most: int, penalty: float) -> KeepSet | None:
        """Safe decisions on runs to the goal, as a repair takes them; None for none."""
        rows = np.arange(len(self.states))
        good = np.flatnonzero(self.arrives & self.safe[rows, self.actions])[:most]
        if not len(good):
            return None
        return KeepSet(states=self.states[good], applicable=self.applicable[good], penalty=penalty)

    def changed_by(self, before: Policy, after: Policy) -> SideEffects:
        """How the decisions of two policies differ here."""
        return side_effects(before, after, self.states, self.applicable, self.safe)


def visited_by(
    policy: Policy, task: Task, *, most: int, decider_states: int, max_steps: int, seed: int
) -> Visited:
    """Some states on random runs of ``policy`` from the task's starts, in random order."""
    runs = Fuzzer(task, policy, max_steps=max_steps, seed=seed).run(RUNS)
    decider = make_decider("otf", task, budget=Budget(states=decider_states))
    return visited_on(runs, task, decider, most=most, seed=seed)


def visited_on(runs: Runs, task: Task, decider: Decider, *, most: int, seed: int) -> Visited:
    """Some states on these runs, in random order."""
    asked = np.flatnonzero(runs.actions >= 0)
    owner = np.searchsorted(runs.offsets, asked, side="right") - 1
    arrives = runs.ends[owner] == End.GOAL
    _, first, place = np.unique(runs.words[asked], axis=0, return_index=True, return_inverse=True)
    reached = np.zeros(len(first), dtype=np.bool_)
    np.logical_or.at(reached, place.ravel(), arrives)
    rows = np.random.default_rng([seed % 2**64, 2]).permutation(len(first))[:most]
    states = task.engine.unpack(runs.words[asked[first[rows]]])
    shape = (len(states), task.num_actions)
    applicable = safe = np.zeros(shape, dtype=np.bool_)
    if len(states):
        applicable = np.asarray(task.applicable_many(states), dtype=np.bool_)
        safe = np.asarray(decider.action_verdicts(states) == Verdict.SAFE)
    actions = runs.actions[asked[first[rows]]]
    return Visited(
        states=states, applicable=applicable, safe=safe, actions=actions, arrives=reached[rows]
    )
