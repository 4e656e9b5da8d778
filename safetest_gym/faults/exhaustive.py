"""Every fault that a policy can run into, where its states can be listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders import Verdict
from safetest_gym.faults.fault import Fault
from safetest_gym.policies.reachable import Reachable

if TYPE_CHECKING:
    from safetest_gym.deciders.base import Decider
    from safetest_gym.policies import Policy
    from safetest_gym.task import Task

__all__ = ["reachable_faults"]

_FAILING, _GOAL = 1, 2


def reachable_faults(
    task: Task, policy: Policy, starts: NDArray[Any], decider: Decider, *, max_states: int
) -> tuple[Fault, ...]:
    """The faults in states that runs of ``policy`` from ``starts`` (n, V) can visit.

    These are all of them if there are no more than ``max_states`` states, else those in the
    states listed first.

    Args:
        decider: of infinite radius; its cache is used and kept. What it leaves open is no
            fault.
    """
    bound = policy.bind(task)
    graph = Reachable(task, bound)
    graph.add_starts(task.engine.pack(np.asarray(starts)), max_states)
    packed = graph.states
    packed = packed[(task.engine.classify(packed) & (_FAILING | _GOAL)) == 0]
    states = task.engine.unpack(packed)
    masks = task.applicable_many(states)
    running = masks.any(axis=1)
    states, masks = states[running], masks[running]
    if not len(states):
        return ()
    actions = bound.actions(states, masks)
    verdicts = decider.action_verdicts(states)
    taken = verdicts[np.arange(len(states)), actions] == int(Verdict.UNSAFE)
    safe = decider.decide_many(states[taken]) == int(Verdict.SAFE)
    rows = np.flatnonzero(taken)[safe]
    return tuple(
        _fault(task, decider, states[row], int(actions[row]), verdicts[row]) for row in rows
    )


def _fault(
    task: Task, decider: Decider, state: NDArray[Any], action: int, verdicts: NDArray[np.uint8]
) -> Fault:
    """With an outcome that is not safe."""
    outcomes = [outcome for _, outcome in dict(task.successors(state))[action]]
    bad = next(outcome for outcome in outcomes if decider.decide(outcome) == Verdict.UNSAFE)
    alternatives = tuple(np.flatnonzero(verdicts == int(Verdict.SAFE)).tolist())
    return Fault(state, action, bad, alternatives)
