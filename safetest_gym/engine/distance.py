"""How far a state is from satisfying a condition: [J] section 5, made precise.

The condition is brought to negation normal form: ``¬`` is pushed down to the atoms (so ``∧``
and ``∨``, ``<`` and ``≤``, ``=`` and ``≠`` change places), ``ite(c, a, b)`` is read as
``(c ∧ a) ∨ (¬c ∧ b)``, and function calls are replaced by their bodies, parameters by their
arguments. Then

- a satisfied atom is at distance 0, a conjunction at the sum (from the left) of its parts'
  distances, a disjunction at their minimum;
- a violated ``l ≤ r`` or ``l = r`` is at ``|l - r|``, a violated ``l < r`` at ``|l - r| + 1`` if
  both sides are ints, else at ``|l - r|``; both sides become reals before they are subtracted,
  and the result is at least `LEAST`;
- a violated ``≠``, or bool atom (a variable, ``=`` and ``≠`` between bools) is at 1;
- the literal ``false`` is infinitely far;
- an atom that cannot be evaluated is at 1: no part is skipped, so conditions that guard their own
  parts (``x ≠ 0 ∧ 6 / x > 2``) have a distance everywhere.

So where a condition has a value, its distance is 0 exactly where it holds.
"""

from __future__ import annotations

import math

from safetest_gym.engine.evaluation import Parameters, Values, bind, evaluate
from safetest_gym.errors import EvaluationError
from safetest_gym.jani.depth import deep_recursion
from safetest_gym.jani.operations import comparable, compare
from safetest_gym.jani.tree import (
    Call,
    Expression,
    Literal,
    Operation,
    Parameter,
)

__all__ = ["LEAST", "distance"]

LEAST = 1e-9
"""Least distance of a violated comparison, so that violated is never 0."""

_NEGATED = {"=": "≠", "≠": "=", "<": "≤", "≤": "<"}


def distance(condition: Expression, values: Values) -> float:
    """Distance of ``condition`` under ``values``, as the module defines it."""
    with deep_recursion():
        return _distance(condition, False, values, {})


def _distance(
    condition: Expression, negated: bool, values: Values, parameters: Parameters
) -> float:
    if isinstance(condition, Call):
        inner = bind(condition, parameters)
        return _distance(condition.function.body, negated, values, inner)
    if isinstance(condition, Parameter):
        argument = parameters[condition]
        return _distance(argument.expression, negated, values, argument.parameters)
    if isinstance(condition, Literal):
        return math.inf if bool(condition.value) is negated else 0.0
    if isinstance(condition, Operation):
        if condition.operator == "¬":
            return _distance(condition.operands[0], not negated, values, parameters)
        if condition.operator in ("∧", "∨"):
            conjunction = (condition.operator == "∧") is not negated
            total, least = 0.0, math.inf
            for operand in condition.operands:
                part = _distance(operand, negated, values, parameters)
                total, least = total + part, min(least, part)
            return total if conjunction else least
        if condition.operator == "ite":
            test, then, otherwise = condition.operands
            return min(
                _distance(test, False, values, parameters)
                + _distance(then, negated, values, parameters),
                _distance(test, True, values, parameters)
                + _distance(otherwise, negated, values, parameters),
            )
    try:
        return _atom(condition, negated, values, parameters)
    except EvaluationError:
        return 1.0


def _atom(atom: Expression, negated: bool, values: Values, parameters: Parameters) -> float:
    if not isinstance(atom, Operation) or atom.operands[0].kind == "bool":
        return 0.0 if bool(evaluate(atom, values, parameters)) is not negated else 1.0
    left_side, right_side = atom.operands
    left = evaluate(left_side, values, parameters)
    right = evaluate(right_side, values, parameters)
    if compare(atom.operator, left, right) is not negated:
        return 0.0
    violated = _NEGATED[atom.operator] if negated else atom.operator
    if violated == "≠":
        return 1.0
    gap = abs(comparable(left) - comparable(right))
    if violated == "<" and left_side.kind == right_side.kind == "int":
        gap += 1.0
    return max(LEAST, gap)
