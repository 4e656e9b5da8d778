"""Number packed states: an open-addressing table over rows of a growing array.

``table[h]`` is 0 or 1 + the row of a state; its length is a power of two. Callers make
sure that there is room before they insert.
"""

from __future__ import annotations

from typing import Any

from numba import njit

__all__ = ["intern_rows_kernel", "rehash_kernel", "spread"]

_K1 = -7046029254386353131  # 2**64 / golden ratio, odd
_K2 = -4417276706812531889


@njit(inline="always")
def spread(rows: Any, row: int, width: int) -> int:
    """Where a row belongs; states that differ in the last bits only are neighbours in memory."""
    low = rows[row, 0] & 15
    h = (rows[row, 0] >> 4) * _K1
    for w in range(1, width):
        h = (h ^ ((h >> 31) & 0x1FFFFFFFF) ^ rows[row, w]) * _K1
    h = (h ^ ((h >> 29) & 0x7FFFFFFFF)) * _K2
    return (h ^ ((h >> 32) & 0xFFFFFFFF)) + low


@njit(cache=True, nogil=True, _nrt=False)
def intern_rows_kernel(
    states: Any, table: Any, known: int, rows: Any, count: int, found: Any
) -> int:
    """found[r]: number of the state in row r of ``rows``; returns how many are known now."""
    width = states.shape[1]
    mask = table.shape[0] - 1
    for r in range(count):
        at = spread(rows, r, width) & mask
        while True:
            entry = table[at]
            if entry == 0:
                for w in range(width):
                    states[known, w] = rows[r, w]
                known += 1
                table[at] = known
                found[r] = known - 1
                break
            same = True
            for w in range(width):
                if states[entry - 1, w] != rows[r, w]:
                    same = False
                    break
            if same:
                found[r] = entry - 1
                break
            at = (at + 1) & mask
    return known


@njit(cache=True, nogil=True, _nrt=False)
def rehash_kernel(states: Any, table: Any, known: int) -> None:
    """Fill an empty ``table`` with the ``known`` first states."""
    width = states.shape[1]
    mask = table.shape[0] - 1
    for s in range(known):
        at = spread(states, s, width) & mask
        while table[at] != 0:
            at = (at + 1) & mask
        table[at] = s + 1
