"""Build an explicit graph in arrays that grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.kernels import graph as k
from safetest_gym.engine.kernels.intern import intern_rows_kernel, rehash_kernel
from safetest_gym.errors import LimitError

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["GraphBuilder"]

SLICE = 100_000
"""States expanded between two looks at the keyboard."""

_MAX_STATES = 2**31 - 2


class GraphBuilder:
    """Explores breadth first, the kernel in slices; what is missing grows in between."""

    def __init__(self, task: Task, starts: NDArray[Any], max_states: int | None) -> None:
        self._task = task
        self._engine = engine = task.engine
        first = engine.pack(starts)
        size = max(1024, 2 * len(first))
        self._states = np.empty((size, engine.num_words), np.int64)
        self._table = np.zeros(1 << (4 * size - 1).bit_length(), np.int32)
        found = np.empty(len(first), np.int64)
        self.num_initial = int(
            intern_rows_kernel(self._states, self._table, 0, first, len(first), found)
        )
        self._counters = np.zeros(5, np.int64)
        self._counters[k.KNOWN] = self.num_initial
        self._counters[k.LIMIT] = max_states or _MAX_STATES
        self._kinds = np.zeros(size, np.uint8)
        self._first_choice = np.zeros(size + 1, np.int64)
        self._action = np.zeros(size, np.int32)
        self._first_outcome = np.zeros(size + 1, np.int64)
        self._outcome = np.zeros(size, np.int32)
        self._probability = np.zeros(size, np.float64)
        self._ends = np.zeros(max(1, engine.num_labels), np.int64)
        self._grow_rows(max(16, engine.machine.rows))

    def _grow_rows(self, capacity: int) -> None:
        self._rows = self._engine.row_buffers(capacity)
        self._found = np.empty(capacity, np.int64)

    @property
    def _graph(self) -> tuple[NDArray[Any], ...]:
        return (
            self._kinds,
            self._first_choice,
            self._action,
            self._first_outcome,
            self._outcome,
            self._probability,
        )

    def run(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Explore until nothing is left.

        Raises:
            LimitError: more states than allowed.
        """
        engine, counters = self._engine, self._counters
        code = engine.address("expand"), engine.address("classify")
        result = k.MORE
        while result != k.DONE:
            result = k.build_kernel(
                code,
                (self._states, self._table),
                (*self._rows, self._ends, self._found),
                self._graph,
                counters,
                self._task.granularity,
                SLICE,
            )
            if progress is not None:
                progress(int(counters[k.KNOWN]), int(counters[k.KNOWN] - counters[k.NEXT]))
            self._continue(result)
        if counters[k.NEXT] < counters[k.KNOWN]:
            raise LimitError(f"more than {counters[k.LIMIT]} states can be reached")

    def _continue(self, result: int) -> None:
        counters, rows = self._counters, len(self._found)
        if result == k.NO_ROWS:
            self._grow_rows(2 * rows)
        elif result == k.NO_STATES:
            self._grow_states(int(counters[k.KNOWN]) + rows)
        elif result == k.NO_CHOICES:
            size = len(self._action) + len(self._action) // 2 + rows + 1
            self._action.resize(size, refcheck=False)
            self._first_outcome.resize(size + 1, refcheck=False)
        elif result == k.NO_OUTCOMES:
            size = len(self._outcome) + len(self._outcome) // 2 + rows
            self._outcome.resize(size, refcheck=False)
            self._probability.resize(size, refcheck=False)
        elif result == k.ERROR:
            self._engine.explain(self._states[counters[k.NEXT]])

    def _grow_states(self, needed: int) -> None:
        if needed > len(self._states):
            size = max(needed, len(self._states) + len(self._states) // 2)
            self._states.resize((size, self._engine.num_words), refcheck=False)
            self._kinds.resize(size, refcheck=False)
            self._first_choice.resize(size + 1, refcheck=False)
        if needed > len(self._table) * 5 // 8:
            size = 1 << (2 * max(needed, len(self._table)) - 1).bit_length()
            self._table = np.zeros(size, np.int32)
            rehash_kernel(self._states, self._table, int(self._counters[k.KNOWN]))

    @property
    def packed(self) -> NDArray[np.int64]:
        """The states."""
        return self._states[: self._counters[k.KNOWN]]

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Kinds, first choice, action, first outcome, outcome, probability."""
        known, choices, outcomes = self._counters[[k.KNOWN, k.CHOICES, k.OUTCOMES]].tolist()
        sizes = known, known + 1, choices, choices + 1, outcomes, outcomes
        return tuple(array[:size] for array, size in zip(self._graph, sizes, strict=True))
