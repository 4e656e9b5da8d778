"""What a repair is asked for: faults to remove, and decisions to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError

if TYPE_CHECKING:
    from safetest_gym.faults.fault import Fault
    from safetest_gym.task import Task

__all__ = ["FaultSet", "KeepSet"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FaultSet:
    """Decisions that must change; one row per fault, a state may occur with several actions.

    Attributes:
        states: shape (n, V), in the task's order.
        actions: the bad action per row.
        applicable: masks (n, A).
        safe: masks (n, A): applicable actions all of whose outcomes are safe.
    """

    states: NDArray[Any]
    actions: NDArray[np.int64]
    applicable: NDArray[np.bool_]
    safe: NDArray[np.bool_]

    def __post_init__(self) -> None:
        count = len(self.states)
        if self.states.ndim != 2 or self.actions.shape != (count,):
            raise ConfigError(
                f"faults need states (n, V) and actions (n,), got {self.states.shape} and "
                f"{self.actions.shape}"
            )
        if self.applicable.shape != self.safe.shape or self.applicable.shape[:1] != (count,):
            raise ConfigError(
                f"the masks of {count} faults must be ({count}, A), got applicable "
                f"{self.applicable.shape} and safe {self.safe.shape}"
            )
        rows = np.arange(count)
        if count and not 0 <= self.actions.min() <= self.actions.max() < self.safe.shape[1]:
            raise ConfigError(f"a bad action is none of 0 to {self.safe.shape[1] - 1}")
        for wrong, what in (
            (~self.applicable[rows, self.actions], "the bad action is not applicable"),
            (self.safe[rows, self.actions], "the bad action is called safe"),
            ((self.safe & ~self.applicable).any(axis=1), "a safe action is not applicable"),
        ):
            if wrong.any():
                raise ConfigError(f"fault {int(wrong.argmax())}: {what}")

    def __len__(self) -> int:
        return len(self.states)

    def take(self, rows: NDArray[np.int64]) -> FaultSet:
        """Some of the faults."""
        return FaultSet(
            states=self.states[rows],
            actions=self.actions[rows],
            applicable=self.applicable[rows],
            safe=self.safe[rows],
        )

    @classmethod
    def of(cls, task: Task, faults: Sequence[Fault]) -> FaultSet:
        """Faults as fault analysis reports them; their alternatives are the safe actions."""
        states = np.array([fault.state for fault in faults], dtype=task.dtype)
        states = states.reshape(len(faults), task.num_variables)
        safe = np.zeros((len(faults), task.num_actions), dtype=np.bool_)
        for row, fault in enumerate(faults):
            safe[row, list(fault.alternatives)] = True
        return cls(
            states=states,
            actions=np.array([fault.action for fault in faults], dtype=np.int64),
            applicable=np.asarray(task.applicable_many(states), dtype=np.bool_),
            safe=safe,
        )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class KeepSet:
    """States whose decision must stay what it is before the repair.

    Attributes:
        states: shape (n, V), in the task's order.
        applicable: masks (n, A).
        penalty: what one unit of a violated keep costs, in units of change; infinite
            (default): no decision may change.
    """

    states: NDArray[Any]
    applicable: NDArray[np.bool_]
    penalty: float = float("inf")

    def __post_init__(self) -> None:
        if self.states.ndim != 2 or len(self.applicable) != len(self.states):
            raise ConfigError(
                f"states to keep must be (n, V) with masks (n, A), got {self.states.shape} and "
                f"{self.applicable.shape}"
            )
        if not self.penalty > 0:
            raise ConfigError(f"the penalty of a keep must be positive, got {self.penalty}")

    def __len__(self) -> int:
        return len(self.states)
