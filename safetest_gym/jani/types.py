"""Read types and check values against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from safetest_gym.jani.expressions import Reader
from safetest_gym.jani.reporting import Place, Report, Shape, describe, quote, suggest
from safetest_gym.jani.tree import Kind, Value

__all__ = ["Type", "check_value", "read_type"]

_BOUNDED = Shape("a bounded type", ("kind", "base"), ("lower-bound", "upper-bound"))
_KINDS = ("bool", "int", "real")
_UNSUPPORTED = {
    "clock": "clocks are not supported",
    "continuous": "continuous variables are not supported",
    "array": "arrays are not supported",
    "datatype": "datatypes are not supported",
    "option": "datatypes (option types) are not supported",
}


@dataclass(frozen=True, slots=True)
class Type:
    """A kind and, for numbers, the least and greatest value where there is one."""

    kind: Kind
    lower: Value | None = None
    upper: Value | None = None


def read_type(data: Any, place: Place, reader: Reader) -> Type | None:
    """The type ``data``, or None if it has errors."""
    report = reader.report
    if isinstance(data, str):
        if data in _KINDS:
            kind = cast(Kind, data)
            return Type(kind, 0, 1) if kind == "bool" else Type(kind)
        if data in _UNSUPPORTED:
            report.add(place, _UNSUPPORTED[data])
        else:
            hint = suggest(data, _KINDS) or _type_hint(data)
            report.add(place, f"unknown type {quote(data)}", hint)
        return None
    if not isinstance(data, dict):
        report.add(place, f"expected a type, found {describe(data)}")
        return None
    what = data.get("kind")
    if isinstance(what, str) and what in _UNSUPPORTED:
        report.add((place, "kind"), _UNSUPPORTED[what])
        return None
    if "kind" in data and what != "bounded":
        report.take_choice(what, (place, "kind"), "kind of type", ("bounded",))
        return None
    return _read_bounded(data, place, reader)


def _type_hint(word: str) -> str:
    meant = {"boolean": "bool", "integer": "int", "double": "real", "float": "real"}
    return f"did you mean {quote(meant[word.lower()])}?" if word.lower() in meant else ""


def _read_bounded(data: dict[str, Any], place: Place, reader: Reader) -> Type | None:
    report = reader.report
    checked = report.take_object(data, place, _BOUNDED)
    if checked is None:
        return None
    base = report.take_choice(checked["base"], (place, "base"), "base type", ("int", "real"))
    if base is None:
        return None
    kind = cast(Kind, base)
    before = len(report)
    bounds: list[Value | None] = []
    for key in ("lower-bound", "upper-bound"):
        bounds.append(_bound(data[key], (place, key), kind, reader) if key in data else None)
    if len(report) > before:
        return None
    lower, upper = bounds
    if lower is not None and upper is not None and lower > upper:
        message = f"the lower bound {describe(lower)} is above the upper bound {describe(upper)}"
        report.add((place, "lower-bound"), message)
        return None
    return Type(kind, lower, upper)


def _bound(data: Any, place: Place, kind: Kind, reader: Reader) -> Value | None:
    value = reader.constant(data, place, "real" if isinstance(data, float) else kind)
    if isinstance(value, float) and kind == "int":
        hint = f"write {int(value)}" if value == int(value) else "use a bounded real"
        reader.report.add(place, f"the bound of an int must be an int, it is {value}", hint)
        return None
    return value


def check_value(value: Value, kind_of: Type, place: Place, report: Report, what: str) -> bool:
    """Is ``value`` within the bounds? Reported if not."""
    if kind_of.lower is not None and value < kind_of.lower:
        side = f"below its lower bound {describe(kind_of.lower)}"
    elif kind_of.upper is not None and value > kind_of.upper:
        side = f"above its upper bound {describe(kind_of.upper)}"
    else:
        return True
    report.add(place, f"{what} is {describe(value)}, {side}")
    return False
