"""Every fault that a policy can run into, where its states can be listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders import Verdict
from safetest_gym.deciders.base import PART
from safetest_gym.engine.kernels.following import FAILING
from safetest_gym.faults.alternatives import safe_alternatives
from safetest_gym.faults.fault import Fault
from safetest_gym.policies.reachable import Reachable

if TYPE_CHECKING:
    from safetest_gym.deciders.base import Decider
    from safetest_gym.policies import Policy
    from safetest_gym.task import Task

__all__ = ["reachable_faults"]


def reachable_faults(
    task: Task, policy: Policy, starts: NDArray[Any], decider: Decider, *, max_states: int
) -> tuple[Fault, ...]:
    """The faults in states that runs of ``policy`` from ``starts`` (n, V) can visit.

    These are all of them if there are no more than ``max_states`` states, else those in the
    states listed first. States from which the policy cannot fail are safe by that; only the
    others are decided.

    Args:
        decider: of infinite radius; its cache is used and kept. What it leaves open is no
            fault.
    """
    bound = policy.bind(task)
    graph = Reachable(task, bound)
    graph.add_starts(task.engine.pack(np.asarray(starts)), max_states)
    faulty, bad = _faulty(graph, _verdicts(task, graph, decider))
    if not len(faulty):
        return ()
    states = task.engine.unpack(graph.states[faulty])
    outcomes = task.engine.unpack(graph.states[bad])
    actions = bound.actions(states, np.asarray(task.applicable_many(states), np.bool_))
    safe = safe_alternatives(decider, states)
    return tuple(
        Fault(states[i], int(actions[i]), outcomes[i], tuple(np.flatnonzero(safe[i]).tolist()))
        for i in range(len(states))
    )


def _verdicts(task: Task, graph: Reachable, decider: Decider) -> NDArray[np.uint8]:
    """Per state of the graph; those that surely can fail are decided first."""
    verdicts = np.full(graph.num_states, int(Verdict.SAFE), np.uint8)
    failing = graph.can_reach(FAILING)
    for doubtful in (failing, graph.can_leave() & ~failing):
        rows = np.flatnonzero(doubtful)
        for first in range(0, len(rows), PART):
            part = rows[first : first + PART]
            decider.make_room()
            verdicts[part] = decider.decide_many(task.engine.unpack(graph.states[part]))
    return verdicts


def _faulty(
    graph: Reachable, verdicts: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Safe states with an outcome that is not, and the first such outcome."""
    firsts = graph.firsts
    at = np.flatnonzero(verdicts[graph.outcomes] == int(Verdict.UNSAFE))
    source = np.searchsorted(firsts, at, side="right") - 1
    known = verdicts[source] == int(Verdict.SAFE)
    faulty, first = np.unique(source[known], return_index=True)
    return faulty, graph.outcomes[at[known][first]]
