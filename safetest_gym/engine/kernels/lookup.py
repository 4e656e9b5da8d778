"""Look up and take out states of the table that `kernels.intern` fills."""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels.choose import uint8_at
from safetest_gym.engine.kernels.intern import spread

__all__ = ["find_kernel", "forget_kernel", "refill_kernel"]


@njit(cache=True, nogil=True, _nrt=False)
def forget_kernel(states: Any, table: Any, first: int, last: int) -> None:
    """Take out the states ``first : last``, which must be those numbered last.

    States that stay were put in before them, so none of those is behind a slot freed here.
    """
    width = states.shape[1]
    mask = table.shape[0] - 1
    for s in range(first, last):
        at = spread(states, s, width) & mask
        while table[at] != s + 1:
            at = (at + 1) & mask
        table[at] = 0


@njit(cache=True, nogil=True, _nrt=False)
def refill_kernel(columns: Any, first: int, last: int) -> None:
    """Fill the entries ``first : last`` of columns, given as (address, bytes per entry, byte)."""
    for i in range(columns.shape[0]):
        size = columns[i, 1]
        memory = uint8_at(columns[i, 0])
        for at in range(first * size, last * size):
            memory[at] = columns[i, 2]


@njit(cache=True, nogil=True, _nrt=False)
def find_kernel(states: Any, table: Any, rows: Any, found: Any) -> None:
    """found[r]: number of the state in row r, or -1 if it is not known."""
    width = states.shape[1]
    mask = table.shape[0] - 1
    for r in range(rows.shape[0]):
        at = spread(rows, r, width) & mask
        found[r] = -1
        while table[at] != 0:
            entry = table[at] - 1
            same = True
            for w in range(width):
                if states[entry, w] != rows[r, w]:
                    same = False
                    break
            if same:
                found[r] = entry
                break
            at = (at + 1) & mask
