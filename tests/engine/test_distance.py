"""The distance to a condition is the one its module defines."""

from __future__ import annotations

import math

import pytest

from safetest_gym.engine.distance import LEAST, distance
from safetest_gym.jani.tree import (
    FALSE,
    TRUE,
    Call,
    Expression,
    Function,
    Kind,
    Literal,
    Operation,
    Parameter,
    Reference,
    Variable,
)

X = Variable("x", "int", -10, 10, 0)
R = Variable("r", "real", None, None, 0.0)
B = Variable("b", "bool", 0, 1, False)
VALUES = {X: 3, R: 1.5, B: False}
REFERENCES: dict[str, Expression] = {"x": Reference(X), "r": Reference(R), "b": Reference(B)}


def compare(name: str, operator: str, right: float, *, swapped: bool = False) -> Operation:
    kind: Kind = "int" if isinstance(right, int) else "real"
    sides = (REFERENCES[name], Literal(right, kind))
    return Operation(operator, sides[::-1] if swapped else sides, "bool")


def logic(operator: str, *operands: Expression) -> Operation:
    return Operation(operator, operands, "bool")


FAR = compare("x", "≤", 0)  # at 3
NEAR = compare("x", "=", 4)  # at 1
HOLDS = compare("x", "≤", 3)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (HOLDS, 0.0),
        (compare("x", "≤", 1), 2.0),
        (compare("x", "≤", 5, swapped=True), 2.0),
        (compare("x", "=", 5), 2.0),
        (compare("x", "≠", 3), 1.0),
        (compare("x", "<", 3), 1.0),
        (compare("x", "<", 1), 3.0),
        (compare("r", "<", 1.0), 0.5),
        (compare("r", "<", 1.5), LEAST),
        (compare("r", "<", 1), 0.5),
        (compare("r", "≠", 1.5), 1.0),
        (compare("x", "≤", -(10**400)), math.inf),
        (REFERENCES["b"], 1.0),
        (logic("=", REFERENCES["b"], TRUE), 1.0),
        (logic("≠", REFERENCES["b"], TRUE), 0.0),
        (TRUE, 0.0),
        (FALSE, math.inf),
    ],
)
def test_an_atom_is_as_far_as_its_sides_are_apart(condition: Expression, expected: float) -> None:
    assert distance(condition, VALUES) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (compare("x", "≤", 5), 3.0),
        (compare("x", "<", 5), 2.0),
        (compare("x", "=", 3), 1.0),
        (compare("x", "≠", 5), 2.0),
        (compare("r", "≤", 2.0), 0.5),
        (TRUE, math.inf),
        (FALSE, 0.0),
        (REFERENCES["b"], 0.0),
        (logic("¬", FAR), 3.0),
        (logic("∧", logic("¬", FAR), logic("¬", NEAR)), 1.0),
        (logic("∨", logic("¬", FAR), logic("¬", NEAR)), 4.0),
    ],
)
def test_negation_is_pushed_to_the_atoms(condition: Expression, expected: float) -> None:
    assert distance(logic("¬", condition), VALUES) == expected


def test_conjunctions_add_up_and_disjunctions_take_the_nearest() -> None:
    assert distance(logic("∧", FAR, NEAR, HOLDS), VALUES) == 4.0
    assert distance(logic("∨", FAR, NEAR, FALSE), VALUES) == 1.0


def test_ite_is_the_nearer_of_its_two_cases() -> None:
    condition = logic("ite", HOLDS, FAR, NEAR)
    assert distance(condition, VALUES) == 2.0  # x = 4 breaks the test and meets the second case
    assert distance(logic("ite", compare("x", "≤", 9), FAR, NEAR), VALUES) == 3.0


def test_a_function_is_as_far_as_its_body() -> None:
    limit = Parameter("limit", "int")
    body = Operation("≤", (REFERENCES["x"], limit), "bool")
    call = Call(Function("below", (limit,), "bool", body), (Literal(1, "int"),))
    assert distance(call, VALUES) == 2.0
    assert distance(logic("¬", call), VALUES) == 0.0


def test_an_atom_without_value_is_at_distance_1() -> None:
    zero = Operation("-", (REFERENCES["x"], Literal(3, "int")), "int")
    quotient = Operation("/", (Literal(6, "int"), zero), "real")
    undefined = Operation("<", (Literal(2, "int"), quotient), "bool")
    guarded = logic("∧", compare("x", "≠", 3), undefined)
    assert distance(guarded, VALUES) == 2.0
