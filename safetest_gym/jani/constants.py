"""Values the user gives for constants that the document leaves open."""

from __future__ import annotations

import math
import numbers
from typing import Any

from safetest_gym.jani.numerals import MAX_DIGITS, parse_integer
from safetest_gym.jani.reporting import Place, Report, describe, quote
from safetest_gym.jani.tree import Kind, Value

__all__ = ["given_value"]

_EXAMPLES = {"bool": "true", "int": "3", "real": "0.5"}


def given_value(name: str, given: Any, kind: Kind, place: Place, report: Report) -> Value | None:
    """``given`` as a value of ``kind``; texts are read as a command line would give them.

    None if it cannot be one, which is reported.
    """
    value = _parse(given.strip()) if isinstance(given, str) else given
    if _is_bool(value):
        if kind == "bool":
            return bool(value)
    elif isinstance(value, numbers.Integral) and kind == "int":
        return int(value)
    elif isinstance(value, numbers.Real) and kind == "real":
        return _as_real(name, value, place, report)
    shown = quote(given) if isinstance(given, str) else describe(given)
    report.add(
        place,
        f"constant {quote(name)} is of type {kind}, the value given is {shown}",
        f"give something like {_EXAMPLES[kind]}",
    )
    return None


def _is_bool(value: Any) -> bool:
    """Is it a bool, of Python or of NumPy?"""
    scalar = getattr(value, "shape", None) == ()
    return isinstance(value, bool) or (scalar and str(value.dtype) == "bool")


def _as_real(name: str, value: numbers.Real, place: Place, report: Report) -> Value | None:
    try:
        real = float(value)
    except OverflowError:
        real = math.inf
    if math.isfinite(real):
        return real
    report.add(place, f"the value given for constant {quote(name)} is no finite number")
    return None


def _parse(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text.removeprefix("-").isdecimal() and text.isascii():
        return parse_integer(text) if len(text) <= MAX_DIGITS else None
    try:
        return float(text)
    except ValueError:
        return None
