"""The value of an expression on plain Python values: the slow twin of the machine code.

The machine code works on 64-bit ints and double-precision reals, so these are the rules:

- ints are exact; an operand or result of an int operation (every partial result of an n-ary
  one, from the left) or the chosen branch of ``ite`` outside 64 bits is an error. Literals beyond
  64 bits are legal in comparisons and as operands of real operations.
- an int that meets a real becomes a real first, also in comparisons (where an int beyond the
  reals counts as infinite); ``/`` and ``log`` always work on reals.
- an operation whose result is infinite or no number is an error; ``sech`` and ``csch`` far from
  0 are 0.
- ``∧ ∨ ite`` evaluate from the left and stop early; other operators evaluate all operands. A call
  stands for the function's body with the arguments in place of the parameters, so an argument
  is evaluated where the body evaluates its parameter, and not at all if it does not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from safetest_gym.errors import EvaluationError
from safetest_gym.jani.depth import deep_recursion
from safetest_gym.jani.operations import (
    COMPARISONS,
    INT_OPERATIONS,
    REAL_FUNCTIONS,
    REAL_OPERATIONS,
    TO_INT,
    compare,
)
from safetest_gym.jani.tree import (
    Call,
    Expression,
    Kind,
    Literal,
    Operation,
    Parameter,
    Reference,
    Value,
    Variable,
)

__all__ = [
    "INT_MAX",
    "INT_MIN",
    "Argument",
    "Parameters",
    "Values",
    "as_kind",
    "bind",
    "evaluate",
]

INT_MIN = -(2**63)
INT_MAX = 2**63 - 1

Values = Mapping[Variable, Value]


@dataclass(frozen=True, slots=True)
class Argument:
    """An expression in place of a parameter, and what its own parameters stand for."""

    expression: Expression
    parameters: Parameters


Parameters = Mapping[Parameter, Argument]


def evaluate(expression: Expression, values: Values, parameters: Parameters | None = None) -> Value:
    """The value of ``expression``: bool, int or float as its kind says.

    Raises:
        EvaluationError: it has none.
    """
    with deep_recursion():
        return _evaluate(expression, values, parameters or {})


def bind(call: Call, parameters: Parameters) -> Parameters:
    """What the parameters of the called function stand for in its body."""
    bound: dict[Parameter, Argument] = {}
    for parameter, argument in zip(call.function.parameters, call.arguments, strict=True):
        bound[parameter] = Argument(argument, parameters)
    return bound


def as_kind(value: Value, kind: Kind) -> Value:
    """``value`` as a variable of ``kind`` holds it: 64 bits, finite, no negative zero."""
    if kind == "real":
        return _as_real(value) + 0.0
    if kind == "int":
        return _as_int(value)
    return bool(value)


def _evaluate(expression: Expression, values: Values, parameters: Parameters) -> Value:
    if isinstance(expression, Literal):
        return float(expression.value) if expression.kind == "real" else expression.value
    if isinstance(expression, Reference):
        if expression.variable not in values:
            raise EvaluationError(f"variable {expression.variable.name!r} has no value here")
        return as_kind(values[expression.variable], expression.kind)
    if isinstance(expression, Parameter):
        argument = parameters[expression]
        value = _evaluate(argument.expression, values, argument.parameters)
        return _as_real(value) if expression.kind == "real" else value
    if isinstance(expression, Call):
        value = _evaluate(expression.function.body, values, bind(expression, parameters))
        return _as_real(value) if expression.kind == "real" else value
    if expression.operator in ("∧", "∨"):
        decisive = expression.operator == "∨"
        for operand in expression.operands:
            if bool(_evaluate(operand, values, parameters)) is decisive:
                return decisive
        return not decisive
    if expression.operator == "ite":
        condition, then, otherwise = expression.operands
        branch = then if _evaluate(condition, values, parameters) else otherwise
        return as_kind(_evaluate(branch, values, parameters), expression.kind)
    operands: list[Value] = []
    for operand in expression.operands:
        operands.append(_evaluate(operand, values, parameters))
    return _apply(expression, operands)


def _apply(operation: Operation, operands: Sequence[Value]) -> Value:
    symbol = operation.operator
    try:
        if symbol == "¬":
            return not operands[0]
        if symbol in COMPARISONS:
            return compare(symbol, operands[0], operands[1])
        if symbol in TO_INT:
            return _as_int(TO_INT[symbol](_checked(operands[0])))
        if operation.kind == "int":
            return _apply_int(symbol, operands)
        return _apply_real(symbol, [_as_real(operand) for operand in operands])
    except (ValueError, ArithmeticError) as error:
        shown = ", ".join([_shown(operand) for operand in operands])
        reason = "" if isinstance(error, OverflowError) else f": {error}"
        raise EvaluationError(f"{symbol} has no value for ({shown}){reason}") from error


def _apply_int(symbol: str, operands: Sequence[Value]) -> int:
    result = _as_int(operands[0])
    if symbol == "abs":
        return _as_int(abs(result))
    for operand in operands[1:]:
        result = _as_int(INT_OPERATIONS[symbol](result, _as_int(operand)))
    return result


def _apply_real(symbol: str, operands: Sequence[float]) -> float:
    if symbol in REAL_FUNCTIONS:
        return _as_real(REAL_FUNCTIONS[symbol](operands[0]))
    result = operands[0]
    for operand in operands[1:]:
        result = _as_real(REAL_OPERATIONS[symbol](result, operand))
    return result


def _as_int(value: Value) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise EvaluationError("an int beyond 64 bits")
    return int(value)


def _as_real(value: Value) -> float:
    try:
        real = float(value)
    except OverflowError as error:
        raise EvaluationError("an int beyond the reals") from error
    if not math.isfinite(real):
        raise EvaluationError("a result beyond the reals")
    return real


def _checked(value: Value) -> Value:
    return value if isinstance(value, float) else _as_int(value)


def _shown(value: Value) -> str:
    if isinstance(value, float) or INT_MIN <= value <= INT_MAX:
        return str(value)
    return f"an int of {value.bit_length()} bits"
