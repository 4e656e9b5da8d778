"""Projections, said plainly: one demand after another, until a sweep finds nothing to do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.problem import RepairProblem

__all__ = ["projected"]


def projected(
    problem: RepairProblem, near: NDArray[np.float64], tiring: float, sweeps: int
) -> tuple[NDArray[np.float64], int]:
    """The change that projections arrive at, and the sweeps that took; all groups are hard."""
    change, tired = near.copy(), np.zeros(problem.good.shape)
    watched = set(range(len(problem)))
    for sweep in range(sweeps):
        full = sweep % 10 == 0
        moved = False
        for group in range(len(problem)) if full else sorted(watched):
            one = problem.take(np.array([group]))
            if one.shortfall(change)[0] <= 0:
                watched.discard(group)
                continue
            watched.add(group)
            moved = True
            scores = one.features.scores(change)[0]
            winner = int(np.where(one.good[0], scores, -np.inf).argmax())
            worst = int(np.where(one.bad[0], scores, -np.inf).argmax())
            tired[group, winner] += tiring * (1 + sweep / 30)
            rested = np.where(one.good[0], scores - tired[group], -np.inf)
            if rested.max() > rested[winner]:
                winner = int(rested.argmax())
            wanted = np.zeros_like(change)
            for k, row in enumerate(one.features.index[0]):
                for action, sign in ((winner, 1.0), (worst, -1.0)):
                    if one.features.allowed[row, action]:
                        wanted[row, action] += sign * one.features.value[0, k]
            need = 4 * one.margin[0] + scores[worst] - scores[winner]
            if wanted.any():
                change += need / (wanted**2).sum() * wanted
        if full and not moved:
            return change, sweep
    return change, sweeps
