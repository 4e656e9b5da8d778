"""Apply the model's machine code to many states in one call.

States are rows of packed words. A negative return is ``-1 - row`` of the state without a
value; see `safetest_gym.engine.module` for the machine code's own conventions.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from safetest_gym.engine.kernels.native import call, place

__all__ = [
    "applicable_kernel",
    "classify_kernel",
    "evaluate_kernel",
    "expand_kernel",
    "fill_kernel",
    "pack_kernel",
]


@njit(cache=True, nogil=True)
def expand_kernel(
    address: int,
    states: Any,
    first: int,
    succ: Any,
    prob: Any,
    number: Any,
    ends: Any,
    rows: Any,
) -> int:
    """Successors of states ``first ..`` one after the other, until rows run out.

    ``ends[s, k]``: rows of state s up to label k, ``rows[s]``: first row of state s. Returns
    the number of states done, or ``-1 - s``.
    """
    count = rows[first]
    for s in range(first, states.shape[0]):
        width = states.shape[1]
        result = call(
            address,
            (
                place(states, s * width),
                place(succ, count * width),
                place(prob, count),
                place(number, count),
                place(ends, s * ends.shape[1]),
                prob.shape[0] - count,
            ),
        )
        if result == -2:
            return s
        if result < 0:
            return -1 - s
        count += result
        rows[s + 1] = count
    return states.shape[0]


@njit(cache=True, nogil=True)
def applicable_kernel(address: int, states: Any, masks: Any) -> int:
    """masks[s, a]: is label a enabled in state s?"""
    for s in range(states.shape[0]):
        if (
            call(address, (place(states, s * states.shape[1]), place(masks, s * masks.shape[1])))
            < 0
        ):
            return -1 - s
    return 0


@njit(cache=True, nogil=True)
def classify_kernel(address: int, states: Any, out: Any) -> int:
    """out[s]: bit 0 failing, bit 1 goal."""
    for s in range(states.shape[0]):
        result = call(address, (place(states, s * states.shape[1]),))
        if result < 0:
            return -1 - s
        out[s] = result
    return 0


@njit(cache=True, nogil=True)
def fill_kernel(address: int, states: Any, out: Any) -> int:
    """Rows of ``out`` by a function of (state, row): unpack, observe."""
    for s in range(states.shape[0]):
        call(address, (place(states, s * states.shape[1]), place(out, s * out.shape[1])))
    return 0


@njit(cache=True, nogil=True)
def evaluate_kernel(address: int, states: Any, out: Any) -> int:
    """Rows of ``out`` by an evaluator; ``-1 - s`` where an expression has no value."""
    for s in range(states.shape[0]):
        if call(address, (place(states, s * states.shape[1]), place(out, s * out.shape[1]))) < 0:
            return -1 - s
    return 0


@njit(cache=True, nogil=True)
def pack_kernel(address: int, vectors: Any, states: Any) -> int:
    """Packed states of vectors; ``-1 - (s * num_variables + v)`` for a value out of bounds."""
    for s in range(states.shape[0]):
        bad = call(
            address, (place(vectors, s * vectors.shape[1]), place(states, s * states.shape[1]))
        )
        if bad != 0:
            return -1 - (s * vectors.shape[1] + bad - 1)
    return 0
