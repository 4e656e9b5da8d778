"""From the typed tree to canonical formulas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from safetest_gym.errors import StartError
from safetest_gym.jani.tree import (
    Call,
    Expression,
    Literal,
    Operation,
    Parameter,
    Reference,
    Variable,
)
from safetest_gym.starts.formula import (
    FALSE,
    TRUE,
    Formula,
    Number,
)
from safetest_gym.starts.logic import Formulas

__all__ = ["Translator"]

_Arguments = Mapping[Parameter, Formula | Number]


class Translator:
    """Translates expressions over ``columns``; shared nodes once.

    Use inside `safetest_gym.jani.depth.deep_recursion`.
    """

    def __init__(self, formulas: Formulas, columns: Mapping[Variable, int]) -> None:
        self._formulas = formulas
        self._columns = columns
        self._known: dict[tuple[int, tuple[int, ...]], Formula | Number] = {}

    def formula(self, expression: Expression) -> Formula:
        """A condition."""
        return _as_formula(self._translate(expression, {}, ()))

    def _translate(
        self, expression: Expression, arguments: _Arguments, context: tuple[int, ...]
    ) -> Formula | Number:
        """``context`` identifies the call that ``arguments`` belong to."""
        if isinstance(expression, Parameter):
            return arguments[expression]
        if isinstance(expression, Literal):
            return self._literal(expression)
        if isinstance(expression, Reference):
            return self._reference(expression.variable)
        key = (id(expression), context)
        if key not in self._known:
            if isinstance(expression, Call):
                self._known[key] = self._call(expression, arguments, context)
            else:
                self._known[key] = self._operation(expression, arguments, context)
        return self._known[key]

    def _literal(self, literal: Literal) -> Formula | Number:
        if literal.kind == "bool":
            return TRUE if literal.value else FALSE
        value = float(literal.value) if literal.kind == "real" else int(literal.value)
        return self._formulas.constant(value)

    def _reference(self, variable: Variable) -> Formula | Number:
        column = self._columns.get(variable)
        if column is None:
            raise StartError(
                f"the start condition mentions {variable.name!r}, which is no variable of the "
                "state; write the condition with state variables only"
            )
        if variable.kind == "bool":
            return self._formulas.inside(column, ((1, 1),))
        return self._formulas.column(column)

    def _call(
        self, call: Call, arguments: _Arguments, context: tuple[int, ...]
    ) -> Formula | Number:
        inner: dict[Parameter, Formula | Number] = {}
        identity: list[int] = [id(call.function)]
        for parameter, argument in zip(call.function.parameters, call.arguments, strict=True):
            value = self._translate(argument, arguments, context)
            inner[parameter] = value
            identity.append(value.rank if value.rank else -1 - id(value))
        return self._translate(call.function.body, inner, tuple(identity))

    def _operation(
        self, operation: Operation, arguments: _Arguments, context: tuple[int, ...]
    ) -> Formula | Number:
        symbol, formulas = operation.operator, self._formulas
        operands: list[Formula | Number] = []
        for operand in operation.operands:
            operands.append(self._translate(operand, arguments, context))
        if symbol in ("∧", "∨"):
            return formulas.junction(symbol, cast(list[Formula], operands))
        if symbol == "¬":
            return formulas.negation(_as_formula(operands[0]))
        if symbol == "ite":
            return self._choice(operation, operands)
        if symbol in ("=", "≠", "<", "≤"):
            return self._comparison(symbol, operands)
        return formulas.apply(symbol, cast(list[Number], operands), operation.kind)

    def _choice(self, operation: Operation, operands: list[Formula | Number]) -> Formula | Number:
        condition, then, otherwise = operands
        if operation.kind == "bool":
            return self._formulas.either(
                _as_formula(condition), _as_formula(then), _as_formula(otherwise)
            )
        numbers = (_as_number(then), _as_number(otherwise))
        return self._formulas.choice(_as_formula(condition), *numbers, operation.kind)

    def _comparison(self, symbol: str, operands: list[Formula | Number]) -> Formula:
        left, right = operands
        if isinstance(left, Formula):
            other = _as_formula(right)
            opposite = self._formulas.negation(other)
            if symbol == "=":
                return self._formulas.either(left, other, opposite)
            return self._formulas.either(left, opposite, other)
        return self._formulas.compare(symbol, left, _as_number(right))


def _as_formula(node: Formula | Number) -> Formula:
    assert isinstance(node, Formula)
    return node


def _as_number(node: Formula | Number) -> Number:
    assert isinstance(node, Number)
    return node
