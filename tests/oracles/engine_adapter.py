"""The machine code, asked in the interpreter's terms: states are tuples of Python values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from safetest_gym.engine.interpreter import State
from safetest_gym.jani.tree import Value, Variable
from safetest_gym.task import Task

__all__ = ["Actions", "as_state", "as_vector", "engine_actions"]

Actions = list[tuple[int, list[tuple[float, State]]]]
"""Per applicable action, ascending: its number, its outcomes in the engine's order."""


def engine_actions(task: Task, state: State) -> Actions:
    """What can be chosen in ``state`` according to the machine code."""
    return [
        (
            action,
            [(float(probability), as_state(task, after)) for probability, after in outcomes],
        )
        for action, outcomes in task.successors(as_vector(task, state))
    ]


def as_vector(task: Task, state: Sequence[Value]) -> npt.NDArray[np.generic]:
    """``state`` as the task takes it."""
    return np.array([float(v) if task.dtype == np.float64 else int(v) for v in state], task.dtype)


def as_state(task: Task, vector: npt.NDArray[np.generic]) -> State:
    """``vector`` as the interpreter has it."""
    return tuple(
        _value(variable, number)
        for variable, number in zip(task.variables, vector.tolist(), strict=True)
    )


def _value(variable: Variable, number: int | float) -> Value:
    if variable.kind == "real":
        return float(number)
    return bool(number) if variable.kind == "bool" else int(number)
