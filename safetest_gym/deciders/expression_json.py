"""Expressions as JANI's JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from safetest_gym.errors import ConfigError
from safetest_gym.jani.tree import Call, Expression, Literal, Operation, Reference

__all__ = ["JsonWriter", "conjunction", "disjunction", "negation"]

Json = Any


class JsonWriter:
    """Writes expressions over the variables that ``names`` has new names for."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def write(self, node: Expression) -> Json:
        """JSON data; shared parts are written again."""
        if isinstance(node, Literal):
            return node.value
        if isinstance(node, Reference):
            name = node.variable.name
            if name not in self._names:
                raise ConfigError(f"{name} is no global variable, so no property may read it")
            return self._names[name]
        if isinstance(node, Operation):
            return _operation(node.operator, [self.write(part) for part in node.operands])
        if isinstance(node, Call):
            arguments = [self.write(part) for part in node.arguments]
            return {"op": "call", "function": node.function.name, "args": arguments}
        raise ConfigError(f"{node} cannot be exported")


def _operation(operator: str, parts: list[Json]) -> Json:
    if len(parts) == 1:
        return {"op": operator, "exp": parts[0]}
    if operator == "ite":
        return dict(zip(("op", "if", "then", "else"), ("ite", *parts), strict=True))
    return _balanced(operator, parts)


def _balanced(operator: str, parts: Sequence[Json]) -> Json:
    """Binary operations, nested no deeper than needed."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    left, right = _balanced(operator, parts[:half]), _balanced(operator, parts[half:])
    return {"op": operator, "left": left, "right": right}


def conjunction(parts: Sequence[Json]) -> Json:
    """All of them; true for none."""
    return _balanced("∧", parts) if parts else True


def disjunction(parts: Sequence[Json]) -> Json:
    """One of them; false for none."""
    return _balanced("∨", parts) if parts else False


def negation(part: Json) -> Json:
    """Not that."""
    return {"op": "¬", "exp": part}
