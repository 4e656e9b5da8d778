"""Many small linear programs ``min sum(x), x >= 0`` over some of the same dense rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["UNIT", "Covering", "Vertex", "undominated"]

UNIT = 6_000_000_000
"""Entries of tableaus that are computed in a unit of work."""

_PIVOTS = 2000
"""One program takes no more; what it proves by then holds."""


@dataclass(frozen=True, slots=True, eq=False)
class Vertex:
    """Where one program ended.

    Attributes:
        tableau, basic, free: see `safetest_gym.engine.kernels.covering`.
        is_possible: is there a point that meets the rows, as far as numbers tell?
        bound: what its prices prove about the cost.
        work: entries of tableaus that were computed.
    """

    tableau: NDArray[np.float64]
    basic: NDArray[np.int64]
    free: NDArray[np.int64]
    is_possible: bool
    bound: float
    work: int

    @property
    def point(self) -> NDArray[np.float64]:
        """The structural variables, shape (n,)."""
        n = len(self.free)
        basic = self.basic[1:]
        structural = basic < n
        point = np.zeros(n)
        point[basic[structural]] = np.maximum(self.tableau[1:, n][structural], 0)
        return point


class Covering:
    """Rows ``rows @ x >= needs``, shape (R, n), of which any program has some."""

    def __init__(self, rows: NDArray[np.float64], needs: NDArray[np.float64]) -> None:
        self.rows, self.needs = rows, needs
        n = rows.shape[1]
        costs = np.ones((1, n + 1))
        costs[0, n] = 0
        self._nothing = Vertex(costs, np.full(1, -1), np.arange(n), True, 0.0, 0)
        self._scratch = np.empty(n + 1), np.empty(n, np.int64)

    def solve(
        self, start: Vertex | None, rows: NDArray[np.int64], cutoff: float = np.inf
    ) -> Vertex:
        """The least cost under the rows of ``start`` and some more, or that it is the cutoff."""
        from safetest_gym.engine.kernels.covering import INFEASIBLE, extend_kernel

        start = self._nothing if start is None else start
        size, width = len(start.tableau) + len(rows), len(start.free) + 1
        out = np.empty((size, width)), np.empty(size, np.int64), np.empty(width - 1, np.int64)
        before = start.tableau, start.basic, start.free
        status, bound, pivots = extend_kernel(
            before, (self.rows, self.needs), rows, out, (cutoff, _PIVOTS), self._scratch
        )
        work = (pivots + 1) * size * width
        return Vertex(*out, is_possible=status != INFEASIBLE, bound=bound, work=work)


def undominated(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Columns, in order, that some least point uses: those nowhere above another one are out."""
    from safetest_gym.engine.kernels.covering import undominated_kernel

    columns = np.ascontiguousarray(rows.T)
    order = np.argsort(-columns.sum(axis=1), kind="stable")
    kept = np.empty(len(order), np.int64)
    return np.sort(kept[: undominated_kernel(columns, order, kept)])
