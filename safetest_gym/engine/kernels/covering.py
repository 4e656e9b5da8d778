"""Linear programs ``min sum(x), A x >= b, x >= 0`` with dense rows, by dual simplex.

A vertex is a tableau: row 0 says what the cost is, row i what ``basic[i]`` is, as numbers times
the free variables and, in the last column, a constant. Variable n + r is what row r has to
spare. Prices in row 0 stay at least 0, so its constant is a lower bound at any time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["CUT_OFF", "INFEASIBLE", "LIMIT", "OPTIMAL", "extend_kernel", "undominated_kernel"]

OPTIMAL, CUT_OFF, INFEASIBLE, LIMIT = 0, 1, 2, 3

_MISSED = 1e-7
"""A variable that is less than 0 by no more than this is 0."""
_PIVOT = 1e-7
"""Smaller numbers are no pivots."""


@njit(cache=True, nogil=True)
def undominated_kernel(columns: Any, order: Any, kept: Any) -> int:
    """Fill ``kept`` with those of ``order`` that are nowhere above one kept before; how many.

    Args:
        columns: shape (n, R), a column of the program in each row.
    """
    count = 0
    for j in order:
        is_dominated = False
        for k in range(count):
            other = kept[k]
            is_dominated = True
            for r in range(columns.shape[1]):
                if columns[j, r] > columns[other, r]:
                    is_dominated = False
                    break
            if is_dominated:
                break
        if not is_dominated:
            kept[count] = j
            count += 1
    return count


@njit(cache=True, nogil=True)
def extend_kernel(
    start: Any, program: Any, chosen: Any, out: Any, limits: Any, scratch: Any
) -> Any:
    """From the vertex ``start`` to the vertex ``out``, which has the chosen rows too.

    Args:
        start, out: tableau (M + 1, n + 1), basic (M + 1,), free (n,), for M rows.
        program: all rows (R, n), and what they need (R,).
        limits: the cost to stop at, and how many pivots to make.
        scratch: a row of the tableau, and the place of every structural variable, (n,).

    Returns:
        A status, what the prices prove about the cost, and the pivots that were made.
    """
    tableau, basic, free = out
    rows, needs = program
    row, place = scratch
    size, width = start[0].shape[0] - 1, tableau.shape[1]
    for i in range(size + 1):
        tableau[i] = start[0][i]
        basic[i] = start[1][i]
    free[:] = start[2]
    for i in range(1, size + 1):
        if basic[i] < width - 1:
            place[basic[i]] = -i
    for j in range(width - 1):
        if free[j] < width - 1:
            place[free[j]] = j
    for r in chosen:
        size += 1
        _append(tableau, size, rows[r], needs[r], place)
        basic[size] = width - 1 + r
    status, stuck, pivots = _solve(tableau, basic, free, limits, row)
    proved = _proved(tableau, basic, free, program, (stuck, limits[0]), row)
    return status, proved, pivots


@njit(cache=True, nogil=True)
def _append(tableau: Any, size: int, row: Any, need: float, place: Any) -> None:
    """Write what a row has to spare, in terms of the free variables."""
    width = tableau.shape[1]
    tableau[size] = 0.0
    tableau[size, width - 1] = -need
    for j in range(width - 1):
        if row[j] != 0.0:
            at = place[j]
            if at >= 0:
                tableau[size, at] += row[j]
            else:
                for k in range(width):
                    tableau[size, k] += row[j] * tableau[-at, k]


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(tableau: Any, basic: Any, free: Any, limits: Any, row: Any) -> Any:
    """Status, the row that nothing can raise if there is one, and the pivots that were made."""
    cutoff, most = limits
    size, last = tableau.shape[0] - 1, tableau.shape[1] - 1
    for pivots in range(most):
        if tableau[0, last] >= cutoff:
            return CUT_OFF, 0, pivots
        leaving, farthest = 0, 0.0
        for i in range(1, size + 1):
            value = tableau[i, last]
            if value < -_MISSED:
                distance = value * value / (_squares(tableau, i) - value * value + _PIVOT)
                if distance > farthest:
                    leaving, farthest = i, distance
        if leaving == 0:
            return OPTIMAL, 0, pivots
        entering = _entering(tableau, leaving)
        if entering < 0:
            return INFEASIBLE, leaving, pivots
        _exchange(tableau, leaving, entering, row)
        basic[leaving], free[entering] = free[entering], basic[leaving]
    return LIMIT, 0, most


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _squares(tableau: Any, i: int) -> float:
    total = 0.0
    for j in range(tableau.shape[1]):
        total += tableau[i, j] * tableau[i, j]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _entering(tableau: Any, leaving: int) -> int:
    """The free variable whose price is used up first as row ``leaving`` is raised, or -1."""
    best, price, pivot = -1, 0.0, 1.0
    for j in range(tableau.shape[1] - 1):
        rate = tableau[leaving, j]
        if rate > _PIVOT:
            now = max(tableau[0, j], 0.0)
            ours, theirs = now * pivot, price * rate
            if best < 0 or ours < theirs or (ours == theirs and rate > pivot):
                best, price, pivot = j, now, rate
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def _exchange(tableau: Any, leaving: int, entering: int, row: Any) -> None:
    """Solve row ``leaving`` for the entering variable and put that into all other rows."""
    width = tableau.shape[1]
    inverse = 1.0 / tableau[leaving, entering]
    for j in range(width):
        row[j] = -tableau[leaving, j] * inverse
    row[entering] = inverse
    for j in range(width):
        tableau[leaving, j] = row[j]
    for i in range(tableau.shape[0]):
        factor = tableau[i, entering]
        if i != leaving and factor != 0.0:
            tableau[i, entering] = 0.0
            for j in range(width):
                tableau[i, j] += factor * row[j]


@njit(cache=True, nogil=True, error_model="numpy")
def _proved(tableau: Any, basic: Any, free: Any, program: Any, end: Any, pulls: Any) -> float:
    """What the prices prove by themselves, once they are scaled to be feasible.

    No rounding in the tableau can make that wrong. Where a row is stuck, enough of the reasons
    is added to prove that the cutoff is reached.
    """
    rows, needs = program
    stuck, cutoff = end
    n = rows.shape[1]
    step = 0.0
    if stuck > 0 and np.isfinite(cutoff):
        step = 1.001 * max(cutoff - tableau[0, n], 0.0) / -tableau[stuck, n]
    total = 0.0
    pulls[:] = 0.0
    for j in range(n + 1):
        variable = free[j] if j < n else basic[stuck]
        price = tableau[0, j] - step * tableau[stuck, j] if j < n else step
        if variable >= n and price > 0.0:
            total += price * needs[variable - n]
            for k in range(n):
                pulls[k] += price * rows[variable - n, k]
    most = 1.0
    for k in range(n):
        most = max(most, pulls[k])
    return total / most
