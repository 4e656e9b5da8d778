"""Expressions have the value that the tree's table gives them."""

from __future__ import annotations

import math

import pytest

from safetest_gym.engine.evaluation import INT_MAX, INT_MIN, evaluate
from safetest_gym.errors import EvaluationError
from safetest_gym.jani.tree import (
    Call,
    Expression,
    Function,
    Kind,
    Literal,
    Operation,
    Parameter,
    Reference,
    Value,
    Variable,
)

_COMPARISONS = ("=", "≠", "<", "≤")
_BOOLEAN = (*_COMPARISONS, "∧", "∨", "¬")
_TO_INT = ("%", "floor", "ceil", "trc", "sgn")
_SAME = ("+", "-", "*", "min", "max", "pow", "abs")


def literal(value: Value) -> Literal:
    kind: Kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "real"
    return Literal(value, kind)


def op(operator: str, *operands: Value | Expression) -> Operation:
    nodes = tuple(
        literal(operand) if isinstance(operand, bool | int | float) else operand
        for operand in operands
    )
    branches = nodes[1:] if operator == "ite" else nodes
    kinds = {node.kind for node in branches}
    kind: Kind = "real"
    if operator in _BOOLEAN or kinds == {"bool"}:
        kind = "bool"
    elif operator in _TO_INT or (operator in (*_SAME, "ite") and kinds == {"int"}):
        kind = "int"
    return Operation(operator, nodes, kind)


def value_of(operator: str, *operands: Value | Expression) -> Value:
    return evaluate(op(operator, *operands), {})


@pytest.mark.parametrize(
    ("operator", "operands", "expected"),
    [
        ("+", (1, 2, 3), 6),
        ("-", (1, 2), -1),
        ("*", (2, 3, -4), -24),
        ("min", (3, 1, 2), 1),
        ("max", (3, 1.5, 2), 3.0),
        ("%", (7, 3), 1),
        ("%", (-7, 3), 2),
        ("%", (7, -3), -2),
        ("%", (INT_MIN, -1), 0),
        ("pow", (-2, 63), INT_MIN),
        ("pow", (0, 0), 1),
        ("pow", (-1, INT_MAX), -1),
        ("pow", (2, 0.5), math.sqrt(2)),
        ("pow", (2.0, -1), 0.5),
        ("/", (1, 4), 0.25),
        ("log", (8, 2), math.log(8) / math.log(2)),
        ("abs", (-3,), 3),
        ("abs", (-3.5,), 3.5),
        ("sgn", (-3.5,), -1),
        ("sgn", (0,), 0),
        ("floor", (-1.5,), -2),
        ("ceil", (-1.5,), -1),
        ("trc", (-1.5,), -1),
        ("floor", (4,), 4),
        ("¬", (True,), False),
        ("ite", (True, 1, 2.5), 1.0),
        ("=", (True, False), False),
        ("≠", (True, False), True),
        ("<", (1, 1), False),
        ("≤", (1, 1.0), True),
        ("cot", (1,), 1 / math.tan(1)),
        ("sec", (1,), 1 / math.cos(1)),
        ("csc", (1,), 1 / math.sin(1)),
        ("acot", (-1,), 3 * math.pi / 4),
        ("asec", (2,), math.acos(0.5)),
        ("acsc", (2,), math.asin(0.5)),
        ("coth", (1,), 1 / math.tanh(1)),
        ("sech", (1000,), 0.0),
        ("csch", (-1000,), 0.0),
        ("acoth", (2,), math.atanh(0.5)),
        ("asech", (0.5,), math.acosh(2)),
        ("acsch", (0.5,), math.asinh(2)),
    ],
)
def test_operators_have_their_mathematical_value(
    operator: str, operands: tuple[Value, ...], expected: Value
) -> None:
    result = value_of(operator, *operands)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("operator", "operands"),
    [
        ("+", (INT_MAX, 1)),
        ("+", (INT_MAX, 1, -1)),
        ("-", (INT_MIN, 1)),
        ("*", (2**32, 2**31)),
        ("abs", (INT_MIN,)),
        ("pow", (2, 63)),
        ("pow", (10, 10**9)),
        ("pow", (2, -1)),
        ("pow", (1, -1)),
        ("pow", (0.0, -1.0)),
        ("pow", (-8.0, 0.5)),
        ("%", (1, 0)),
        ("/", (1, 0)),
        ("/", (1e308, 1e-10)),
        ("*", (1e200, 1e200)),
        ("log", (0, 2)),
        ("log", (-1, 2)),
        ("log", (2, 1)),
        ("log", (2, -2)),
        ("asin", (1.5,)),
        ("acosh", (0.5,)),
        ("cosh", (1000,)),
        ("cot", (0,)),
        ("asec", (0.5,)),
        ("acoth", (0,)),
        ("floor", (1e19,)),
        ("min", (2**63, 1)),
        ("+", (10**400, 0.5)),
    ],
)
def test_what_has_no_value_is_an_error(operator: str, operands: tuple[Value, ...]) -> None:
    with pytest.raises(EvaluationError):
        value_of(operator, *operands)


def test_comparisons_take_literals_of_any_size() -> None:
    assert value_of("<", INT_MAX, 10**400) is True
    assert value_of("<", 1e308, 10**400) is True
    assert value_of("≤", 10**400, -1e308) is False


def test_an_int_becomes_a_real_before_it_is_compared_with_one() -> None:
    assert value_of("=", 2**53 + 1, 2.0**53) is True
    assert value_of("=", 2**53 + 1, 2**53) is False


def test_real_sums_add_from_the_left() -> None:
    assert value_of("+", 1e16, 1.0, 1.0, -1e16) == 0.0
    assert value_of("+", -1e16, 1e16, 1.0, 1.0) == 2.0


def test_boolean_operators_and_ite_stop_early() -> None:
    undefined = op("<", op("/", 1, 0), 1)
    assert value_of("∧", False, undefined) is False
    assert value_of("∨", False, True, undefined) is True
    assert value_of("ite", True, 1, op("%", 1, 0)) == 1
    with pytest.raises(EvaluationError, match="division"):
        value_of("∨", False, undefined)


def test_functions_get_their_arguments_as_the_kinds_of_their_parameters() -> None:
    x, y = Parameter("x", "real"), Parameter("y", "int")
    half = Function("half", (x, y), "real", op("/", x, 2))
    assert evaluate(Call(half, (literal(3), literal(1))), {}) == 1.5


def test_arguments_are_evaluated_only_where_the_body_needs_them() -> None:
    x = Parameter("x", "real")
    constant = Function("constant", (x,), "int", literal(1))
    assert evaluate(Call(constant, (op("/", 1, 0),)), {}) == 1
    guarded = Function("guarded", (x,), "bool", op("∧", False, op("<", x, 1)))
    assert evaluate(Call(guarded, (op("/", 1, 0),)), {}) is False


def test_a_parameter_stands_for_an_argument_that_has_parameters_itself() -> None:
    x, y = Parameter("x", "int"), Parameter("x", "int")
    inner = Function("inner", (x,), "int", op("*", x, 2))
    outer = Function("outer", (y,), "int", Call(inner, (op("+", y, 1),)))
    assert evaluate(Call(outer, (Call(inner, (literal(5),)),)), {}) == 22


def test_a_function_of_real_kind_turns_an_int_body_into_a_real() -> None:
    result = evaluate(Call(Function("one", (), "real", literal(1)), ()), {})
    assert isinstance(result, float)


def test_references_have_the_value_of_their_variable() -> None:
    x = Variable("x", "real", None, None, None)
    assert evaluate(op("+", Reference(x), 1), {x: 2}) == 3.0
    with pytest.raises(EvaluationError, match="'x'"):
        evaluate(Reference(x), {})


def test_an_expression_50_000_levels_deep_has_a_value() -> None:
    expression: Expression = literal(0)
    for _ in range(50_000):
        expression = op("-", expression, 1)
    assert evaluate(expression, {}) == -50_000
