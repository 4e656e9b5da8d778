"""What a verification answers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders.verdict import Verdict
from safetest_gym.errors import StateError

if TYPE_CHECKING:
    from safetest_gym.policies.policy import Policy
    from safetest_gym.task import Task
    from safetest_gym.verify.inductive import InductiveSet

__all__ = ["Method", "Progress", "Report", "UnsafeRun", "Verification", "make_run"]

Method = Literal["explicit", "abstract"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """How far a verification is.

    Attributes:
        known: states (explicit) or boxes (abstract) reached so far.
        expanded: those of them whose outcomes are known.
        starts: start states entered (explicit); 0 for the abstract method.
        round: attempts at a proof so far, this one included.
    """

    known: int
    expanded: int
    starts: int = 0
    round: int = 1


Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, eq=False)
class UnsafeRun:
    """A run of the policy from a start state to a failing state.

    Attributes:
        states: vectors (k + 1, V), the start first.
        actions: what the policy does in all states but the last, (k,).
        outcomes: which outcome of the action followed, as `Task.successors` lists them, (k,).
    """

    states: NDArray[Any]
    actions: NDArray[np.int64]
    outcomes: NDArray[np.int64]

    @property
    def start(self) -> NDArray[Any]:
        """The start state."""
        first: NDArray[Any] = self.states[0]
        return first

    def __len__(self) -> int:
        return len(self.actions)

    def replay(self, task: Task, policy: Policy) -> None:
        """Go through it step by step.

        Raises:
            StateError: it is no run of the policy, or does not end in a failing state.
        """
        bound = policy.bind(task)
        for step, action in enumerate(self.actions.tolist()):
            state = self.states[step]
            if task.is_failing(state) or task.is_goal(state):
                raise StateError(f"the run is over before step {step}")
            mask = task.applicable(state)
            if int(bound.actions(state[None, :], mask[None, :])[0]) != action:
                raise StateError(f"the policy does not take action {action} in step {step}")
            outcomes = dict(task.successors(state))[action]
            after = outcomes[int(self.outcomes[step])][1]
            if not np.array_equal(after, self.states[step + 1]):
                raise StateError(f"step {step} does not lead to the next state")
        if not task.is_failing(self.states[-1]):
            raise StateError("the last state does not fail")

    def as_json(self, task: Task) -> dict[str, object]:
        """Plain data with names."""
        return {
            "states": [task.as_dict(state) for state in self.states],
            "actions": [task.actions[a] for a in self.actions.tolist()],
            "outcomes": self.outcomes.tolist(),
        }


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Verification:
    """The answer, and why.

    Attributes:
        verdict: SAFE: no run of the policy fails; UNSAFE: ``run`` does.
        method: what found it.
        reason: why the verdict is UNKNOWN; else empty.
        proof: of SAFE: a set of states that has the start states, that no run of the
            policy leaves, and in which no state fails.
        run: of UNSAFE.
        more: states (k + 1, V) of further unsafe runs, if they were wanted.
        statistics: what it took.
    """

    verdict: Verdict
    method: Method
    reason: str = ""
    proof: InductiveSet | None = None
    run: UnsafeRun | None = None
    more: tuple[NDArray[Any], ...] = ()
    statistics: Mapping[str, int | float] = field(default_factory=dict)


def make_run(task: Task, policy: Policy, states: NDArray[Any]) -> UnsafeRun:
    """The run through ``states`` (k + 1, V) with what the policy (bound to ``task``) does."""
    actions, outcomes = [], []
    for state, after in itertools.pairwise(states):
        mask = task.applicable(state)
        action = int(policy.actions(state[None, :], mask[None, :])[0])
        listed = [outcome for _, outcome in dict(task.successors(state))[action]]
        actions.append(action)
        outcomes.append(next(i for i, o in enumerate(listed) if np.array_equal(o, after)))
    return UnsafeRun(states, np.array(actions, np.int64), np.array(outcomes, np.int64))
