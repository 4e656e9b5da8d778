"""What every good action of a group has to win, as rows of linear programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.fixed_choice import comparison_program
from safetest_gym.repair.problem import RepairProblem

__all__ = ["Options", "scaled"]


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """Pairs of a group and a good action, and the comparisons with all bad actions.

    Attributes:
        problem: whose groups they are.
        group, action: shapes (O,), ordered.
        option, bad: shapes (R,), of every comparison; ordered.
    """

    problem: RepairProblem
    group: NDArray[np.int64]
    action: NDArray[np.int64]
    option: NDArray[np.int64]
    bad: NDArray[np.int64]

    @classmethod
    def of(cls, problem: RepairProblem) -> Options:
        """All of a problem's groups."""
        group, action = np.nonzero(problem.good)
        option, bad = np.nonzero(problem.bad[group])
        return cls(problem, group, action, option, bad)

    @property
    def owner(self) -> NDArray[np.int64]:
        """The group of every comparison."""
        return np.asarray(self.group[self.option], dtype=np.int64)

    def entries(self) -> NDArray[np.int64]:
        """The flat entries of a change that the comparisons depend on."""
        features, actions = self.problem.features, self.problem.num_actions
        index = features.index[self.owner].astype(np.int64) * actions
        both = (self.action[self.option], self.bad)
        touched = np.unique(np.concatenate([(index + a[:, None]).ravel() for a in both]))
        return np.asarray(touched[features.allowed.ravel()[touched]], dtype=np.int64)

    def rows(self, entries: NDArray[np.int64]) -> tuple[Any, NDArray[np.float64]]:
        """Sparse rows (R, n) and what they need: the sum of all variables is the cost.

        Variables: positive parts of the entries, negative ones, then what the violations of
        soft groups cost.
        """
        from scipy.sparse import csr_matrix

        program = comparison_program(
            self.problem, self.owner, self.action[self.option], self.bad, entries
        )
        values = program.values / program.cost[program.columns]
        shape = len(program.row_lower), len(program.cost)
        return csr_matrix((values, program.columns, program.start), shape), program.row_lower


def scaled(
    rows: NDArray[np.float64], needs: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Rows whose largest number is 1, what they need, and by what both were divided."""
    scale = np.abs(rows).max(axis=1, initial=0.0)
    scale[scale == 0] = 1
    return rows / scale[:, None], needs / scale, scale
