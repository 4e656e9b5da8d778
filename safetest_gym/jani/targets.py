"""Find the target of a standard property: what it asks to reach."""

from __future__ import annotations

from typing import Any

from safetest_gym.jani.conditions import StateReader
from safetest_gym.jani.reporting import Place, describe, quote
from safetest_gym.jani.tree import Expression

__all__ = ["find_target"]

_QUANTIFIERS = frozenset(("Pmin", "Pmax", "∀", "∃"))
_EXPECTATIONS = frozenset(("Emin", "Emax"))
_COMPARISONS = frozenset(("=", "≠", "<", "≤", ">", "≥"))
_BOUNDS = ("step-bounds", "time-bounds", "reward-bounds")


def find_target(data: Any, place: Place, reader: StateReader) -> tuple[Expression | None, str]:
    """The target of ``F`` or ``U`` in a property, or None and why there is none.

    Errors in the target itself are reported.
    """
    while isinstance(data, dict):
        symbol = data.get("op")
        if not isinstance(symbol, str):
            break
        if symbol == "filter":
            data, place = data.get("values"), (place, "values")
        elif symbol in _QUANTIFIERS:
            data, place = data.get("exp"), (place, "exp")
        elif symbol in _COMPARISONS:
            side = "left" if _is_temporal(data.get("left")) else "right"
            if not _is_temporal(data.get(side)):
                break
            data, place = data.get(side), (place, side)
        elif symbol in _EXPECTATIONS:
            return _target(data, "reach", place, reader, f"{symbol} without 'reach'")
        elif symbol in ("F", "U"):
            for key in _BOUNDS:
                if key in data:
                    return None, f"{quote(key)} of {symbol} are not supported"
            key = "exp" if symbol == "F" else "right"
            return _target(data, key, place, reader, f"{symbol} without {quote(key)}")
        else:
            break
    return None, _reason(data)


def _is_temporal(data: Any) -> bool:
    if not isinstance(data, dict):
        return False
    symbol = data.get("op")
    return isinstance(symbol, str) and symbol in _QUANTIFIERS | _EXPECTATIONS


def _target(
    data: dict[str, Any], key: str, place: Place, reader: StateReader, missing: str
) -> tuple[Expression | None, str]:
    if key not in data:
        return None, f"{missing} is not supported"
    target = reader.expressions.read(data[key], (place, key), "bool")
    return target, ""


def _reason(data: Any) -> str:
    if isinstance(data, dict) and isinstance(data.get("op"), str):
        return f"properties with {quote(data['op'])} here are not supported"
    return f"expected a property, found {describe(data)}"
