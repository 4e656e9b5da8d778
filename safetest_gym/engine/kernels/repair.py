"""First-order steps for repair: minimise |x| under rows that compare two scores.

Row r demands, of state ``owner[r]``, ``score[good[r]] - score[bad[r]] >= need[r]`` beyond the
base scores; the score of action a is ``sum_k value[i, k] * x[index[i, k], a]``.
Projections then complete what the steps have nearly reached.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = [
    "column_mass_kernel",
    "dual_slope_kernel",
    "primal_dual_kernel",
    "projections_kernel",
    "scores_kernel",
    "shortfall_kernel",
]


_FULL = 10
"""Projections: between sweeps over all groups there are some over the unsettled ones."""
_AGEING = 30.0
"""After so many sweeps a projection tires twice as much as in the first."""
_BEYOND = 4.0
"""Margins that projections go to, so that they arrive after finitely many."""
_LOOK, _RECENT = 400, 0.8
"""In this sweep projections may give up; what moved after that part of the sweeps is unsettled."""
_CROWD, _MANY = 0.3, 1000
"""They do if so large a part of the groups is unsettled, and so many."""


@njit(cache=True, nogil=True)
def scores_kernel(index: Any, value: Any, base: Any, x: Any, out: Any) -> None:
    """Fill out[i, a] with all scores; shapes (G, T), (G, T), (G, A), (J, A), (G, A)."""
    for i in range(index.shape[0]):
        for a in range(base.shape[1]):
            out[i, a] = base[i, a]
        for k in range(index.shape[1]):
            v, row = value[i, k], x[np.uint32(index[i, k])]
            for a in range(base.shape[1]):
                out[i, a] += v * row[a]


@njit(cache=True, nogil=True)
def score_of(index: Any, value: Any, base: float, x: Any, a: int) -> float:
    """One state's score of action a; shapes (T,), (T,), (), (J, A)."""
    score = base
    for k in range(index.shape[0]):
        score += value[k] * x[np.uint32(index[k]), a]
    return score


@njit(cache=True, nogil=True)
def shortfall_kernel(problem: Any, x: Any, out: Any) -> None:
    """Fill out[i] with what the best good action of a group misses its margin by.

    ``problem``: index, value, base, good, bad, margin.
    """
    index, value, base, good, bad, margin = problem
    for i in range(index.shape[0]):
        best, worst = -np.inf, -np.inf
        for a in range(base.shape[1]):
            if good[i, a] or bad[i, a]:
                score = score_of(index[i], value[i], base[i, a], x, a)
                if good[i, a]:
                    best = max(best, score)
                if bad[i, a]:
                    worst = max(worst, score)
        out[i] = margin[i] + worst - best if worst > -np.inf else worst


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
        price = y[r]
        if price != 0.0:
            # Unsigned, so that nothing looks whether it counts from the end.
            i, p, q = np.uint64(owner[r]), np.uint64(good[r]), np.uint64(bad[r])
            for k in range(index.shape[1]):
                pull, row = value[i, k] * price, np.uint32(index[i, k])
                out[row, p] += pull
                out[row, q] -= pull


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
            i, p, q = np.uint64(owner[r]), np.uint64(good[r]), np.uint64(bad[r])
            total = 0.0
            for k in range(width):
                row = np.uint32(index[i, k])
                total += value[i, k] * (ahead[row, p] - ahead[row, q])
            y[r] = min(max(y[r] + dual[r] * (need[r] - total), 0.0), cap[r])
            y_sum[r] += y[r]


@njit(cache=True, nogil=True)
def projections_kernel(problem: Any, x: Any, last: Any, tiring: float, sweeps: int) -> int:
    """Move x until some good action of every group beats all its bad ones; sweeps it took.

    One sweep moves x, for one violated group after the other, to the nearest point where its
    best good action beats its worst bad one. Every time a group's action gains that way it
    gets more tired, so that a group that others undo again and again turns to another one.

    ``problem``: index, value, base, allowed, good, bad, margin. ``last``: per group the last
    sweep that moved x for it. ``tiring``: what the first time counts, in units of scores. Groups
    that hold are looked at in every tenth sweep only. Where many are still being moved after
    some hundred sweeps the rest would take long and, as a rule, in vain.
    """
    index, value, base, allowed, good, bad, margin = problem
    width, actions = index.shape[1], base.shape[1]
    scores, tired = np.empty(actions), np.zeros(good.shape)
    watched = np.ones(index.shape[0], np.bool_)
    for sweep in range(sweeps):
        full = sweep % _FULL == 0
        clean = full
        if sweep == _LOOK:
            unsettled = (last >= _RECENT * _LOOK).sum()
            if unsettled > _MANY and unsettled > _CROWD * last.shape[0]:
                return sweeps
        for g in range(index.shape[0]):
            if not (full or watched[g]):
                continue
            best, worst = -1, -1
            for a in range(actions):
                if good[g, a] or bad[g, a]:
                    scores[a] = score_of(index[g], value[g], base[g, a], x, a)
                if good[g, a] and (best < 0 or scores[a] > scores[best]):
                    best = a
                if bad[g, a] and (worst < 0 or scores[a] > scores[worst]):
                    worst = a
            need = margin[g] + scores[worst] - scores[best] if worst >= 0 else 0.0
            watched[g] = need > 0.0
            if need <= 0.0:
                continue
            clean = False
            last[g] = sweep
            tired[g, best] += tiring * (1.0 + sweep / _AGEING)
            for a in range(actions):
                if good[g, a] and scores[a] - tired[g, a] > scores[best] - tired[g, best]:
                    best = a
            need = margin[g] * _BEYOND + scores[worst] - scores[best]
            norm = 0.0
            for k in range(width):
                row = index[g, k]
                norm += value[g, k] ** 2 * (int(allowed[row, best]) + int(allowed[row, worst]))
            step = need / norm if norm > 0.0 else 0.0
            for k in range(width):
                row, move = index[g, k], step * value[g, k]
                if allowed[row, best]:
                    x[row, best] += move
                if allowed[row, worst]:
                    x[row, worst] -= move
        if clean:
            return sweep
    return sweeps
