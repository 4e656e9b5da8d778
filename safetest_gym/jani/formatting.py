"""Write expressions as text that `safetest_gym.jani.text` reads back."""

from __future__ import annotations

from safetest_gym.jani.depth import deep_recursion
from safetest_gym.jani.numerals import integer_text
from safetest_gym.jani.text import CALLED, POWERS
from safetest_gym.jani.tokens import KEYWORDS, WORD
from safetest_gym.jani.tree import Call, Expression, Literal, Operation, Reference, Value

__all__ = ["format_expression"]

_LOOSE = POWERS["if"]


def format_expression(expression: Expression) -> str:
    """``expression`` in JANI's operators, with as few parentheses as needed."""
    pieces: list[str] = []
    with deep_recursion():
        _write(expression, _LOOSE, pieces)
    return "".join(pieces)


def _write(node: Expression, least: int, pieces: list[str]) -> None:
    """Append ``node``, in parentheses if it binds less strongly than ``least``."""
    if isinstance(node, Literal):
        pieces.append(_literal(node))
    elif isinstance(node, Reference):
        pieces.append(_name(node.variable.name))
    elif isinstance(node, Operation):
        if node.operator in CALLED:
            _write_call(node.operator, node.operands, pieces)
        else:
            _write_operation(node, least, pieces)
    elif isinstance(node, Call):
        name = node.function.name
        _write_call(_quoted(name) if name in CALLED else _name(name), node.arguments, pieces)
    else:
        pieces.append(_name(node.name))


def _write_operation(node: Operation, least: int, pieces: list[str]) -> None:
    power = POWERS[node.operator]
    if power < least:
        pieces.append("(")
    if node.operator == "¬":
        pieces.append("¬")
        _write(node.operands[0], POWERS["negative"], pieces)
    else:
        compares = power == POWERS["="] or power <= POWERS["∧"]
        strength = power + 1 if compares else power
        for index, operand in enumerate(node.operands):
            if index:
                pieces.append(f" {node.operator} ")
            location = _location(operand, node) if power == POWERS["="] else ""
            if location:
                pieces.append(location)
            else:
                _write(operand, strength, pieces)
            strength = power + 1
    if power < least:
        pieces.append(")")


def _location(operand: Expression, comparison: Operation) -> str:
    """The location's name, if the operand is the number of one."""
    if not isinstance(operand, Literal) or comparison.operator not in ("=", "≠"):
        return ""
    for other in comparison.operands:
        if isinstance(other, Reference) and other.variable.locations:
            names: dict[Value, str] = dict(enumerate(other.variable.locations))
            return _quoted(names[operand.value]) if operand.value in names else ""
    return ""


def _write_call(name: str, arguments: tuple[Expression, ...], pieces: list[str]) -> None:
    pieces.append(f"{name}(")
    for index, argument in enumerate(arguments):
        if index:
            pieces.append(", ")
        _write(argument, _LOOSE, pieces)
    pieces.append(")")


def _literal(literal: Literal) -> str:
    if literal.kind == "bool":
        return "true" if literal.value else "false"
    if isinstance(literal.value, int):
        return integer_text(literal.value) + (".0" if literal.kind == "real" else "")
    return repr(literal.value)


def _name(name: str) -> str:
    return name if WORD.fullmatch(name) and name not in KEYWORDS else _quoted(name)


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
