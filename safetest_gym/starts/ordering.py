"""Rows in lexicographic order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["lexicographic"]

_MAX_KEY = 2**62


def lexicographic(columns: Sequence[NDArray[Any]]) -> NDArray[np.int64] | slice:
    """What sorts rows, given by their columns, by the first column, then the second, ..."""
    keys: list[NDArray[Any]] = []
    room = 0
    for column in columns:
        least = column.min()
        spread = int(column.max()) - int(least) + 1
        if column.dtype == np.float64 or spread > _MAX_KEY:
            keys.append(column)
            room = 0
        elif spread <= room:
            keys[-1] = keys[-1] * spread + (column - least)
            room //= spread
        else:
            keys.append(column - least)
            room = _MAX_KEY // spread
    if len(keys) == 1:
        return slice(None) if (keys[0][1:] > keys[0][:-1]).all() else np.argsort(keys[0])
    return np.lexsort(keys[::-1]) if keys else slice(None)
