"""Numbers over the columns of a state, simplified as they are built.

Sums of ints are exact and canonical; an operation on constants is what
`safetest_gym.engine.evaluation` says it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import reduce
from typing import TypeVar, cast

from safetest_gym.engine.evaluation import evaluate
from safetest_gym.errors import EvaluationError
from safetest_gym.jani.tree import Kind, Literal, Operation
from safetest_gym.starts.formula import (
    FALSE,
    TRUE,
    Application,
    Column,
    Constant,
    Formula,
    Number,
    Sum,
    Term,
    Truth,
    columns_of,
)
from safetest_gym.starts.intervals import Intervals

__all__ = ["NO_VALUE", "Numbers"]

NO_VALUE = Constant(None)

_INFINITE = (math.inf, -math.inf)

_Node = TypeVar("_Node")


class Numbers:
    """Builds numbers; equal ones are one object.

    Attributes:
        domains: per column, the values it can have.
        real: per column, does it hold reals?
        work: how many nodes were rebuilt so far with a value for a column.
    """

    def __init__(self, domains: Sequence[Intervals], real: Sequence[bool]) -> None:
        self.domains = tuple(domains)
        self.real = tuple(real)
        self.work = 0
        self._nodes: dict[Hashable, object] = {}

    def intern(self, key: Hashable, make: Callable[[int], _Node]) -> _Node:
        """The node known by ``key``, made with its rank when it is new."""
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = make(len(self._nodes) + 1)
        return cast(_Node, node)

    def constant(self, value: float) -> Constant:
        """A number that is known."""
        sign = math.copysign(1, value) if isinstance(value, float) else 0
        key = ("constant", type(value), value, sign)
        return self.intern(key, lambda rank: Constant(value, rank=rank))

    def column(self, column: int) -> Constant | Column:
        """The value of a column."""
        domain, real = self.domains[column], self.real[column]
        low, high = domain[0][0], domain[-1][1]
        if low == high:
            return self.constant(low)
        return self.intern(
            ("column", column),
            lambda rank: Column(column, not real, low, high, frozenset((column,)), rank),
        )

    def total(self, parts: Sequence[tuple[Number, int]]) -> Number:
        """The sum of int numbers times coefficients."""
        constant = 0
        coefficients: dict[int, int] = {}
        terms: dict[int, Term] = {}
        for number, factor in parts:
            if isinstance(number, Constant):
                if number.value is None:
                    return NO_VALUE
                constant += int(number.value) * factor
                continue
            if isinstance(number, Sum):
                constant += number.constant * factor
            inner = number.terms if isinstance(number, Sum) else ((number, 1),)
            for term, coefficient in inner:
                terms[term.rank] = term
                coefficients[term.rank] = coefficients.get(term.rank, 0) + coefficient * factor
        kept = tuple((terms[rank], c) for rank, c in sorted(coefficients.items()) if c != 0)
        if not kept:
            return self.constant(constant)
        if constant == 0 and len(kept) == 1 and kept[0][1] == 1:
            return kept[0][0]
        return self._sum(constant, kept)

    def _sum(self, constant: int, terms: tuple[tuple[Term, int], ...]) -> Sum:
        low: float = constant
        high: float = constant
        for term, c in terms:
            low = _plus(low, _times(c, term.low if c > 0 else term.high))
            high = _plus(high, _times(c, term.high if c > 0 else term.low))
        key = ("sum", constant, tuple((term.rank, c) for term, c in terms))
        scope = columns_of([term for term, _ in terms])
        return self.intern(key, lambda rank: Sum(constant, terms, low, high, scope, rank))

    def apply(self, symbol: str, operands: Sequence[Number], kind: Kind) -> Number:
        """An arithmetic operation other than ``ite``."""
        if any(operand is NO_VALUE for operand in operands):
            return NO_VALUE
        if symbol in ("min", "max"):
            operands = self._extreme_operands(symbol, operands, kind)
            if len(operands) == 1:
                return operands[0]
        if all(isinstance(operand, Constant) for operand in operands):
            return self._fold(symbol, cast(Sequence[Constant], operands), kind)
        if kind == "int":
            if symbol == "+":
                return self.total([(operand, 1) for operand in operands])
            if symbol == "-":
                return self.total([(operands[0], 1), (operands[1], -1)])
            if symbol == "*":
                return self._product(operands)
        return self._application(symbol, operands, kind)

    def choice(self, condition: Formula, then: Number, otherwise: Number, kind: Kind) -> Number:
        """``ite``."""
        if isinstance(condition, Truth):
            return then if condition is TRUE else otherwise if condition is FALSE else NO_VALUE
        if then is otherwise:
            return then
        key = ("ite", condition.rank, then.rank, otherwise.rank)
        operands = (condition, then, otherwise)
        low, high = min(then.low, otherwise.low), max(then.high, otherwise.high)
        scope = columns_of(operands)
        return self.intern(
            key, lambda rank: Application("ite", operands, kind == "int", low, high, scope, rank)
        )

    def _fold(self, symbol: str, operands: Sequence[Constant], kind: Kind) -> Constant:
        literals = [
            Literal(cast(float, operand.value), "int" if operand.integer else "real")
            for operand in operands
        ]
        try:
            value = evaluate(Operation(symbol, tuple(literals), kind), {})
        except EvaluationError:
            return NO_VALUE
        return self.constant(value)

    def _extreme_operands(
        self, symbol: str, operands: Sequence[Number], kind: Kind
    ) -> Sequence[Number]:
        """``operands`` without those that can never be the least or greatest."""
        constants = [operand for operand in operands if isinstance(operand, Constant)]
        kept: dict[int, Number] = {
            operand.rank: operand for operand in operands if not isinstance(operand, Constant)
        }
        if constants:
            constant = self._fold(symbol, constants, kind)
            kept[constant.rank] = constant
        if symbol == "max":
            bound = max(operand.low for operand in kept.values())
            useful = [operand for operand in kept.values() if operand.high > bound]
            least = [operand for operand in kept.values() if operand.low == bound]
        else:
            bound = min(operand.high for operand in kept.values())
            useful = [operand for operand in kept.values() if operand.low < bound]
            least = [operand for operand in kept.values() if operand.high == bound]
        found = {operand.rank: operand for operand in (*useful, least[0])}
        return [found[rank] for rank in sorted(found)]

    def _product(self, operands: Sequence[Number]) -> Number:
        factor = 1
        rest: list[Number] = []
        for operand in operands:
            if isinstance(operand, Constant):
                factor *= cast(int, operand.value)
            else:
                rest.append(operand)
        if factor == 0:
            return self.constant(0)
        if len(rest) == 1:
            return self.total([(rest[0], factor)])
        rest.sort(key=lambda operand: operand.rank)
        return self.total([(self._application("*", rest, "int"), factor)])

    def _application(self, symbol: str, operands: Sequence[Number], kind: Kind) -> Application:
        low, high = _bounds(symbol, operands)
        key = (symbol, kind, tuple(operand.rank for operand in operands))
        scope = columns_of(operands)
        made = tuple(operands)
        return self.intern(
            key, lambda rank: Application(symbol, made, kind == "int", low, high, scope, rank)
        )


def _bounds(symbol: str, operands: Sequence[Number]) -> tuple[float, float]:
    """Least and greatest value of an operation, where easily known."""
    lows, highs = [number.low for number in operands], [number.high for number in operands]
    if symbol in ("min", "max"):
        extreme = min if symbol == "min" else max
        return extreme(lows), extreme(highs)
    if symbol == "+":
        return reduce(_plus, lows), reduce(_plus, highs)
    if symbol == "-":
        return _plus(lows[0], -highs[1]), _plus(highs[0], -lows[1])
    if symbol == "*":
        low, high = lows[0], highs[0]
        for other_low, other_high in zip(lows[1:], highs[1:], strict=True):
            ends = [_times(a, b) for a in (low, high) for b in (other_low, other_high)]
            low, high = min(ends), max(ends)
        return low, high
    if symbol == "abs":
        least = 0 if lows[0] <= 0 <= highs[0] else min(abs(lows[0]), abs(highs[0]))
        return least, max(abs(lows[0]), abs(highs[0]))
    if symbol == "%" and lows[1] == highs[1] != 0:
        return min(0, lows[1] + 1), max(0, lows[1] - 1)
    return -math.inf, math.inf


def _plus(a: float, b: float) -> float:
    """``a + b``, also for ints beyond the reals; they count as infinite beside a real."""
    if a in _INFINITE or b in _INFINITE:
        return a if a in _INFINITE else b
    try:
        return a + b
    except OverflowError:
        return math.inf if max(a, b, key=abs) > 0 else -math.inf


def _times(a: float, b: float) -> float:
    """``a * b``, also for ints beyond the reals; 0 times anything is 0."""
    if a == 0 or b == 0:
        return 0
    infinite = math.inf if (a > 0) == (b > 0) else -math.inf
    if a in _INFINITE or b in _INFINITE:
        return infinite
    try:
        return a * b
    except OverflowError:
        return infinite
