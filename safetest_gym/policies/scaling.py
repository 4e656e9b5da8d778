"""Input scaling that belongs to a policy, computed as its trainer computed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safetest_gym.errors import PolicyError

__all__ = ["Scaling", "scaled_features"]


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """``clip((x - shift) * factor / scale, low, high)`` in float64, rounded to float32.

    Both a factor and a scale, because trainers multiply or divide, and that rounds
    differently. The first scaling of a policy reads state values as float64, later ones
    what the one before left. Without any, values are rounded to float32. Arrays are (F,).
    """

    shift: NDArray[np.float64]
    factor: NDArray[np.float64]
    scale: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = np.array(getattr(self, name), dtype=np.float64)
            if value.ndim != 1 or len(value) != len(self.shift) or np.isnan(value).any():
                raise PolicyError(f"scaling: {name} must be {len(self.shift)} numbers, got {value}")
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        if not np.isfinite([self.shift, self.factor, self.scale]).all():
            raise PolicyError("scaling: shift, factor and scale must be finite")
        if (self.scale <= 0).any() or (self.factor <= 0).any():
            raise PolicyError("scaling: every factor and scale must be positive")

    @classmethod
    def affine(cls, shift: ArrayLike, scale: ArrayLike, clip: float = np.inf) -> Scaling:
        """Subtract, divide, and clip to [-clip, clip], as VecNormalize does."""
        start = np.atleast_1d(np.asarray(shift, dtype=np.float64))
        limit = np.full(start.shape, float(clip))
        divisor = np.broadcast_to(np.asarray(scale, dtype=np.float64), start.shape)
        return cls(start, np.ones_like(start), divisor, -limit, limit)

    @classmethod
    def rounding(cls, size: int) -> Scaling:
        """Only round to float32: what an environment with raw observations does."""
        return cls.affine(np.zeros(size), 1.0)

    @classmethod
    def to_unit(cls, lower: ArrayLike, upper: ArrayLike) -> Scaling:
        """Map [lower, upper] to [-1, 1] as ``observation="normalized"`` does."""
        low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
        width = np.where(high > low, high - low, 2.0)
        limit = np.full(low.shape, np.inf)
        return cls((low + high) / 2, 2 / width, np.ones_like(low), -limit, limit)

    @classmethod
    def from_json(cls, data: Mapping[str, Sequence[float | str]]) -> Scaling:
        """Read what `as_json` wrote."""
        return cls(*(np.array([float(v) for v in data[name]]) for name in cls.__slots__))

    def as_json(self) -> dict[str, list[float | str]]:
        """The vectors by name; infinities, which JSON does not have, as text."""
        return {
            name: [value if np.isfinite(value) else str(value) for value in vector.tolist()]
            for name in self.__slots__
            for vector in [getattr(self, name)]
        }

    @property
    def only_rounds(self) -> bool:
        """Whether it does nothing but round to float32."""
        return bool(
            not self.shift.any()
            and (self.factor == 1).all()
            and (self.scale == 1).all()
            and not self.clips
        )

    @property
    def clips(self) -> bool:
        """Whether any bound is finite."""
        return bool(np.isfinite(self.low).any() or np.isfinite(self.high).any())

    def __call__(self, values: NDArray[np.generic]) -> NDArray[np.float32]:
        """Scale rows, shape (n, F)."""
        scaled = (values.astype(np.float64) - self.shift) * self.factor / self.scale
        return np.clip(scaled, self.low, self.high).astype(np.float32)


def scaled_features(
    values: NDArray[np.generic], scalings: Sequence[Scaling]
) -> NDArray[np.float32]:
    """Apply all scalings in turn to the values a policy reads, shape (n, F)."""
    for scaling in scalings:
        values = scaling(values)
    return values.astype(np.float32)
