"""The distance to a condition ([J] section 5) as an expression that can be compiled.

`safetest_gym.engine.distance` has the definition; here it becomes a tree over the state.
"""

from __future__ import annotations

from functools import reduce

from safetest_gym.engine.distance import LEAST
from safetest_gym.engine.rewrite import ATTEMPT, Inliner, as_kind
from safetest_gym.jani.tree import Expression, Literal, Operation

__all__ = ["distance_expression"]

_ZERO, _ONE = Literal(0.0, "real"), Literal(1.0, "real")
_SWAPPED = {"∧": "∨", "∨": "∧"}


def distance_expression(condition: Expression) -> Expression | None:
    """How far a state is from satisfying ``condition``; None if it never can."""
    return _distance(Inliner().plain(condition), False)


def _distance(condition: Expression, negated: bool) -> Expression | None:
    if isinstance(condition, Literal):
        return _ZERO if condition.value is not negated else None
    if isinstance(condition, Operation):
        operator = condition.operator
        if operator == "¬":
            return _distance(condition.operands[0], not negated)
        if operator in ("∧", "∨"):
            parts = []
            for operand in condition.operands:
                parts.append(_distance(operand, negated))
            return _combined(_SWAPPED[operator] if negated else operator, parts)
        if operator == "ite":
            test, then, otherwise = condition.operands
            first = _combined("∧", [_distance(test, False), _distance(then, negated)])
            second = _combined("∧", [_distance(test, True), _distance(otherwise, negated)])
            return _combined("∨", [first, second])
    return _atom(condition, negated)


def _combined(operator: str, parts: list[Expression | None]) -> Expression | None:
    known = [part for part in parts if part is not None]
    if not known or (operator == "∧" and len(known) < len(parts)):
        return None
    name = "+" if operator == "∧" else "min"
    return reduce(lambda a, b: Operation(name, (a, b), "real"), known)


def _atom(atom: Expression, negated: bool) -> Expression:
    holds: Expression = Operation("¬", (atom,), "bool") if negated else atom
    violation: Expression = _ONE
    if isinstance(atom, Operation) and atom.operator in ("=", "<", "≤"):
        left, right = atom.operands
        strict = (atom.operator == "<") is not negated
        plain_equality = atom.operator == "=" and not negated and left.kind != "bool"
        if plain_equality or atom.operator in ("<", "≤"):
            gap = Operation("-", (as_kind(left, "real"), as_kind(right, "real")), "real")
            size: Expression = Operation("abs", (gap,), "real")
            if atom.operator != "=" and strict and left.kind == right.kind == "int":
                size = Operation("+", (size, _ONE), "real")
            violation = Operation("max", (size, Literal(LEAST, "real")), "real")
    elif isinstance(atom, Operation) and atom.operator == "≠" and negated:
        left, right = atom.operands
        if left.kind != "bool":
            gap = Operation("-", (as_kind(left, "real"), as_kind(right, "real")), "real")
            size = Operation("abs", (gap,), "real")
            violation = Operation("max", (size, Literal(LEAST, "real")), "real")
    measured = Operation("ite", (holds, _ZERO, violation), "real")
    return Operation(ATTEMPT, (measured, _ONE), "real")
