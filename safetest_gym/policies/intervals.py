"""Confidence intervals for fractions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

__all__ = ["Rate", "wilson"]


@dataclass(frozen=True, slots=True)
class Rate:
    """A fraction with its confidence interval."""

    value: float
    low: float
    high: float

    def as_json(self) -> dict[str, float]:
        """Plain data."""
        return {"value": self.value, "low": self.low, "high": self.high}

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{100 * self.value:.1f} %"
        return f"{100 * self.value:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"


def wilson(fraction: float, trials: int, confidence: float = 0.95) -> Rate:
    """Wilson's interval for a fraction seen in independent trials; (0, 1) without any."""
    if trials == 0:
        return Rate(float("nan"), 0.0, 1.0)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    spread = z * math.sqrt(fraction * (1 - fraction) / trials + z * z / (4 * trials * trials))
    middle, scale = fraction + z * z / (2 * trials), 1 + z * z / trials
    low, high = (middle - spread) / scale, (middle + spread) / scale
    return Rate(fraction, max(0.0, min(low, fraction)), min(1.0, max(high, fraction)))
