"""What a policy can reach and how likely runs end, with plain dictionaries: slow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from safetest_gym.policies import Policy
from safetest_gym.task import Task

__all__ = ["PolicyGraph", "policy_graph"]

State = tuple[float, ...]


@dataclass(frozen=True)
class PolicyGraph:
    """Outcomes (probability, state) per state; kind is goal, failing, dead end or running."""

    outcomes: dict[State, list[tuple[float, State]]]
    kind: dict[State, str]

    def can_reach(self, kind: str) -> set[State]:
        """States from which a state of this kind can be reached."""
        found = {state for state, other in self.kind.items() if other == kind}
        while True:
            more = {
                state
                for state, outcomes in self.outcomes.items()
                if state not in found and any(successor in found for _, successor in outcomes)
            }
            if not more:
                return found
            found |= more

    def probability(self, kind: str, steps: int) -> dict[State, float]:
        """Chance to end in this kind within so many steps."""
        chance = {state: float(other == kind) for state, other in self.kind.items()}
        for _ in range(steps):
            chance = {
                state: sum(p * chance[successor] for p, successor in self.outcomes[state])
                if self.kind[state] == "running"
                else chance[state]
                for state in chance
            }
        return chance


def policy_graph(policy: Policy, task: Task, starts: Any) -> PolicyGraph:
    """Explore from the start vectors."""
    outcomes: dict[State, list[tuple[float, State]]] = {}
    kind: dict[State, str] = {}
    queue = [tuple(start) for start in np.asarray(starts).tolist()]
    while queue:
        state = queue.pop()
        if state in kind:
            continue
        vector = np.array(state, dtype=task.dtype)
        choices = dict(task.successors(vector))
        outcomes[state] = []
        if task.is_failing(vector):
            kind[state] = "failing"
        elif task.is_goal(vector):
            kind[state] = "goal"
        elif not choices:
            kind[state] = "dead end"
        else:
            kind[state] = "running"
            mask = np.zeros((1, task.num_actions), dtype=np.bool_)
            mask[0, list(choices)] = True
            action = int(policy.actions(vector[None, :], mask)[0])
            outcomes[state] = [(p, tuple(s.tolist())) for p, s in choices[action]]
            queue += [successor for _, successor in outcomes[state]]
    return PolicyGraph(outcomes, kind)
