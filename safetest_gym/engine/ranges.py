"""Interval analysis: which values can an expression have, and can it fail to have one?

Bounds of integer results are exact Python numbers; a result that may leave 64 bits, or a
real one that may not be finite, makes the expression ``fails``. Real bounds are computed
with the operations themselves; rounding is monotone, so they are bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from safetest_gym.engine.evaluation import INT_MAX, INT_MIN
from safetest_gym.engine.rewrite import ATTEMPT, REAL
from safetest_gym.jani.operations import comparable
from safetest_gym.jani.tree import Expression, Literal, Operation, Reference, Variable

__all__ = ["Range", "Ranges"]

INF = math.inf


@dataclass(frozen=True, slots=True)
class Range:
    """Least and greatest value (bools as 0 and 1); ``fails`` if there may be no value."""

    lower: int | float
    upper: int | float
    fails: bool = False

    @property
    def constant(self) -> bool:
        """Is there exactly one value, for sure?"""
        return self.lower == self.upper and not self.fails


def _integer(lower: int | float, upper: int | float, fails: bool) -> Range:
    if lower < INT_MIN or upper > INT_MAX:
        return Range(max(lower, INT_MIN), min(upper, INT_MAX), True)
    return Range(lower, upper, fails)


def _real(lower: float, upper: float, fails: bool) -> Range:
    if math.isfinite(lower) and math.isfinite(upper):
        return Range(lower, upper, fails)
    return Range(-INF, INF, True)


class Ranges:
    """Ranges of call-free expressions, given what is known of the variables.

    Args:
        known: narrower bounds of some variables, for instance from a guard that holds.
    """

    def __init__(self, known: Mapping[Variable, tuple[int | float, int | float]]) -> None:
        self.known = known
        self._memo: dict[int, tuple[Expression, Range]] = {}

    def variable(self, variable: Variable) -> Range:
        """Bounds of a variable here."""
        if variable in self.known:
            return Range(*self.known[variable])
        lower, upper = variable.lower, variable.upper
        if variable.kind == "real":
            return Range(
                -INF if lower is None else float(lower), INF if upper is None else float(upper)
            )
        return Range(
            INT_MIN if lower is None else max(int(lower), INT_MIN),
            INT_MAX if upper is None else min(int(upper), INT_MAX),
        )

    def of(self, expression: Expression) -> Range:
        """The range of ``expression``."""
        if isinstance(expression, Literal):
            value = expression.value
            return (
                Range(int(value), int(value))
                if value is True or value is False
                else Range(value, value)
            )
        if isinstance(expression, Reference):
            return self.variable(expression.variable)
        found = self._memo.get(id(expression))
        if found is None:
            assert isinstance(expression, Operation), "calls are inlined first"
            found = (expression, self._operation(expression))
            self._memo[id(expression)] = found
        return found[1]

    def _operation(self, expression: Operation) -> Range:
        operator = expression.operator
        if operator in ("∧", "∨"):
            return self._connective(expression)
        if operator == "ite":
            return self._choice(expression)
        if operator == ATTEMPT:
            first, second = self.of(expression.operands[0]), self.of(expression.operands[1])
            return Range(min(first.lower, second.lower), max(first.upper, second.upper))
        parts = []
        fails = False
        for operand in expression.operands:
            part = self.of(operand)
            if expression.kind == "int" or operator in ("=", "≠", "<", "≤"):
                fails = fails or (expression.kind == "int" and _beyond(operand))
            fails = fails or part.fails
            parts.append(part)
        if operator in ("=", "≠", "<", "≤"):
            return _comparison(operator, expression, parts, fails)
        if operator == "¬":
            return Range(1 - parts[0].upper, 1 - parts[0].lower, fails)
        if operator in ("floor", "ceil", "trc"):
            return _rounding(operator, parts[0], fails)
        if expression.kind == "int":
            return _INTEGER[operator](parts, fails)
        floats = [Range(comparable(p.lower), comparable(p.upper), p.fails) for p in parts]
        rule = _REAL.get(operator)
        return Range(-INF, INF, True) if rule is None else rule(floats, fails)

    def _connective(self, expression: Operation) -> Range:
        """∧, or ∨ as its dual: stops at the first operand that decides for sure."""
        deciding = 0 if expression.operator == "∧" else 1
        lower, upper, fails = 1 - deciding, 1 - deciding, False
        for operand in expression.operands:
            part = self.of(operand)
            fails = fails or part.fails
            if deciding == 0:
                lower, upper = min(lower, int(part.lower)), min(upper, int(part.upper))
            else:
                lower, upper = max(lower, int(part.lower)), max(upper, int(part.upper))
            if part.lower == part.upper == deciding:
                break
        return Range(lower, upper, fails)

    def _choice(self, expression: Operation) -> Range:
        condition, then, otherwise = expression.operands
        test = self.of(condition)
        branches = []
        fails = test.fails
        for possible, branch in ((test.upper == 1, then), (test.lower == 0, otherwise)):
            if possible:
                branches.append(self.of(branch))
                huge = expression.kind == "int" and _beyond(branch)
                fails = fails or huge or branches[-1].fails
        lower = min(b.lower for b in branches)
        upper = max(b.upper for b in branches)
        if expression.kind == "real":
            return Range(comparable(lower), comparable(upper), fails)
        return Range(lower, upper, fails)


def _beyond(operand: Expression) -> bool:
    """Is it a literal that 64 bits cannot hold?"""
    return isinstance(operand, Literal) and not INT_MIN <= operand.value <= INT_MAX


def _comparison(operator: str, expression: Operation, parts: list[Range], fails: bool) -> Range:
    left, right = parts
    if len({operand.kind for operand in expression.operands}) == 2:
        left = Range(comparable(left.lower), comparable(left.upper))
        right = Range(comparable(right.lower), comparable(right.upper))
    if operator in ("=", "≠"):
        if left.upper < right.lower or right.upper < left.lower:
            equal = (0, 0)
        elif left.lower == left.upper == right.lower == right.upper:
            equal = (1, 1)
        else:
            equal = (0, 1)
        lower, upper = equal if operator == "=" else (1 - equal[1], 1 - equal[0])
        return Range(lower, upper, fails)
    if operator == "<":
        always, never = left.upper < right.lower, left.lower >= right.upper
    else:
        always, never = left.upper <= right.lower, left.lower > right.upper
    return Range(int(always), int(not never), fails)


def _rounding(operator: str, part: Range, fails: bool) -> Range:
    rounded: Callable[[float], int] = {"floor": math.floor, "ceil": math.ceil}.get(
        operator, math.trunc
    )
    if not (math.isfinite(part.lower) and math.isfinite(part.upper)):
        return Range(INT_MIN, INT_MAX, True)
    return _integer(rounded(part.lower), rounded(part.upper), fails)


def _corners(
    operation: Callable[[int | float, int | float], int | float], a: Range, b: Range
) -> tuple[int | float, int | float]:
    corners = [
        operation(a.lower, b.lower),
        operation(a.lower, b.upper),
        operation(a.upper, b.lower),
        operation(a.upper, b.upper),
    ]
    if any(corner != corner for corner in corners):
        return -INF, INF
    return min(corners), max(corners)


def _int_sum(parts: list[Range], fails: bool) -> Range:
    total = _integer(parts[0].lower, parts[0].upper, fails)
    for part in parts[1:]:
        total = _integer(total.lower + part.lower, total.upper + part.upper, total.fails)
    return total


def _int_product(parts: list[Range], fails: bool) -> Range:
    total = _integer(parts[0].lower, parts[0].upper, fails)
    for part in parts[1:]:
        total = _integer(*_corners(lambda x, y: x * y, total, part), total.fails)
    return total


def _int_modulo(parts: list[Range], fails: bool) -> Range:
    a, b = parts
    if b.lower > 0 and a.lower >= 0 and a.upper < b.lower:
        return Range(a.lower, a.upper, fails)
    fails = fails or b.lower <= 0 <= b.upper
    return Range(min(0, b.lower + 1), max(0, b.upper - 1), fails)


def _int_power(parts: list[Range], fails: bool) -> Range:
    base, exponent = parts
    size = max(abs(base.lower), abs(base.upper), 1)
    if exponent.upper > 64 and size > 1:
        return Range(INT_MIN, INT_MAX, True)
    top = size ** min(int(exponent.upper), 64) if exponent.upper > 0 else 1
    return _integer(0 if base.lower >= 0 else -int(top), int(top), fails or exponent.lower < 0)


def _extremum(pick: Callable[..., int | float]) -> Callable[[list[Range], bool], Range]:
    def rule(parts: list[Range], fails: bool) -> Range:
        return Range(pick(p.lower for p in parts), pick(p.upper for p in parts), fails)

    return rule


def _absolute(parts: list[Range], fails: bool) -> Range:
    low, high = parts[0].lower, parts[0].upper
    least = 0 if low <= 0 <= high else min(abs(low), abs(high))
    most = max(abs(low), abs(high))
    return Range(least, most, fails)


def _int_absolute(parts: list[Range], fails: bool) -> Range:
    part = _absolute(parts, fails)
    return _integer(part.lower, part.upper, fails)


def _sign(parts: list[Range], fails: bool) -> Range:
    low, high = parts[0].lower, parts[0].upper
    return Range((low > 0) - (low < 0), (high > 0) - (high < 0), fails)


def _real_sum(parts: list[Range], fails: bool) -> Range:
    total = parts[0]
    for part in parts[1:]:
        total = _real(total.lower + part.lower, total.upper + part.upper, fails)
        fails = total.fails
    return Range(total.lower, total.upper, fails)


def _real_product(parts: list[Range], fails: bool) -> Range:
    total = parts[0]
    for part in parts[1:]:
        lower, upper = _corners(lambda x, y: x * y, total, part)
        total = _real(float(lower), float(upper), fails)
        fails = total.fails
    return Range(total.lower, total.upper, fails)


def _real_difference(parts: list[Range], fails: bool) -> Range:
    a, b = parts
    return _real(a.lower - b.upper, a.upper - b.lower, fails)


def _real_quotient(parts: list[Range], fails: bool) -> Range:
    a, b = parts
    if b.lower <= 0 <= b.upper:
        return Range(-INF, INF, True)
    lower, upper = _corners(lambda x, y: x / y, a, b)
    return _real(float(lower), float(upper), fails)


def _wave(parts: list[Range], fails: bool) -> Range:
    return Range(-1.0, 1.0, fails or parts[0].fails)


_INTEGER: dict[str, Callable[[list[Range], bool], Range]] = {
    "+": _int_sum,
    "-": lambda p, f: _integer(p[0].lower - p[1].upper, p[0].upper - p[1].lower, f),
    "*": _int_product,
    "%": _int_modulo,
    "pow": _int_power,
    "min": _extremum(min),
    "max": _extremum(max),
    "abs": _int_absolute,
    "sgn": _sign,
}

_REAL: dict[str, Callable[[list[Range], bool], Range]] = {
    REAL: lambda p, f: _real(p[0].lower, p[0].upper, f),
    "+": _real_sum,
    "-": _real_difference,
    "*": _real_product,
    "/": _real_quotient,
    "min": _extremum(min),
    "max": _extremum(max),
    "abs": _absolute,
    "sin": _wave,
    "cos": _wave,
}
