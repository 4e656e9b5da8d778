"""Numbers for packed states."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.kernels.intern import intern_rows_kernel, rehash_kernel

__all__ = ["Interner"]

Words = NDArray[np.int64]


class Interner:
    """Gives each packed state a number, in the order they come.

    Attributes:
        known: how many have one.
        states: packed states by number; rows from ``known`` on are nothing.
    """

    def __init__(self, width: int) -> None:
        self.known = 0
        self.states = np.empty((1024, width), np.int64)
        self._table = np.zeros(2048, np.int64)

    def add(self, rows: Words) -> Words:
        """Numbers of packed states, new or known."""
        rows = np.ascontiguousarray(rows)
        needed = self.known + len(rows)
        if needed > len(self.states):
            grown = np.empty((2 * needed, self.states.shape[1]), np.int64)
            grown[: self.known] = self.states[: self.known]
            self.states = grown
            self._table = np.zeros(1 << (2 * len(grown)).bit_length(), np.int64)
            rehash_kernel(self.states, self._table, self.known)
        found = np.empty(len(rows), np.int64)
        self.known = intern_rows_kernel(
            self.states, self._table, self.known, rows, len(rows), found
        )
        return found
