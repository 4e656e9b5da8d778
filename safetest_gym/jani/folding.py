"""Values of operations on literals, as `safetest_gym.jani.tree` defines them.

Ints are exact and may be large; reals are doubles and finite. An int that meets a real
becomes a real first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from safetest_gym.jani.operations import (
    COMPARISONS,
    INT_OPERATIONS,
    MAX_BITS,
    REAL_FUNCTIONS,
    REAL_OPERATIONS,
    TO_INT,
    compare,
)
from safetest_gym.jani.tree import (
    Call,
    Expression,
    Function,
    Kind,
    Literal,
    Operation,
    Parameter,
    Value,
)

__all__ = ["NoValueError", "apply", "call"]

MAX_STEPS = 200_000
"""Longer evaluations of one function call are given up."""


class NoValueError(Exception):
    """An operation on literals has no value; the text says why."""


def apply(symbol: str, kind: Kind, values: Sequence[Value]) -> Value:
    """The value of an operation that yields ``kind``.

    Raises:
        NoValueError: it has none.
    """
    try:
        if symbol in COMPARISONS:
            return compare(symbol, values[0], values[1])
        if symbol in TO_INT:
            return TO_INT[symbol](values[0])
        if kind == "int":
            return _apply_int(symbol, values)
        if kind == "real":
            return _apply_real(symbol, values)
    except ZeroDivisionError:
        raise NoValueError("division by zero") from None
    except OverflowError:
        raise NoValueError("the result is too large") from None
    except ValueError:
        raise NoValueError("the operands are outside the operator's domain") from None
    return _apply_bool(symbol, values)


def _apply_bool(symbol: str, values: Sequence[Value]) -> bool:
    if symbol == "¬":
        return not values[0]
    return all(values) if symbol == "∧" else any(values)


def _apply_int(symbol: str, values: Sequence[Value]) -> int:
    result = int(values[0])
    if symbol == "abs":
        return abs(result)
    if symbol == "pow" and values[1] < 0:
        raise NoValueError("a negative exponent of an int; write the base as a real")
    for value in values[1:]:
        result = INT_OPERATIONS[symbol](result, int(value))
    if result.bit_length() > MAX_BITS:
        raise OverflowError
    return result


def _apply_real(symbol: str, values: Sequence[Value]) -> float:
    result = float(values[0])
    if symbol in REAL_FUNCTIONS:
        result = REAL_FUNCTIONS[symbol](result)
    for value in values[1:]:
        result = REAL_OPERATIONS[symbol](result, float(value))
    if not math.isfinite(result):
        raise OverflowError
    return result


def call(function: Function, arguments: Sequence[Value]) -> Value | None:
    """The value of a call, or None if the function reads variables.

    Raises:
        NoValueError: it has no value, or needs more than `MAX_STEPS`.
    """
    evaluation = _Evaluation()
    try:
        return evaluation.call(function, arguments)
    except _NotConstantError:
        return None


class _NotConstantError(Exception):
    pass


class _Evaluation:
    """One evaluation; equal calls are evaluated once."""

    def __init__(self) -> None:
        self._steps = 0
        self._known: dict[tuple[Function, tuple[Value, ...]], Value] = {}

    def call(self, function: Function, arguments: Sequence[Value]) -> Value:
        values: list[Value] = []
        for parameter, argument in zip(function.parameters, arguments, strict=True):
            values.append(_as_kind(argument, parameter.kind))
        key = (function, tuple(values))
        if key not in self._known:
            parameters = dict(zip(function.parameters, values, strict=True))
            value = self._evaluate(function.body, parameters)
            self._known[key] = _as_kind(value, function.kind)
        return self._known[key]

    def _evaluate(self, node: Expression, parameters: Mapping[Parameter, Value]) -> Value:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise NoValueError(f"evaluating it takes more than {MAX_STEPS} steps")
        if isinstance(node, Literal):
            return node.value
        if isinstance(node, Parameter):
            return parameters[node]
        if isinstance(node, Operation):
            return self._operation(node, parameters)
        if isinstance(node, Call):
            arguments: list[Value] = []
            for argument in node.arguments:
                arguments.append(self._evaluate(argument, parameters))
            return self.call(node.function, arguments)
        raise _NotConstantError

    def _operation(self, node: Operation, parameters: Mapping[Parameter, Value]) -> Value:
        if node.operator in ("∧", "∨"):
            for operand in node.operands:
                if self._evaluate(operand, parameters) is (node.operator == "∨"):
                    return node.operator == "∨"
            return node.operator == "∧"
        if node.operator == "ite":
            condition, then, otherwise = node.operands
            chosen = then if self._evaluate(condition, parameters) else otherwise
            return _as_kind(self._evaluate(chosen, parameters), node.kind)
        values: list[Value] = []
        for operand in node.operands:
            values.append(self._evaluate(operand, parameters))
        return apply(node.operator, node.kind, values)


def _as_kind(value: Value, kind: Kind) -> Value:
    if kind == "real" and not isinstance(value, float):
        try:
            return float(value)
        except OverflowError:
            raise NoValueError("an int too large for a real") from None
    return value
