"""What deciders answer, what they may spend, and what they report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

from safetest_gym.errors import ConfigError

__all__ = ["Budget", "Statistics", "Verdict"]


class Verdict(IntEnum):
    """Is there a way to surely never fail? UNKNOWN: the budget ended before the answer."""

    UNKNOWN = 0
    SAFE = 1
    UNSAFE = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Limits: of each query in seconds, of the decider in states known and megabytes held."""

    states: int | None = None
    seconds: float | None = None
    megabytes: float | None = None

    def __post_init__(self) -> None:
        for name in ("states", "seconds", "megabytes"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise ConfigError(f"{name} of a budget must be positive or None, got {value}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Statistics:
    """What a decider has done since it was made or cleared.

    Attributes:
        queries: states asked for.
        unknown: answers UNKNOWN among them.
        expanded: times that a state was visited.
        tried: actions whose outcomes were looked at.
        states: states known.
        megabytes: memory held.
    """

    queries: int
    unknown: int
    expanded: int
    tried: int
    states: int
    megabytes: float
