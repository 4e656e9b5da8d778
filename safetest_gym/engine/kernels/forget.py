"""Take states out of the table that `kernels.intern` fills."""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels.intern import _spread

__all__ = ["forget_kernel"]


@njit(cache=True, nogil=True)
def forget_kernel(states: Any, table: Any, first: int, last: int) -> None:
    """Take out the states ``first : last``, which must be those numbered last.

    States that stay were put in before them, so none of those is behind a slot freed here.
    """
    width = states.shape[1]
    mask = table.shape[0] - 1
    for s in range(first, last):
        at = _spread(states, s, width) & mask
        while table[at] != s + 1:
            at = (at + 1) & mask
        table[at] = 0
