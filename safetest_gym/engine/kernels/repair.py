"""First-order steps for repair: minimise |x| under rows that compare two scores.

Row r demands, of state ``owner[r]``, ``score[good[r]] - score[bad[r]] >= need[r]`` beyond the
base scores; the score of action a is ``sum_k value[i, k] * x[index[i, k], a]``.
"""

from __future__ import annotations

from typing import Any

from numba import njit

__all__ = ["column_mass_kernel", "dual_slope_kernel", "primal_dual_kernel", "scores_kernel"]


@njit(cache=True, nogil=True)
def scores_kernel(index: Any, value: Any, base: Any, x: Any, out: Any) -> None:
    """Fill out[i, a] with all scores; shapes (G, T), (G, T), (G, A), (J, A), (G, A)."""
    for i in range(index.shape[0]):
        for a in range(base.shape[1]):
            out[i, a] = base[i, a]
        for k in range(index.shape[1]):
            v = value[i, k]
            row = index[i, k]
            for a in range(base.shape[1]):
                out[i, a] += v * x[row, a]


@njit(cache=True, nogil=True)
def column_mass_kernel(index: Any, value: Any, owner: Any, good: Any, bad: Any, out: Any) -> None:
    """Add to out[j, a] the absolute coefficients of x[j, a] in all rows."""
    for r in range(owner.shape[0]):
        i = owner[r]
        for k in range(index.shape[1]):
            mass = abs(value[i, k])
            out[index[i, k], good[r]] += mass
            out[index[i, k], bad[r]] += mass


@njit(cache=True, nogil=True)
def dual_slope_kernel(
    index: Any, value: Any, owner: Any, good: Any, bad: Any, y: Any, out: Any
) -> None:
    """Fill out[j, a] with the rows' pull on x under prices y: the transposed product."""
    out[:] = 0.0
    for r in range(owner.shape[0]):
        if y[r] != 0.0:
            i = owner[r]
            for k in range(index.shape[1]):
                pull = value[i, k] * y[r]
                out[index[i, k], good[r]] += pull
                out[index[i, k], bad[r]] -= pull


@njit(cache=True, nogil=True)
def primal_dual_kernel(
    problem: Any, steps: Any, point: Any, sums: Any, slope: Any, iterations: int
) -> None:
    """Primal-dual steps from ``point``, adding the points to ``sums``.

    ``problem``: index, value, owner, good, bad, need, cap of the prices.
    ``steps``: sizes (J, A), 0 where x must stay 0, and (R,). ``point`` and ``sums``: x, y.
    """
    index, value, owner, good, bad, need, cap = problem
    primal, dual = steps
    x, y = point
    x_sum, y_sum = sums
    width = index.shape[1]
    ahead = x.copy()
    for _ in range(iterations):
        dual_slope_kernel(index, value, owner, good, bad, y, slope)
        for j in range(x.shape[0]):
            for a in range(x.shape[1]):
                size = primal[j, a]
                if size > 0.0:
                    old = x[j, a]
                    moved = old + size * slope[j, a]
                    new = max(moved - size, 0.0) + min(moved + size, 0.0)
                    x[j, a] = new
                    x_sum[j, a] += new
                    ahead[j, a] = 2.0 * new - old
        for r in range(owner.shape[0]):
            i, p, q = owner[r], good[r], bad[r]
            total = 0.0
            for k in range(width):
                total += value[i, k] * (ahead[index[i, k], p] - ahead[index[i, k], q])
            y[r] = min(max(y[r] + dual[r] * (need[r] - total), 0.0), cap[r])
            y_sum[r] += y[r]
