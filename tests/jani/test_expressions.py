"""Expressions: kinds, folding, simplification."""

from __future__ import annotations

import math
from typing import Any

import pytest

from safetest_gym.engine.evaluation import evaluate
from safetest_gym.errors import JaniError
from safetest_gym.jani import format_expression, read_condition, read_model
from safetest_gym.jani.tree import Expression, Literal, Model, Operation, Reference
from tests.jani.small import binary, minimal_model, variable


@pytest.fixture(scope="module")
def model() -> Model:
    variables = [
        variable("x", 0, 9),
        variable("y", -5, 5),
        {"name": "b", "type": "bool", "initial-value": False},
        {"name": "c", "type": "bool", "initial-value": False},
        {"name": "r", "type": "real", "initial-value": 0},
    ]
    functions = [
        {
            "name": "half",
            "type": "real",
            "parameters": [{"name": "n", "type": "real"}],
            "body": binary("/", "n", 2),
        },
        {
            "name": "bad",
            "type": "real",
            "parameters": [],
            "body": binary("/", 1, binary("-", "x", "x")),
        },
    ]
    return read_model(minimal_model(variables=variables, functions=functions))


def compared(node: Any, model: Model) -> Expression:
    """The reader's version of a number, as the left side of a comparison with ``r``."""
    condition = read_condition(binary("=", node, "r"), model)
    assert isinstance(condition, Operation)
    return condition.operands[0]


def unary(symbol: str, operand: Any) -> dict[str, Any]:
    return {"op": symbol, "exp": operand}


FOLDED = [
    (binary("+", 1, 2), 3),
    (binary("-", 1, 2.5), -1.5),
    (binary("*", 10**30, 10**30), 10**60),
    (binary("/", 1, 3), 1 / 3),
    (binary("/", 7, 2), 3.5),
    (binary("%", -7, 3), 2),
    (binary("%", 7, -3), -2),
    (binary("pow", 2, 10), 1024),
    (binary("pow", 2, 0.5), math.sqrt(2)),
    (binary("pow", 2.0, -1), 0.5),
    (binary("log", 8, 2), 3.0),
    (binary("min", 3, 2.5), 2.5),
    (binary("max", 3, 2), 3),
    (unary("abs", -3), 3),
    (unary("abs", -3.5), 3.5),
    (unary("sgn", -0.5), -1),
    (unary("floor", -0.5), -1),
    (unary("ceil", 0.5), 1),
    (unary("trc", -1.5), -1),
    (unary("floor", 5), 5),
    (unary("cos", 0), 1.0),
    (unary("acot", 1), math.pi / 4),
    (unary("sech", 1000), 0.0),
    (unary("acsch", 1), math.asinh(1)),
    ({"constant": "e"}, math.e),
    ({"constant": "π"}, math.pi),
    ({"op": "ite", "if": True, "then": 1, "else": 2.5}, 1.0),
    ({"op": "call", "function": "half", "args": [3]}, 1.5),
]


@pytest.mark.parametrize(("node", "value"), FOLDED)
def test_operations_on_constants_are_evaluated(node: Any, value: Any, model: Model) -> None:
    found = compared(node, model)
    assert isinstance(found, Literal)
    assert found.value == pytest.approx(value, rel=1e-15) if isinstance(value, float) else value
    assert type(found.value) is type(value)
    assert found.kind == ("real" if isinstance(value, float) else "int")


def test_an_int_becomes_a_real_before_it_is_divided_as_it_does_in_a_state(model: Model) -> None:
    operands = (Literal(2**53 + 1, "int"), Literal(3, "int"))
    found = compared(binary("/", 2**53 + 1, 3), model)
    assert isinstance(found, Literal)
    assert found.value == evaluate(Operation("/", operands, "real"), {})


@pytest.mark.parametrize(
    "node",
    [
        binary("/", 1, 0),
        binary("%", 1, 0),
        binary("log", -1, 2),
        binary("log", 2, 1),
        binary("pow", 2, -1),
        binary("pow", 0.0, -1),
        binary("pow", -1.0, 0.5),
        binary("*", 1e300, 1e300),
        binary("+", 10**400, 0.5),
        binary("/", 10**400, 10**399),
        unary("asin", 2),
        unary("cot", 0),
        unary("cosh", 1e6),
    ],
)
def test_constants_without_a_value_are_errors_at_their_place(node: Any, model: Model) -> None:
    with pytest.raises(JaniError) as caught:
        read_condition(
            binary("∧", "b", binary("<", 0, 1)) | {"left": binary("<", node, "r")}, model
        )
    assert caught.value.path == "$.left.left"


@pytest.mark.parametrize(
    "condition",
    [
        binary("∧", False, binary("<", binary("/", 1, 0), "r")),
        binary("∨", True, binary("<", binary("/", 1, 0), "r")),
        binary("⇒", False, binary("<", binary("/", 1, 0), "r")),
        binary("<", {"op": "ite", "if": True, "then": 1, "else": binary("/", 1, 0)}, 2.5),
    ],
)
def test_constants_that_are_never_evaluated_need_no_value(condition: Any, model: Model) -> None:
    assert isinstance(read_condition(condition, model), Literal)


def test_a_constant_that_only_some_states_evaluate_is_left_to_them(model: Model) -> None:
    condition = binary("∧", binary("≠", "x", "x"), binary("<", binary("/", 1, 0), "r"))
    assert format_expression(read_condition(condition, model)) == "x ≠ x ∧ 1 / 0 < r"


SIMPLIFIED = [
    (binary("∧", True, "b"), "b"),
    (binary("∧", "b", True), "b"),
    (binary("∧", "b", False), "false"),
    (binary("∨", False, "b"), "b"),
    (binary("∨", "b", binary("∨", "c", "b")), "b ∨ c ∨ b"),
    (binary("∧", binary("∧", "b", "c"), binary("∧", "c", "b")), "b ∧ c ∧ c ∧ b"),
    (binary("⇒", "b", "c"), "¬b ∨ c"),
    (unary("¬", unary("¬", "b")), "b"),
    (binary("=", "b", True), "b"),
    (binary("=", False, "b"), "¬b"),
    (binary("≠", "b", True), "¬b"),
    (binary(">", "x", "y"), "y < x"),
    (binary("≥", "x", 3), "3 ≤ x"),
    ({"op": "ite", "if": False, "then": "b", "else": "c"}, "c"),
    (binary("<", binary("min", "x", binary("min", "y", 3)), 1), "min(x, y, 3) < 1"),
    (binary("<", binary("+", "x", binary("+", "y", "x")), 1), "x + y + x < 1"),
    (binary("<", binary("+", binary("+", "r", "x"), "y"), 1), "r + x + y < 1"),
    (binary("<", binary("+", "r", binary("+", "r", "y")), 1), "r + (r + y) < 1"),
    (binary("<", binary("*", binary("*", "x", "y"), "r"), 1), "x * y * r < 1"),
    (binary("<", unary("floor", "x"), 1), "x < 1"),
    (binary("<", binary("/", "x", binary("/", 2, "y")), 1), "x / (2 / y) < 1"),
]


@pytest.mark.parametrize(("node", "written"), SIMPLIFIED)
def test_simplification_keeps_the_meaning(node: Any, written: str, model: Model) -> None:
    assert format_expression(read_condition(node, model)) == written


def test_a_false_part_does_not_hide_what_may_fail_before_it(model: Model) -> None:
    node = binary("∧", binary("<", binary("/", 1, "x"), 2), False)
    assert format_expression(read_condition(node, model)) == "1 / x < 2 ∧ false"


def test_sums_of_ints_and_then_a_real_keep_the_integer_part_together(model: Model) -> None:
    node = compared(binary("+", binary("+", "x", "y"), "r"), model)
    assert isinstance(node, Operation)
    assert [operand.kind for operand in node.operands] == ["int", "real"]


@pytest.mark.parametrize(
    ("node", "kind"),
    [
        (binary("+", "x", "y"), "int"),
        (binary("+", "x", "r"), "real"),
        (binary("/", "x", "y"), "real"),
        (binary("pow", "x", "y"), "int"),
        (binary("pow", "x", "r"), "real"),
        (unary("sgn", "r"), "int"),
        (unary("floor", "r"), "int"),
        ({"op": "ite", "if": "b", "then": "x", "else": "r"}, "real"),
        ({"op": "call", "function": "half", "args": ["x"]}, "real"),
    ],
)
def test_kinds_follow_from_the_operands(node: Any, kind: str, model: Model) -> None:
    assert compared(node, model).kind == kind


def test_a_name_is_the_same_variable_everywhere(model: Model) -> None:
    node = compared(binary("-", "x", "x"), model)
    assert isinstance(node, Operation)
    left, right = node.operands
    assert isinstance(left, Reference)
    assert left is right


def test_all_errors_of_one_expression_are_found(model: Model) -> None:
    with pytest.raises(JaniError) as caught:
        read_condition(binary("∧", binary("<", "u", 1), binary("and", "b", "x")), model)
    paths = [error.path for error in caught.value.errors]  # type: ignore[attr-defined]
    assert paths == ["$.left.left", "$.right.op"]
