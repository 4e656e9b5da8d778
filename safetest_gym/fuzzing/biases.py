"""How a policy's behaviour in a state weighs in a walk: where it struggles, look closer."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from safetest_gym.fuzzing.runs import End, Run, Runs

__all__ = ["Bias", "weights"]

Bias = Literal["none", "quality", "plan_length", "detour", "loopiness"]

_LONGEST = 200
"""States of a run that loopiness looks at."""


def weights(bias: Bias, runs: Runs) -> NDArray[np.float64]:
    """Weight of each run's start.

    - ``quality`` ([D]): steps to the goal, 0 where the goal is not reached.
    - ``plan_length``: steps, however the run ends.
    - ``detour``: steps per variable that the run changed in the end.
    - ``loopiness``: how often it comes back to within one variable of an earlier state.
    """
    lengths = runs.lengths.astype(np.float64)
    if bias == "none":
        return np.ones(len(runs))
    if bias == "quality":
        return np.where(runs.ends == End.GOAL, lengths, 0.0)
    if bias == "plan_length":
        return lengths
    measure = _detour if bias == "detour" else _loopiness
    return np.array([measure(run) for run in runs])


def _detour(run: Run) -> float:
    changed = int((run.states[0] != run.states[-1]).sum())
    return len(run) / (1 + changed)


def _loopiness(run: Run) -> float:
    states = run.states[:_LONGEST]
    apart = (states[:, None, :] != states[None, :, :]).sum(axis=2)
    rows, columns = np.tril_indices(len(states), -2)
    return float((apart[rows, columns] <= 1).sum())
