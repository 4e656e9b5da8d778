"""A hash of expressions that is the same in every process and sees sharing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from safetest_gym.jani.tree import (
    Call,
    Expression,
    Function,
    Literal,
    Operation,
    Parameter,
    Reference,
)

__all__ = ["fingerprint"]


def fingerprint(expressions: Sequence[Expression]) -> str:
    """Hex SHA-256 over the structure; variables and parameters count by name."""
    lines: list[str] = []
    numbers: dict[int, int] = {}
    for expression in expressions:
        lines.append(f"={_number(expression, numbers, lines)}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _number(node: Expression, numbers: dict[int, int], lines: list[str]) -> int:
    known = numbers.get(id(node))
    if known is not None:
        return known
    if isinstance(node, Literal):
        text = (
            f"{node.kind} {node.value!r}" if node.kind == "real" else f"{node.kind} {node.value:x}"
        )
    elif isinstance(node, Reference):
        text = f"@{node.variable.name}"
    elif isinstance(node, Parameter):
        text = f"${node.name}"
    else:
        parts = []
        for operand in node.operands if isinstance(node, Operation) else node.arguments:
            parts.append(_number(operand, numbers, lines))
        if isinstance(node, Call):
            parts.append(_function(node.function, numbers, lines))
        name = node.operator if isinstance(node, Operation) else "call"
        text = f"{name} {node.kind} {parts}"
    lines.append(text)
    numbers[id(node)] = len(lines)
    return len(lines)


def _function(function: Function, numbers: dict[int, int], lines: list[str]) -> int:
    known = numbers.get(id(function))
    if known is None:
        known = _number(function.body, numbers, lines)
        names = [(parameter.name, parameter.kind) for parameter in function.parameters]
        lines.append(f"{function.name}{names}{function.kind} {known}")
        known = numbers[id(function)] = len(lines)
    return known
