"""Two policies side by side on the same start states: where they part, what it costs or gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.policies.evaluation import Evaluation
from safetest_gym.policies.policy import Policy

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["Comparison", "Divergence", "compare_policies"]

_SHOWN = 5
_STEPS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Divergence:
    """On a run of the policy before, the first state where the one after decides otherwise."""

    step: int
    state: NDArray[Any]
    before: int
    after: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Comparison:
    """What a repair did to the runs from some start states.

    Attributes:
        starts: how many.
        diverging: runs of the policy before, one per start, on which a decision differs.
        first: the earliest such decisions.
        goal_lost, goal_won: starts from which the goal could be reached before and cannot
            now, and the reverse.
        made_safe, made_unsafe: starts from which runs could fail before and cannot now, and
            the reverse.
        certain: whether all these counts are exact, not only sampled.
    """

    starts: int
    diverging: int
    first: tuple[Divergence, ...]
    goal_lost: int
    goal_won: int
    made_safe: int
    made_unsafe: int
    certain: bool

    def as_dict(self, task: Task) -> dict[str, Any]:
        """Plain data with names."""
        return {
            "starts": self.starts,
            "diverging": self.diverging,
            "first": [
                {
                    "step": entry.step,
                    "state": task.as_dict(entry.state),
                    "before": task.actions[entry.before],
                    "after": task.actions[entry.after],
                }
                for entry in self.first
            ],
            "goal_lost": self.goal_lost,
            "goal_won": self.goal_won,
            "made_safe": self.made_safe,
            "made_unsafe": self.made_unsafe,
            "certain": self.certain,
        }


def compare_policies(
    task: Task,
    policies: tuple[Policy, Policy],
    evaluations: tuple[Evaluation, Evaluation],
    seed: int = 0,
) -> Comparison:
    """Compare the policy before with the one after, both evaluated from the same starts."""
    before, after = evaluations
    count, first = _divergences(task, policies, before.starts, seed)
    return Comparison(
        starts=len(before.starts),
        diverging=count,
        first=first,
        goal_lost=int((before.arrives & ~after.arrives).sum()),
        goal_won=int((~before.arrives & after.arrives).sum()),
        made_safe=int((before.unsafe & ~after.unsafe).sum()),
        made_unsafe=int((~before.unsafe & after.unsafe).sum()),
        certain=bool(before.exact.all() and after.exact.all()),
    )


def _divergences(
    task: Task, policies: tuple[Policy, Policy], starts: NDArray[Any], seed: int
) -> tuple[int, tuple[Divergence, ...]]:
    """How many runs meet a changed decision, and the first changes of a few of them."""
    from safetest_gym.fuzzing import Fuzzer

    before, after = (policy.bind(task) for policy in policies)
    runs = Fuzzer(task, before, max_steps=_STEPS, seed=seed).run_from(starts)
    asked = np.flatnonzero(runs.actions >= 0)
    states = task.engine.unpack(runs.words[asked])
    masks = np.asarray(task.applicable_many(states), dtype=np.bool_)
    new = after.actions(states, masks) if len(states) else np.zeros(0, np.int64)
    differs = np.flatnonzero(new != runs.actions[asked])
    owner = np.searchsorted(runs.offsets, asked[differs], side="right") - 1
    _, place = np.unique(owner, return_index=True)
    steps = asked[differs[place]] - runs.offsets[owner[place]]
    shown = []
    for row in np.argsort(steps, kind="stable")[:_SHOWN]:
        which = differs[place[row]]
        old = int(runs.actions[asked[which]])
        shown.append(Divergence(int(steps[row]), states[which], old, int(new[which])))
    return len(place), tuple(shown)
