"""What a policy could do instead: a state that is safe has an action with safe outcomes only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders.base import PART, Decider
from safetest_gym.deciders.verdict import Verdict

if TYPE_CHECKING:
    from safetest_gym.faults.analysis import Decider as Asked

__all__ = ["safe_alternatives"]


def safe_alternatives(decider: Asked, states: NDArray[Any]) -> NDArray[np.bool_]:
    """Per safe state and action, (n, A), are all outcomes known to be safe?

    A decider whose budget earlier answers have filled forgets them, so that a state is left
    without any such action only if it takes half of the budget by itself.
    """
    if not isinstance(decider, Decider):
        return np.array([decider.safe_actions(state) for state in states], np.bool_)
    safe = np.zeros((len(states), decider.task.num_actions), np.bool_)
    for first in range(0, len(states), PART):
        decider.make_room()
        part = states[first : first + PART]
        safe[first : first + PART] = decider.action_verdicts(part) == Verdict.SAFE
    for row in np.flatnonzero(~safe.any(axis=1)):
        decider.make_room(answers=0)
        state = states[row : row + 1]
        decider.decide_many(state)  # finds one that is safe before others can use up the budget
        safe[row] = decider.action_verdicts(state)[0] == Verdict.SAFE
    return safe
