"""Policies without arithmetic, for one state: a table of states, and chance by hashing.

Table header words from 8 on: 8 slots (a power of two), 9 offset of the slots' actions int64
(-1 empty), 10 offset of their keys double (slots, F). Random: word 8 is the seed. Both read
state values as they are, unscaled; -0.0 and 0.0 are one value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cfunc, njit

from safetest_gym.engine.kernels.choose import CHOOSE, float64_at, int64_at, uint8_at

__all__ = ["fill_table_kernel", "random_choose", "table_choose"]


@njit(nogil=True, error_model="numpy")
def _mix_kernel(value: Any) -> Any:
    """Stir 64 bits so that every input bit reaches every output bit."""
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return value ^ (value >> np.uint64(32))


@njit(nogil=True, error_model="numpy")
def _hash_kernel(data: int, state: int, seed: int) -> Any:
    """Hash of the state values that the policy reads."""
    header = int64_at(data)
    columns, values = int64_at(data + header[2]), float64_at(state)
    code = _mix_kernel(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15))
    for f in range(header[1]):
        bits = np.float64(values[columns[f]] + 0.0).view(np.uint64)
        code = _mix_kernel(code ^ bits) + np.uint64(0x9E3779B97F4A7C15)
    return code


@njit(nogil=True, error_model="numpy")
def _slot_kernel(data: int, state: int) -> Any:
    """The slot that holds the state, or the empty one where it belongs."""
    header = int64_at(data)
    size = header[1]
    columns, values = int64_at(data + header[2]), float64_at(state)
    actions, keys = int64_at(data + header[9]), float64_at(data + header[10])
    slot = np.int64(_hash_kernel(data, state, 0) & np.uint64(header[8] - 1))
    while actions[slot] >= 0:
        f = 0
        while f < size and keys[slot * size + f] == values[columns[f]]:
            f += 1
        if f == size:
            break
        slot = (slot + 1) & (header[8] - 1)
    return slot


@njit(cache=True, nogil=True, error_model="numpy")
def fill_table_kernel(data: int, states: Any, chosen: Any) -> int:
    """Enter every row; return the first row that was there with another action, or -1.

    Shapes (n, V) float64 and (n,) int64; ``data`` must have more slots than rows.
    """
    header = int64_at(data)
    size = header[1]
    columns = int64_at(data + header[2])
    actions, keys = int64_at(data + header[9]), float64_at(data + header[10])
    for i in range(states.shape[0]):
        slot = _slot_kernel(data, states.ctypes.data + i * 8 * states.shape[1])
        if actions[slot] >= 0 and actions[slot] != chosen[i]:
            return i
        actions[slot] = chosen[i]
        for f in range(size):
            keys[slot * size + f] = states[i, columns[f]] + 0.0
    return -1


@cfunc(CHOOSE, cache=True, nopython=True)
def table_choose(data: int, state: int, applicable: int) -> int:
    """The ``choose`` of `safetest_gym.engine.kernels.choose` for tables.

    -1 also where the table's action is not applicable.
    """
    actions = int64_at(data + int64_at(data)[9])
    action = actions[_slot_kernel(data, state)]
    if action >= 0 and uint8_at(applicable)[action] == 0:
        return -1
    return action


@cfunc(CHOOSE, cache=True, nopython=True)
def random_choose(data: int, state: int, applicable: int) -> int:
    """An applicable action that only the seed and the state decide, each as likely."""
    header = int64_at(data)
    mask = uint8_at(applicable)
    count = 0
    for a in range(header[6]):
        count += 1 if mask[a] != 0 else 0
    if count == 0:
        return -1
    left = np.int64((_hash_kernel(data, state, header[8]) >> np.uint64(11)) % np.uint64(count))
    for a in range(header[6]):
        if mask[a] != 0:
            if left == 0:
                return a
            left -= 1
    return -1
