"""Read JANI expressions: resolve names, check kinds, fold constants.

The recursion is plain Python (see `safetest_gym.jani.depth`); `Reader` methods are meant
to be called inside `deep_recursion`.
"""

from __future__ import annotations

import math
from typing import Any

from safetest_gym.jani import folding
from safetest_gym.jani.hints import misplaced_operator, operator_hint
from safetest_gym.jani.operators import (
    ARITY,
    BROKEN,
    CHAINS,
    OperandError,
    UnfoldedError,
    build,
    fold_failed,
    is_broken,
    is_number,
)
from safetest_gym.jani.reporting import Place, Report, Shape, describe, quote
from safetest_gym.jani.scope import Scope
from safetest_gym.jani.tree import (
    FALSE,
    TRUE,
    Call,
    Expression,
    Function,
    Kind,
    Literal,
    Operation,
    Value,
)

__all__ = ["CONSTANTS", "EXPRESSION", "Reader"]

EXPRESSION = Shape("an expression", ("exp",))
"""``{"exp": …}``, as guards and the like are written."""

_CALL = Shape("a function call", ("op", "function", "args"))
_CONSTANT = Shape("a constant", ("constant",))
CONSTANTS = {"e": math.e, "π": math.pi, "pi": math.pi}
_KEYS = {1: ("exp",), 2: ("left", "right"), 3: ("if", "then", "else")}
_SHAPES = {
    symbol: Shape(f"the operation {symbol}", ("op", *_KEYS[arity]))
    for symbol, arity in ARITY.items()
}


class Reader:
    """Reads the expressions of one scope."""

    __slots__ = ("_ints", "_names", "_unfolded", "report", "scope")

    def __init__(self, scope: Scope, report: Report) -> None:
        self.scope = scope
        self.report = report
        self._names = scope.names
        self._ints: dict[int, Literal] = {}
        self._unfolded: dict[Expression, tuple[Place, str]] = {}

    def read(self, data: Any, place: Place, kind: Kind | None = None) -> Expression:
        """The expression ``data``, of ``kind`` if that is given (an int is fine as a real).

        Errors are reported; the result's kind is then ``broken``.
        """
        return self.finish(self._read(data, place), place, kind)

    def finish(self, node: Expression, place: Place, kind: Kind | None = None) -> Expression:
        """``node`` as a whole expression: its constants have values and its kind fits."""
        if self._unfolded and self._report_unfolded(node):
            return BROKEN
        return node if kind is None else self.require(node, kind, place)

    def require(self, node: Expression, kind: Kind, place: Place) -> Expression:
        """``node`` if it can be used as ``kind``."""
        if node.kind == kind or (kind == "real" and node.kind == "int"):
            return node
        if not is_broken(node):
            hint = ""
            if kind == "int" and node.kind == "real":
                hint = "floor, ceil or trc make an int of a real"
            elif kind == "bool":
                hint = "compare it with a value"
            self.report.add(
                place, f"expected {_ARTICLES[kind]}, found {_ARTICLES[node.kind]}", hint
            )
        return BROKEN

    def constant(self, data: Any, place: Place, kind: Kind) -> Value | None:
        """The value of a constant expression, as ``kind``; None if it has errors."""
        node = self.read(data, place, kind)
        if is_broken(node):
            return None
        if type(node) is not Literal:
            self.report.add(place, "expected a constant expression, this one needs the state")
            return None
        if kind == "real" and node.kind == "int":
            try:
                return float(node.value)
            except OverflowError:
                self.report.add(place, f"{describe(node.value)} is too large for a real")
                return None
        return node.value

    def _read(self, data: Any, place: Place) -> Expression:
        kind = type(data)
        if kind is str:
            found = self._names.get(data)
            if found is None:
                found = self.scope.name(data, place, self.report)
            return BROKEN if found is None else found
        if kind is dict:
            return self._object(data, place)
        if kind is int:
            literal = self._ints.get(data)
            if literal is None:
                literal = self._ints[data] = Literal(data, "int")
            return literal
        if kind is bool:
            return TRUE if data else FALSE
        if kind is float:
            return Literal(data, "real")
        self.report.add(place, f"expected an expression, found {describe(data)}")
        return BROKEN

    def _object(self, data: dict[str, Any], place: Place) -> Expression:
        symbol = data.get("op")
        if type(symbol) is not str:
            return self._without_operator(data, place)
        arity = ARITY.get(symbol)
        if arity is None:
            return self._call(data, place) if symbol == "call" else self._unknown(symbol, place)
        if not self._well_formed(data, symbol, arity, place):
            return BROKEN
        if symbol in CHAINS and (
            _is_operation(data["left"], symbol) or _is_operation(data["right"], symbol)
        ):
            return self._chain(symbol, data, place)
        operands: list[Expression] = []
        places: list[Place] = []
        for key in _KEYS[arity]:
            at = (place, key)
            places.append(at)
            operands.append(self._read(data[key], at))
        return self.operation(symbol, operands, place, places)

    def _well_formed(self, data: dict[str, Any], symbol: str, arity: int, place: Place) -> bool:
        if len(data) == arity + 1:
            for key in _KEYS[arity]:
                if key not in data:
                    break
            else:
                return True
        return self.report.take_object(data, place, _SHAPES[symbol]) is not None

    def _chain(self, symbol: str, data: dict[str, Any], place: Place) -> Expression:
        """Read nested operations of one associative operator without recursion."""
        leaves: list[Expression] = []
        places: list[Place] = []
        steps: list[Place | None] = []  # postfix: None is the next leaf, a place combines two
        stack: list[tuple[Any, Place, bool]] = [(data, place, True)]
        all_ints = True
        while stack:
            node, at, is_open = stack.pop()
            if not is_open:
                steps.append(at)
            elif (
                type(node) is dict
                and node.get("op") == symbol
                and (node is data or self._well_formed(node, symbol, 2, at))
            ):
                stack.append((node, at, False))
                stack.append((node["right"], (at, "right"), True))
                stack.append((node["left"], (at, "left"), True))
            else:
                leaf = BROKEN if _is_operation(node, symbol) else self._read(node, at)
                all_ints = all_ints and leaf.kind == "int"
                leaves.append(leaf)
                places.append(at)
                steps.append(None)
        if all_ints or symbol not in ("+", "*"):
            return self.operation(symbol, leaves, place, places)
        return self._combine(symbol, leaves, places, steps)

    def _combine(
        self,
        symbol: str,
        leaves: list[Expression],
        places: list[Place],
        steps: list[Place | None],
    ) -> Expression:
        """Build sums that are not all ints as the document nests them.

        Sums of reals that only grow to the right are kept as lists until they are complete.
        """
        results: list[tuple[Expression | list[Expression], Place]] = []
        rest = iter(zip(leaves, places, strict=True))
        for at in steps:
            if at is None:
                results.append(next(rest))
                continue
            (last, right_place), (first, left_place) = results.pop(), results.pop()
            right = _completed(symbol, last)
            if isinstance(first, list) and is_number(right):
                first.append(right)
                results.append((first, at))
                continue
            left = _completed(symbol, first)
            node = self.operation(symbol, [left, right], at, [left_place, right_place])
            if type(node) is Operation and _grows(node, symbol):
                results.append((list(node.operands), at))
            else:
                results.append((node, at))
        return _completed(symbol, results[0][0])

    def operation(
        self, symbol: str, operands: list[Expression], place: Place, places: list[Place]
    ) -> Expression:
        """A checked operation; errors are reported at ``place`` or an operand's place."""
        try:
            node = build(symbol, operands)
        except OperandError as error:
            if not any(is_broken(operand) for operand in operands):
                self.report.add(places[error.index], error.message, error.hint)
            return BROKEN
        except UnfoldedError as error:
            self._unfolded[error.operation] = (place, str(error))
            return error.operation
        return BROKEN if is_broken(node) else node

    def _call(self, data: dict[str, Any], place: Place) -> Expression:
        checked = self.report.take_object(data, place, _CALL)
        if checked is None:
            return BROKEN
        name, at = checked["function"], (place, "function")
        if not isinstance(name, str):
            self.report.add(at, f"expected the name of a function, found {describe(name)}")
            return BROKEN
        function = self.scope.function(name, at, self.report)
        arguments: list[Expression] = []
        args_place = (place, "args")
        places: list[Place] = []
        for index, item in enumerate(
            self.report.take_list(checked["args"], args_place, "arguments")
        ):
            places.append((args_place, index))
            arguments.append(self._read(item, places[-1]))
        if function is None or not isinstance(checked["args"], list):
            return BROKEN
        return self.call(function, arguments, place, places)

    def call(
        self, function: Function, arguments: list[Expression], place: Place, places: list[Place]
    ) -> Expression:
        """A checked call, folded if all arguments are literals."""
        if is_broken(function.body):
            return BROKEN
        wanted = len(function.parameters)
        if len(arguments) != wanted:
            self.report.add(
                place,
                f"function {quote(function.name)} has {wanted} parameters, "
                f"here are {len(arguments)} arguments",
            )
            return BROKEN
        broken = False
        for argument, parameter, at in zip(arguments, function.parameters, places, strict=True):
            if is_broken(self.require(argument, parameter.kind, at)):
                broken = True
        if broken:
            return BROKEN
        node = Call(function, tuple(arguments))
        values = [argument.value for argument in arguments if type(argument) is Literal]
        if len(values) < len(arguments):
            return node
        try:
            value = folding.call(function, values)
        except folding.NoValueError as error:
            message = f"calling {quote(function.name)} has no value here: {error}"
            self._unfolded[node] = (place, message)
            return node
        return node if value is None else Literal(value, function.kind)

    def _without_operator(self, data: dict[str, Any], place: Place) -> Expression:
        if "constant" in data and "op" not in data:
            checked = self.report.take_object(data, place, _CONSTANT)
            name = self.report.take_choice(
                data["constant"], (place, "constant"), "constant", CONSTANTS
            )
            if checked is None or name is None:
                return BROKEN
            return Literal(CONSTANTS[name], "real")
        if "distribution" in data:
            self.report.add(place, "sampling from a distribution is not supported")
        elif "op" in data:
            message = f"expected an operator, found {describe(data['op'])}"
            self.report.add((place, "op"), message)
        else:
            hint = 'write the expression itself, without {"exp": …}' if "exp" in data else ""
            self.report.add(place, "expected an expression, found an object without 'op'", hint)
        return BROKEN

    def _unknown(self, symbol: str, place: Place) -> Expression:
        at = (place, "op")
        if message := misplaced_operator(symbol):
            self.report.add(at, message)
        else:
            self.report.add(at, f"unknown operator {quote(symbol)}", operator_hint(symbol))
        return BROKEN

    def _report_unfolded(self, root: Expression) -> bool:
        """Report constants without a value, except where ``∧ ∨ ite`` may not come to them."""
        stack, seen, found = [root], {root}, False
        while stack:
            node = stack.pop()
            operands: tuple[Expression, ...] = ()
            if node in self._unfolded:
                found = True
                self.report.add(*self._unfolded[node])
            elif isinstance(node, Operation):
                lazy = node.operator in ("∧", "∨", "ite")
                operands = node.operands[:1] if lazy else node.operands
            elif isinstance(node, Call):
                operands = node.arguments
            for operand in operands:
                if operand not in seen:
                    seen.add(operand)
                    stack.append(operand)
        self._unfolded.clear()
        return found


_ARTICLES = {"bool": "a bool", "int": "an int", "real": "a real"}


def _grows(node: Operation, symbol: str) -> bool:
    return node.operator == symbol and node.kind == "real" and not fold_failed(node)


def _completed(symbol: str, node: Expression | list[Expression]) -> Expression:
    return Operation(symbol, tuple(node), "real") if isinstance(node, list) else node


def _is_operation(data: Any, symbol: str) -> bool:
    return type(data) is dict and data.get("op") == symbol
