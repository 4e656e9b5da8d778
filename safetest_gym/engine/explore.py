"""Explore every reachable state, counting states, choices and transitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.kernels.exploration import (
    CHOICES,
    DEADLOCKS,
    DONE,
    FAILING,
    GOAL,
    KNOWN,
    NEXT,
    NO_ROWS,
    NO_STATES,
    TRANSITIONS,
    explore_kernel,
)
from safetest_gym.engine.kernels.intern import intern_rows_kernel, rehash_kernel
from safetest_gym.errors import ConfigError

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["Counts", "Explorer"]

SLICE = 100_000
"""States expanded between two looks at the clock and the keyboard."""

MAX_STATES = 2**31 - 2


@dataclass(frozen=True, slots=True)
class Counts:
    """What an exploration saw; ``failing`` and ``goal`` are None without a property."""

    states: int
    choices: int
    transitions: int
    deadlocks: int
    initial_states: int
    failing: int | None
    goal: int | None


class Explorer:
    """Breadth-first exploration that can be resumed with a higher limit.

    Args:
        starts: ``default`` begins at the model's own initial states, ``all`` at the start
            states of the property.
        mode: what a choice is: a composed ``edge`` or a ``label``.
    """

    def __init__(
        self,
        task: Task,
        *,
        starts: Literal["default", "all"] = "default",
        mode: Literal["edge", "label"] = "edge",
        max_initial: int = 10_000_000,
    ) -> None:
        if mode not in ("edge", "label"):
            raise ConfigError(f"mode must be 'edge' or 'label', got {mode!r}")
        if starts not in ("default", "all"):
            raise ConfigError(f"starts must be 'default' or 'all', got {starts!r}")
        self._task = task
        self._engine = task.engine
        self._granularity = 2 if task.model.type == "dtmc" else (0 if mode == "edge" else 1)
        chosen = task.default_initial if starts == "default" else task.initial
        first = self._engine.pack(chosen.enumerate(max_initial))
        self._counters = np.zeros(7, np.int64)
        self._states = np.empty((max(1024, 2 * len(first)), self._engine.num_words), np.int64)
        self._table = np.zeros(0, np.int32)
        self._grow_table(4 * len(self._states))
        found = np.empty(len(first), np.int64)
        self._counters[KNOWN] = intern_rows_kernel(
            self._states, self._table, 0, first, len(first), found
        )
        self._initial = int(self._counters[KNOWN])
        self._ends = np.zeros(max(1, self._engine.num_labels), np.int64)
        self._grow_rows(max(16, self._engine.machine.rows))

    def run(
        self,
        max_states: int = MAX_STATES,
        progress: Callable[[int, int], None] | None = None,
    ) -> bool:
        """Explore until nothing is left (True) or more than ``max_states`` are known.

        Args:
            progress: called now and then with states known and states still to expand.
        """
        limit = min(max_states, MAX_STATES)
        while True:
            result = explore_kernel(
                self._engine.address("expand"),
                self._engine.address("classify"),
                self._granularity,
                self._states,
                self._table,
                self._counters,
                *self._rows,
                self._ends,
                self._found,
                self._stamps,
                limit,
                SLICE,
            )
            known, following = int(self._counters[KNOWN]), int(self._counters[NEXT])
            if progress is not None:
                progress(known, known - following)
            if result < 0:
                self._engine.explain(self._states[-1 - result])
            if result == NO_ROWS:
                self._grow_rows(2 * len(self._found))
            elif result == NO_STATES:
                self._grow_states()
            elif result == DONE:
                return following == known

    def counts(self) -> Counts:
        """The numbers so far."""
        counters = self._counters
        judged = self._task.has_property
        return Counts(
            states=int(counters[KNOWN]),
            choices=int(counters[CHOICES]),
            transitions=int(counters[TRANSITIONS]),
            deadlocks=int(counters[DEADLOCKS]),
            initial_states=self._initial,
            failing=int(counters[FAILING]) if judged else None,
            goal=int(counters[GOAL]) if judged else None,
        )

    @property
    def states(self) -> NDArray[np.int64]:
        """The packed states known, in the order of discovery (a copy)."""
        return self._states[: self._counters[KNOWN]].copy()

    def _grow_rows(self, capacity: int) -> None:
        self._rows = self._engine.row_buffers(capacity)
        self._found = np.empty(capacity, np.int64)
        slots = 1 << (2 * capacity).bit_length()
        self._stamps = np.zeros((slots, 2), np.int64)

    def _grow_states(self) -> None:
        needed = int(self._counters[KNOWN]) + len(self._found)
        if needed > len(self._states):
            capacity = max(needed, len(self._states) + len(self._states) // 2)
            self._states.resize((capacity, self._states.shape[1]), refcheck=False)
        if needed > len(self._table) * 5 // 8:
            self._grow_table(2 * max(needed, len(self._table)))

    def _grow_table(self, least: int) -> None:
        self._table = np.zeros(0, np.int32)
        self._table = np.zeros(1 << (least - 1).bit_length(), np.int32)
        rehash_kernel(self._states, self._table, int(self._counters[KNOWN]))
