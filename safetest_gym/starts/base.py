"""What every set of start states can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safetest_gym.errors import ConfigError, StartError, StateError
from safetest_gym.jani.tree import Value, Variable

__all__ = ["StartSet", "states_dtype"]


class StartSet(ABC):
    """A set of states over ``variables``.

    States are rows in the order of the variables: int64, or float64 when any variable is
    real; bools are 0 and 1. Work is done when it is first needed. Random numbers come from
    the generator given and nowhere else.
    """

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = tuple(variables)
        self.dtype: np.dtype[Any] = states_dtype(self.variables)

    @abstractmethod
    def count(self) -> int | None:
        """How many states there are; None if infinitely many."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """``n`` independent states, each uniform over the set; shape (n, variables).

        Raises:
            StartError: the set is empty, or too small a part of its bounds to be hit.
        """

    @abstractmethod
    def enumerate(self, limit: int) -> NDArray[Any]:
        """All states, shape (count, variables).

        Raises:
            LimitError: there are more than ``limit``.
            StartError: there are infinitely many.
        """

    @abstractmethod
    def contains(self, state: ArrayLike) -> bool:
        """Is ``state`` in the set?"""

    def _row(self, state: ArrayLike) -> NDArray[Any]:
        row = np.asarray(state)
        if row.shape != (len(self.variables),) or row.dtype.kind not in "biuf":
            raise StateError(
                f"a state is a vector of {len(self.variables)} numbers, got shape {row.shape} "
                f"of {row.dtype}"
            )
        return row

    def _values(self, row: NDArray[Any]) -> Mapping[Variable, Value] | None:
        """``row`` as values of the variables, or None if one is out of its bounds or kind."""
        values: dict[Variable, Value] = {}
        for variable, entry in zip(self.variables, row.tolist(), strict=True):
            if entry != entry or entry in (float("inf"), float("-inf")):
                return None
            if variable.kind != "real" and entry != int(entry):
                return None
            if variable.lower is not None and entry < variable.lower:
                return None
            if variable.upper is not None and entry > variable.upper:
                return None
            kind = {"bool": bool, "int": int, "real": float}[variable.kind]
            values[variable] = kind(entry)
        return values

    def _require_number(self, n: int) -> None:
        if n < 0:
            raise ConfigError(f"the number of start states must be at least 0, got {n}")

    def _empty(self) -> StartError:
        return StartError("the set of start states is empty; no state can be drawn from it")


def states_dtype(variables: Sequence[Variable]) -> np.dtype[Any]:
    """Type of states over ``variables``."""
    real = any(variable.kind == "real" for variable in variables)
    return np.dtype(np.float64 if real else np.int64)
