"""Checks of task parameters, all with the same wording."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from safetest_gym import whole_numbers
from safetest_gym.errors import ConfigError

__all__ = [
    "require_between",
    "require_int",
    "require_plain_tuple",
    "require_positive",
    "require_unique",
    "with_tuples",
]


def require_int(name: str, value: object, lower: int, upper: int | None = None) -> None:
    """Refuse what is no integer within the bounds, or one of numpy, which JSON lacks."""
    whole_numbers.require_int(name, value, lower, upper, plain=True)


def require_positive(name: str, value: object) -> None:
    """Refuse what is no finite number above 0."""
    if not _is_number(value) or value <= 0:  # type: ignore[operator]  # a number by now
        raise ConfigError(f"{name} must be a finite number above 0, got {value!r}")


def require_between(name: str, value: object, lower: float, upper: float) -> None:
    """Refuse what is no number within the bounds."""
    if not _is_number(value) or not lower <= value <= upper:  # type: ignore[operator]  # a number by now
        raise ConfigError(f"{name} must be a number in [{lower:g}, {upper:g}], got {value!r}")


def require_plain_tuple(name: str, value: object, length: int | None = None) -> None:
    """Refuse what is no tuple, or one of another length."""
    if not isinstance(value, tuple) or (length is not None and len(value) != length):
        size = "" if length is None else f" of {length} entries"
        raise ConfigError(f"{name} must be a tuple{size}, got {value!r}")


def require_unique(name: str, values: Iterable[object]) -> None:
    """Refuse repeated values."""
    seen: set[object] = set()
    for value in values:
        if value in seen:
            raise ConfigError(f"{name} names {value!r} twice")
        seen.add(value)


def with_tuples(value: Any) -> Any:
    """``value`` with tuples in place of its lists, as JSON has only lists."""
    return tuple(map(with_tuples, value)) if isinstance(value, list) else value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
