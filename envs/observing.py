"""What a learner sees of a state: which variables, in which numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError, StateError
from safetest_gym.jani.operations import comparable
from safetest_gym.jani.tree import Variable
from safetest_gym.task import Task

__all__ = ["Observation", "View", "choice_space", "make_view"]

Observation = Literal["float32", "float64", "normalized"]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Observations are ``((state - offset) * scale)[columns]``.

    Attributes:
        observed: names of the variables seen, in order.
        columns: where a state has them; int64 (F,). None if it is all in order.
        offset: per variable of the state, float64 (V,).
        scale: float64 (V,).
        space: Gymnasium's description of observations.
        inexact: columns of integers with values that the dtype cannot all hold.
    """

    observed: tuple[str, ...]
    columns: NDArray[np.int64] | None
    offset: NDArray[np.float64]
    scale: NDArray[np.float64]
    space: spaces.Box
    inexact: tuple[int, ...]

    def __call__(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Fresh observations of one state (V,) or several (n, V), scaled before."""
        if self.columns is None:
            return observations.copy()
        picked: NDArray[Any] = observations[..., self.columns]
        return picked

    def require_exact(self, states: NDArray[Any]) -> None:
        """Refuse integer values that the observation would round; states are (n, V)."""
        dtype = np.dtype(self.space.dtype)
        largest = _largest(dtype)
        values = states[:, self.inexact]
        wrong = (values > largest) | (values < -largest)
        if wrong.any():
            row, which = np.argwhere(wrong)[0]
            columns = range(states.shape[1]) if self.columns is None else self.columns.tolist()
            name = self.observed[columns.index(self.inexact[which])]
            raise StateError(
                f"{name} = {values[row, which]} does not fit a {dtype} observation exactly; "
                "take observation='float64' or leave it out of observed"
            )


def choice_space(task: Task) -> spaces.Discrete:
    """The space of a task's actions.

    Raises:
        ConfigError: there is none.
    """
    if not task.num_actions:
        raise ConfigError(f"{task.name!r} has no action, so there is nothing to learn")
    return spaces.Discrete(task.num_actions)


def make_view(task: Task, kind: Observation, observed: Sequence[str] | None) -> View:
    """The view of ``observed`` (all variables if None), in the order given."""
    names = [variable.name for variable in task.variables]
    chosen = names if observed is None else list(observed)
    for name in chosen:
        if name not in names:
            close = get_close_matches(str(name), names, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise ConfigError(f"observed names {name!r}, which is no variable{hint}")
    if not chosen or len(set(chosen)) < len(chosen):
        raise ConfigError("observed must name at least one variable, and none twice")
    variables = [task.variables[names.index(name)] for name in chosen]
    dtype = np.dtype(np.float64 if kind == "float64" else np.float32)
    offset, scale = np.zeros(len(names)), np.ones(len(names))
    columns = np.array([names.index(name) for name in chosen], dtype=np.int64)
    if kind == "normalized":
        for column, variable in zip(columns, variables, strict=True):
            offset[column], scale[column] = _normalization(variable)
    return View(
        observed=tuple(chosen),
        columns=None if chosen == names else columns,
        offset=offset,
        scale=scale,
        space=_space(variables, kind, dtype),
        inexact=_inexact(variables, names, dtype) if kind != "normalized" else (),
    )


def _normalization(variable: Variable) -> tuple[float, float]:
    if variable.lower is None or variable.upper is None:
        raise ConfigError(
            f"variable {variable.name!r} has no bounds, so its observation cannot be "
            "normalized; take observation='float32', or leave it out of observed"
        )
    lower, upper = float(variable.lower), float(variable.upper)
    return (lower + upper) / 2, 2 / (upper - lower) if upper > lower else 1.0


def _space(variables: Sequence[Variable], kind: Observation, dtype: np.dtype[Any]) -> spaces.Box:
    if kind == "normalized":
        return spaces.Box(-1.0, 1.0, (len(variables),), dtype.type)
    low = [-np.inf if v.lower is None else comparable(v.lower) for v in variables]
    high = [np.inf if v.upper is None else comparable(v.upper) for v in variables]
    with np.errstate(over="ignore"):  # bounds beyond the dtype are infinite
        return spaces.Box(np.array(low, dtype), np.array(high, dtype), dtype=dtype.type)


def _largest(dtype: np.dtype[Any]) -> int:
    """Up to here (and down to minus that) floats of this dtype hold every integer."""
    return 1 << (np.finfo(dtype).nmant + 1)


def _inexact(
    variables: Sequence[Variable], names: Sequence[str], dtype: np.dtype[Any]
) -> tuple[int, ...]:
    largest = _largest(dtype)
    return tuple(
        names.index(variable.name)
        for variable in variables
        if variable.kind == "int"
        and (
            variable.lower is None
            or variable.upper is None
            or variable.lower < -largest
            or variable.upper > largest
        )
    )
