"""Linear forms of numbers, in floating point."""

from __future__ import annotations

from safetest_gym.starts.formula import Column, Constant, Number, Sum

__all__ = ["Linear", "linear_difference"]

Linear = tuple[dict[int, float], float]
"""Coefficient per column (none is 0), and a constant."""


def linear_difference(left: Number, right: Number) -> Linear | None:
    """``left - right``, if both are linear (up to rounding). Use inside `deep_recursion`."""
    first, second = _linear(left), _linear(right)
    return None if first is None or second is None else _plus(first, second, -1.0)


def _linear(number: Number) -> Linear | None:
    try:
        if isinstance(number, Constant):
            return None if number.value is None else ({}, float(number.value))
        if isinstance(number, Column):
            return {number.column: 1.0}, 0.0
        if isinstance(number, Sum):
            total: Linear = ({}, float(number.constant))
            for term, factor in number.terms:
                part = _linear(term)
                if part is None:
                    return None
                total = _plus(total, part, float(factor))
            return total
    except OverflowError:
        return None
    parts: list[Linear] = []
    for operand in number.operands:
        part = _linear(operand) if isinstance(operand, Number) else None
        if part is None:
            return None
        parts.append(part)
    return _applied(number.symbol, parts)


def _applied(symbol: str, parts: list[Linear]) -> Linear | None:
    result = parts[0]
    for part in parts[1:]:
        if symbol in ("+", "-"):
            result = _plus(result, part, 1.0 if symbol == "+" else -1.0)
        elif symbol == "*" and not part[0]:
            result = _plus(({}, 0.0), result, part[1])
        elif symbol == "*" and not result[0]:
            result = _plus(({}, 0.0), part, result[1])
        elif symbol == "/" and not part[0] and part[1] != 0:
            result = _plus(({}, 0.0), result, 1 / part[1])
        else:
            return None
    return result if symbol in ("+", "-", "*", "/") else None


def _plus(one: Linear, other: Linear, factor: float) -> Linear:
    """``one + factor * other``."""
    coefficients = dict(one[0])
    for column, c in other[0].items():
        coefficients[column] = coefficients.get(column, 0.0) + factor * c
    kept = {column: c for column, c in coefficients.items() if c != 0.0}
    return kept, one[1] + factor * other[1]
