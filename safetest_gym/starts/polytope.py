"""Uniform draws from real points under linear inequalities, by hit-and-run.

Each draw is the end of a random walk of its own, started at the centre and long enough to
forget it; directions follow the polytope's shape there, so thin ones mix as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Polytope", "make_polytope"]

_CHAINS = 2048
_STEPS = 40
"""Length of a walk, times the number of columns (at least 4)."""
_THIN = 1e-12
"""Thinner polytopes, in units of their box, count as having no interior."""
_TINY = 1e-300

_Floats = NDArray[np.float64]


@dataclass(slots=True)
class Polytope:
    """The points x with ``matrix @ x ≤ limits``, bounded and with an interior.

    Attributes:
        centre: an interior point.
        shape: square root of the inverse curvature of the barrier at the centre.
    """

    columns: list[int]
    matrix: _Floats
    limits: _Floats
    centre: _Floats
    shape: _Floats

    def sample(self, out: NDArray[Any], rng: np.random.Generator) -> None:
        """Fill the columns of ``out``, shape (n, V), row by row at random."""
        for begin in range(0, len(out), _CHAINS):
            block = out[begin : begin + _CHAINS]
            block[:, self.columns] = self._walk(len(block), rng)

    def _walk(self, chains: int, rng: np.random.Generator) -> _Floats:
        points = np.zeros((len(self.columns), chains))
        approach = self.matrix @ self.shape
        room = np.tile((self.limits - self.matrix @ self.centre)[:, None], (1, chains))
        for _ in range(_STEPS * max(4, len(self.columns))):
            direction = rng.standard_normal(points.shape)
            speed = approach @ direction
            with np.errstate(over="ignore"):
                rates = speed / room  # walls ahead have the greatest, walls behind the least
            ahead, behind = 1 / rates.max(axis=0), 1 / rates.min(axis=0)
            time = behind + rng.random(chains) * (ahead - behind)
            points += time * direction
            room = np.maximum(room - time * speed, _TINY)
        return self.centre + (self.shape @ points).T


def make_polytope(
    box: Mapping[int, tuple[float, float]], rows: Sequence[tuple[Mapping[int, float], float]]
) -> Polytope | None:
    """The points in ``box`` with ``coefficients · x + constant ≤ 0`` per row.

    None if there is no interior.
    """
    columns = sorted(box)
    low = np.array([box[column][0] for column in columns], dtype=np.float64)
    width = np.array([box[column][1] for column in columns], dtype=np.float64) - low
    if not (width > 0).all():
        return None
    # In units of the box: x = low + width * y with y in [0, 1].
    rows_matrix = [[row.get(column, 0.0) for column in columns] for row, _ in rows]
    given = np.array(rows_matrix, dtype=np.float64).reshape(len(rows), len(columns))
    right = np.array([-constant for _, constant in rows], dtype=np.float64) - given @ low
    identity = np.eye(len(columns))
    matrix = np.vstack([given * width, identity, -identity])
    limits = np.concatenate([right, np.ones(len(columns)), np.zeros(len(columns))])
    norms = np.linalg.norm(matrix, axis=1)
    matrix, limits = matrix / norms[:, None], limits / norms
    centre = _interior_point(matrix, limits)
    if centre is None:
        return None
    centre = _maximise(matrix, limits, centre, np.zeros(len(columns)))
    shape = _shape(matrix, limits, centre)
    return Polytope(
        columns=columns,
        matrix=matrix / width,
        limits=limits + (matrix / width) @ low,
        centre=low + width * centre,
        shape=width[:, None] * shape,
    )


def _interior_point(matrix: _Floats, limits: _Floats) -> _Floats | None:
    """A point deep inside, by the barrier method on the distance to the nearest wall."""
    variables = matrix.shape[1]
    lifted = np.hstack([matrix, np.ones((len(matrix), 1))])
    point = np.full(variables + 1, 0.5)
    point[-1] = (limits - matrix @ point[:-1]).min() - 1
    goal = np.zeros(variables + 1)
    for weight in 10.0 ** np.arange(0, 13):
        goal[-1] = weight
        point = _maximise(lifted, limits, point, goal)
        if point[-1] > _THIN:
            return point[:-1]
    return None


def _maximise(matrix: _Floats, limits: _Floats, point: _Floats, goal: _Floats) -> _Floats:
    """Newton's method for ``goal · x`` + sum of log distances to the walls."""
    for _ in range(100):
        room = limits - matrix @ point
        gradient = goal - matrix.T @ (1 / room)
        shape = _shape(matrix, limits, point)
        step = shape @ (shape.T @ gradient)
        gain = float(gradient @ step)
        if gain < 1e-10:
            break
        speed = matrix @ step
        closing = speed > 0
        most = float((room[closing] / speed[closing]).min(initial=np.inf))
        point = point + min(1.0 / (1.0 + np.sqrt(gain)) if gain > 0.25 else 1.0, 0.9 * most) * step
    return point


def _shape(matrix: _Floats, limits: _Floats, point: _Floats) -> _Floats:
    """A square root of the inverse curvature of the log distances."""
    scaled = matrix / (limits - matrix @ point)[:, None]
    _, lengths, axes = np.linalg.svd(scaled, full_matrices=False)
    return np.asarray(axes.T / lengths)
