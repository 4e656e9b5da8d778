"""Fewer variables for the same optimum: some parts of a change are never the best choice.

Solvers would find this themselves, but only after their licence has counted variables.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.repair.solver import Program

__all__ = ["useful_columns", "with_columns"]

_MOST_COMPARED = 3000


def useful_columns(program: Program, free: int) -> NDArray[np.int64]:
    """Which of the first ``free`` variables (from 0 up, any size, equal cost) can matter.

    One that raises no row cannot; nor one whose every coefficient is at most that of
    another one.
    """
    from scipy.sparse import csc_matrix, csr_matrix

    shape = len(program.row_lower), len(program.cost)
    matrix = csc_matrix(csr_matrix((program.values, program.columns, program.start), shape=shape))
    matrix = matrix[:, :free]
    raising = np.flatnonzero(np.asarray((matrix > 0).sum(axis=0)).ravel())
    part = matrix[:, raising]
    if not len(raising) or len(raising) > _MOST_COMPARED or not (np.abs(part.data) == 1).all():
        return raising
    return raising[~_dominated(part)]


def _dominated(matrix: Any) -> NDArray[np.bool_]:
    """Per column of +1 and -1, is it nowhere above another one (of equals, the first stays)?"""
    up, down = (matrix > 0).astype(np.float32), (matrix < 0).astype(np.float32)
    ups, downs = np.asarray(up.sum(axis=0)).ravel(), np.asarray(down.sum(axis=0)).ravel()
    # above[i, j]: where j is +1, so is i; below: where i is -1, so is j.
    above = (up.T @ up).toarray() == ups[None, :]
    below = (down.T @ down).toarray() == downs[:, None]
    covers = above & below
    mutual = covers & covers.T
    first = np.tri(len(ups), k=-1, dtype=np.bool_).T
    return np.asarray((covers & (~mutual | first)).any(axis=0), dtype=np.bool_)


def with_columns(program: Program, columns: NDArray[np.int64]) -> Program:
    """The program of some of its variables, the others being 0."""
    from scipy.sparse import csr_matrix

    shape = len(program.row_lower), len(program.cost)
    matrix = csr_matrix((program.values, program.columns, program.start), shape=shape)[:, columns]
    return Program(
        cost=program.cost[columns],
        lower=program.lower[columns],
        upper=program.upper[columns],
        start=matrix.indptr.astype(np.int32),
        columns=matrix.indices.astype(np.int32),
        values=matrix.data,
        row_lower=program.row_lower,
        integer=None if program.integer is None else program.integer[columns],
        guess=None if program.guess is None else program.guess[columns],
    )
