"""Build typed operations: check operand kinds, flatten, simplify, fold constants.

No simplification changes a value, nor whether there is one. Every reader of expressions
(JSON, text) builds its nodes here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from safetest_gym.jani.folding import NoValueError, apply
from safetest_gym.jani.operations import REAL_FUNCTIONS
from safetest_gym.jani.tree import FALSE, TRUE, Expression, Kind, Literal, Operation

__all__ = [
    "ARITY",
    "BROKEN",
    "CHAINS",
    "OperandError",
    "build",
    "build_sum",
    "fold_failed",
    "is_broken",
    "is_number",
]

_BROKEN_KIND: str = "broken"
BROKEN = Operation("broken", (), _BROKEN_KIND)  # type: ignore[arg-type]  # no kind fits
"""Stands for an expression whose errors are already reported."""

Operands = Sequence[Expression]


class OperandError(Exception):
    """An operand has the wrong kind.

    Attributes:
        index: which operand.
    """

    def __init__(self, index: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.index = index
        self.message = message
        self.hint = hint


class UnfoldedError(NoValueError):
    """Operands are literals but the operation has no value; ``operation`` keeps it."""

    def __init__(self, message: str, operation: Operation) -> None:
        super().__init__(message)
        self.operation = operation


def build(symbol: str, operands: Operands) -> Expression:
    """The simplified operation ``symbol`` (any of JANI's, derived ones included).

    Raises:
        OperandError: an operand's kind does not fit.
        UnfoldedError: the operands are constants the operator has no value for.
    """
    return _BUILDERS[symbol](symbol, operands)


def is_broken(node: Expression) -> bool:
    """Are the node's errors already reported?"""
    return node.kind == _BROKEN_KIND


def fold_failed(node: Expression) -> bool:
    """Is this an operation on literals alone, which has no value?"""
    if type(node) is not Operation or not node.operands:
        return False
    return all(type(operand) is Literal for operand in node.operands)


def is_number(node: Expression) -> bool:
    """Is the node an int or a real?"""
    return node.kind == "int" or node.kind == "real"


def _operation(symbol: str, operands: Operands, kind: Kind) -> Expression:
    """The operation, or its value if all operands are literals."""
    values = []
    for operand in operands:
        if type(operand) is not Literal:
            return Operation(symbol, tuple(operands), kind)
        values.append(operand.value)
    try:
        value = apply(symbol, kind, values)
    except NoValueError as error:
        operation = Operation(symbol, tuple(operands), kind)
        raise UnfoldedError(f"{symbol} has no value here: {error}", operation) from None
    if kind == "bool":
        return TRUE if value else FALSE
    return Literal(value, kind)


def _require_bools(symbol: str, operands: Operands) -> None:
    for index, operand in enumerate(operands):
        if operand.kind != "bool":
            message = f"{symbol} needs bool operands, this one is {operand.kind}"
            raise OperandError(index, message, "compare it with a value")


def _require_numbers(symbol: str, operands: Operands) -> None:
    for index, operand in enumerate(operands):
        if operand.kind != "int" and operand.kind != "real":
            raise OperandError(index, f"{symbol} needs numbers, this operand is {operand.kind}")


def _junction(symbol: str, operands: Operands) -> Expression:
    _require_bools(symbol, operands)
    decisive = symbol == "∨"
    kept: list[Expression] = []
    for operand in operands:
        if type(operand) is Literal:
            if operand.value is not decisive:
                continue
            if all(_is_total(other, 50) for other in kept):
                return operand
            kept.append(operand)
            break
        if type(operand) is Operation and operand.operator == symbol:
            kept.extend(operand.operands)
        else:
            kept.append(operand)
    if len(kept) < 2:
        return kept[0] if kept else (FALSE if decisive else TRUE)
    return Operation(symbol, tuple(kept), "bool")


_TOTAL = frozenset(("∧", "∨", "¬", "=", "≠", "<", "≤"))


def _is_total(node: Expression, budget: int) -> bool:
    """Has the expression a value in every state? It may say no although it has."""
    open_nodes: list[Expression] = [node]
    while open_nodes and budget > 0:
        budget -= 1
        item = open_nodes.pop()
        if isinstance(item, Operation):
            if item.operator not in _TOTAL:
                return False
            open_nodes.extend(item.operands)
        elif not isinstance(item, Literal) and not hasattr(item, "variable"):
            return False
    return not open_nodes


def _implication(symbol: str, operands: Operands) -> Expression:
    _require_bools(symbol, operands)
    return _junction("∨", (_negation("¬", operands[:1]), operands[1]))


def _negation(symbol: str, operands: Operands) -> Expression:
    _require_bools(symbol, operands)
    operand = operands[0]
    if type(operand) is Literal:
        return FALSE if operand.value else TRUE
    if type(operand) is Operation and operand.operator == "¬":
        return operand.operands[0]
    return Operation("¬", (operand,), "bool")


def _equality(symbol: str, operands: Operands) -> Expression:
    left, right = operands
    if left.kind == "bool" and right.kind == "bool":
        for constant, other in ((left, right), (right, left)):
            if type(constant) is Literal:
                same = constant.value is (symbol == "=")
                return other if same else _negation("¬", (other,))
        return Operation(symbol, (left, right), "bool")
    if not (is_number(left) and is_number(right)):
        message = f"{symbol} compares two bools or two numbers, not {left.kind} with {right.kind}"
        raise OperandError(1, message)
    return _operation(symbol, (left, right), "bool")


def _order(symbol: str, operands: Operands) -> Expression:
    _require_numbers(symbol, operands)
    left, right = operands
    if symbol == ">":
        return _operation("<", (right, left), "bool")
    if symbol == "≥":
        return _operation("≤", (right, left), "bool")
    return _operation(symbol, (left, right), "bool")


def _common_kind(operands: Operands) -> Kind:
    for operand in operands:
        if operand.kind != "int":
            return "real"
    return "int"


def build_sum(symbol: str, operands: Operands) -> Expression:
    """``+`` or ``*`` of operands that are all ints, or of two numbers."""
    _require_numbers(symbol, operands)
    kind = _common_kind(operands)
    spliced: list[Expression] = []
    for index, operand in enumerate(operands):
        if (
            type(operand) is Operation
            and operand.operator == symbol
            and operand.kind == kind
            and (kind == "int" or index == 0)
            and not fold_failed(operand)
        ):
            spliced.extend(operand.operands)
        else:
            spliced.append(operand)
    return _operation(symbol, spliced, kind)


def _difference(symbol: str, operands: Operands) -> Expression:
    _require_numbers(symbol, operands)
    return _operation(symbol, operands, _common_kind(operands))


def _extremum(symbol: str, operands: Operands) -> Expression:
    _require_numbers(symbol, operands)
    kind = _common_kind(operands)
    spliced: list[Expression] = []
    for operand in operands:
        nested = type(operand) is Operation and operand.operator == symbol
        if nested and operand.kind == kind and isinstance(operand, Operation):
            spliced.extend(operand.operands)
        else:
            spliced.append(operand)
    return _operation(symbol, spliced, kind)


def _modulo(symbol: str, operands: Operands) -> Expression:
    _require_numbers(symbol, operands)
    for index, operand in enumerate(operands):
        if operand.kind != "int":
            hint = "use floor or trc to get an int"
            raise OperandError(index, f"{symbol} needs ints, this operand is real", hint)
    return _operation(symbol, operands, "int")


def _real(symbol: str, operands: Operands) -> Expression:
    _require_numbers(symbol, operands)
    return _operation(symbol, operands, "real")


def _to_int(symbol: str, operands: Operands) -> Expression:
    _require_numbers(symbol, operands)
    operand = operands[0]
    if operand.kind == "int" and symbol != "sgn":
        return operand
    return _operation(symbol, operands, "int")


def _choice(symbol: str, operands: Operands) -> Expression:
    condition, then, otherwise = operands
    if condition.kind != "bool":
        raise OperandError(0, f"the condition of ite must be bool, it is {condition.kind}")
    kind = then.kind
    if then.kind != otherwise.kind:
        if not (is_number(then) and is_number(otherwise)):
            message = f"the branches of ite differ: {then.kind} and {otherwise.kind}"
            raise OperandError(2, message)
        kind = "real"
    if type(condition) is Literal:
        chosen = then if condition.value else otherwise
        if chosen.kind == kind:
            return chosen
        if type(chosen) is Literal:
            return _as_real(chosen, symbol)
    return Operation(symbol, (condition, then, otherwise), kind)


def _as_real(literal: Literal, symbol: str) -> Literal:
    try:
        return Literal(float(literal.value), "real")
    except OverflowError:
        message = "an int too large for a real"
        raise UnfoldedError(message, Operation(symbol, (TRUE, literal, literal), "real")) from None


ARITY: dict[str, int] = {
    "∧": 2, "∨": 2, "⇒": 2, "¬": 1, "=": 2, "≠": 2, "<": 2, "≤": 2, ">": 2, "≥": 2,
    "+": 2, "-": 2, "*": 2, "/": 2, "%": 2, "pow": 2, "log": 2, "min": 2, "max": 2,
    "abs": 1, "sgn": 1, "floor": 1, "ceil": 1, "trc": 1, "ite": 3,
    **dict.fromkeys(REAL_FUNCTIONS, 1),
}  # fmt: skip
"""Operands each operator takes in a document."""

CHAINS = frozenset(("∧", "∨", "+", "*", "min", "max"))
"""Operators that `build` takes any number of operands of (``+ *``: if all are ints)."""

_BUILDERS: dict[str, Callable[[str, Operands], Expression]] = {
    **dict.fromkeys(REAL_FUNCTIONS, _real),
    **dict.fromkeys(("∧", "∨"), _junction),
    **dict.fromkeys(("=", "≠"), _equality),
    **dict.fromkeys(("<", "≤", ">", "≥"), _order),
    **dict.fromkeys(("+", "*"), build_sum),
    **dict.fromkeys(("-", "pow", "abs"), _difference),
    **dict.fromkeys(("min", "max"), _extremum),
    **dict.fromkeys(("/", "log"), _real),
    **dict.fromkeys(("floor", "ceil", "trc", "sgn"), _to_int),
    "%": _modulo,
    "ite": _choice,
    "⇒": _implication,
    "¬": _negation,
}
