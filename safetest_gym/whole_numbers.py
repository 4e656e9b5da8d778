"""Whole numbers that users give."""

from __future__ import annotations

import numpy as np

from safetest_gym.errors import ConfigError

__all__ = ["require_int", "without_point"]

_LARGEST = 2**63 - 1


def require_int(
    name: str, value: object, least: int, most: int | None = None, *, plain: bool = False
) -> None:
    """Refuse what is no 64-bit integer within the bounds (a bool is no integer here).

    Args:
        plain: numpy's integers will not do: the value goes into JSON.

    Raises:
        ConfigError: it is not.
    """
    kinds = (int,) if plain else (int, np.integer)
    whole = isinstance(value, kinds) and not isinstance(value, bool)
    if not whole or not least <= value <= (_LARGEST if most is None else most):  # type: ignore[operator]  # an int by now
        high = whole and most is None and value > _LARGEST  # type: ignore[operator]  # the same
        bounds = f"at least {least}" if most is None else f"in {least}..{most}"
        also = " and below 2**63" if high else ""
        raise ConfigError(f"{name} must be an integer {bounds}{also}, got {value!r}")


def without_point(value: object) -> object:
    """A float that is whole as an int, for numbers that files such as YAML write as 1e6.

    >>> without_point(1e6), without_point(2.5)
    (1000000, 2.5)
    """
    return int(value) if isinstance(value, float) and value.is_integer() else value
