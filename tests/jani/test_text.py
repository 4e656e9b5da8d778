"""Conditions as text, and expressions written as text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetest_gym.errors import JaniError
from safetest_gym.jani import format_expression, parse_expression, read_condition, read_model
from safetest_gym.jani.depth import MAX_DEPTH
from safetest_gym.jani.tree import Expression, Model, Operation
from tests.jani.small import binary, minimal_model, variable

NAMES = ("x", "y", "hand-empty", "a.b", "and", "it's")


def make_model() -> Model:
    variables = [variable(name, -9, 9) for name in NAMES]
    for name in ("b", "c"):
        variables.append({"name": name, "type": "bool", "initial-value": False})
    variables.append({"name": "r", "type": "real", "initial-value": 0})
    twice = {
        "name": "twice",
        "type": "int",
        "parameters": [{"name": "n", "type": "int"}],
        "body": binary("*", 2, "n"),
    }
    document = minimal_model(variables=variables, functions=[twice])
    document["automata"][0]["locations"] += [{"name": "far-away"}, {"name": "x y"}]
    return read_model(document)


MODEL = make_model()


READINGS = [
    ("x <= -1 and y == 3", "x ≤ -1 ∧ y = 3"),
    ("x ≤ -1 ∧ y = 3", "x ≤ -1 ∧ y = 3"),
    ("x<=-1&&y==3", "x ≤ -1 ∧ y = 3"),
    ("not b or c", "¬b ∨ c"),
    ("!b || c", "¬b ∨ c"),
    ("b -> c", "¬b ∨ c"),
    ("b => c => b", "¬b ∨ ¬c ∨ b"),
    ("b ⇒ c", "¬b ∨ c"),
    ("not x == 1", "¬(x = 1)"),
    ("x != 1", "x ≠ 1"),
    ("x > 1", "1 < x"),
    ("0 <= x < 5", "0 ≤ x ∧ x < 5"),
    ("x = y = 3", "x = y ∧ y = 3"),
    ("x + 2 * y - 1 < 0", "x + 2 * y - 1 < 0"),
    ("(x + 2) * y < 0", "(x + 2) * y < 0"),
    ("x - (y - 1) < 0", "x - (y - 1) < 0"),
    ("x - y - 1 < 0", "x - y - 1 < 0"),
    ("-x < 0", "0 - x < 0"),
    ("-x ** 2 < 0", "0 - pow(x, 2) < 0"),
    ("2 ** 3 ** 2 < x", "512 < x"),
    ("x ** -1 < r", "pow(x, -1) < r"),
    ("x % 3 = 1", "x % 3 = 1"),
    ("x / y < 1e-3", "x / y < 0.001"),
    ("r < .5", "r < 0.5"),
    ("min(x, y, 3) < abs(x)", "min(x, y, 3) < abs(x)"),
    ("floor(r) = ceil(r)", "floor(r) = ceil(r)"),
    ("log(r, 2) < sin(r)", "log(r, 2) < sin(r)"),
    ("twice(x) = 4", "twice(x) = 4"),
    ("twice(2) = x", "4 = x"),
    ("x < 3 if b else c", "ite(b, x < 3, c)"),
    ("(1 if b else 2) < x", "ite(b, 1, 2) < x"),
    ("ite(b, 1, 2) < x", "ite(b, 1, 2) < x"),
    ("True and b", "b"),
    ("false or b", "b"),
    ("b == true", "b"),
    ("hand-empty == 1", "hand-empty = 1"),
    ("hand-empty-1 == x", "hand-empty - 1 = x"),
    ("x-1 == y", "x - 1 = y"),
    ("x -y < 1", "x - y < 1"),
    ("a.b == 1", "a.b = 1"),
    ("'and' == 1", "'and' = 1"),
    ('"it\'s" == 1', "'it\\'s' = 1"),
    ("A.location == far-away", "A.location = 'far-away'"),
    ("'x y' != A.location", "'x y' ≠ A.location"),
    ("A.location == 1", "A.location = 'far-away'"),
    ("r < π", "r < 3.141592653589793"),
    ("r < e", "r < 2.718281828459045"),
    ("+x < 1", "x < 1"),
]


@pytest.mark.parametrize(("text", "written"), READINGS)
def test_texts_mean_what_they_say(text: str, written: str) -> None:
    assert format_expression(read_condition(text, MODEL)) == written


MISTAKES = [
    ("x <> 1", 3, "'≠'"),
    ("x =< 1", 3, "'≤'"),
    ("b & c", 3, "'∧'"),
    ("x ^ 2 < 1", 3, "'pow'"),
    ("xx < 1", 1, "unknown identifier 'xx'"),
    ("x < 1 and y", 11, "∧ needs bool"),
    ("x", 1, "a bool"),
    ("x < ", 5, "found the end"),
    ("", 1, "found the end"),
    ("(x < 1", 7, "expected ')'"),
    ("x < 1)", 6, "expected an operator"),
    ("x 1", 3, "expected an operator"),
    ("hand-emty == 1", 1, "did you mean 'hand-empty'"),
    ("min(x) < 1", 1, "2 arguments"),
    ("log(r) < 1", 1, "log(x, base)"),
    ("twice(x, y) = 1", 1, "1 parameters"),
    ("twcie(x) = 1", 1, "'twice'"),
    ("twice(0.5) = 1", 7, "an int"),
    ("A.location == nowhere", 15, "no value 'nowhere'"),
    ("A.location == far-awya", 15, "did you mean 'far-away'"),
    ("'open", 1, "quotation mark"),
    ("1 / 0 < r", 3, "division by zero"),
    ("b == 1", 6, "bool"),
    ("x < 1e999", 5, "too large"),
    ("__import__('os')", 1, "unknown function"),
    ("x < 1; y", 6, "unexpected ';'"),
    ("x === 1", 3, "'='"),
    ("b if c", 7, "'else'"),
    ("x is 3", 3, "expected an operator"),
]


@pytest.mark.parametrize(("text", "column", "word"), MISTAKES)
def test_mistakes_are_errors_at_their_column(text: str, column: int, word: str) -> None:
    with pytest.raises(JaniError) as caught:
        read_condition(text, MODEL)
    assert caught.value.path == f"text:{column}"
    assert word in str(caught.value)


def test_several_unknown_names_are_told_at_once() -> None:
    with pytest.raises(JaniError) as caught:
        read_condition("u < 1 and v < 1", MODEL)
    assert [e.path for e in caught.value.errors] == ["text:1", "text:11"]  # type: ignore[attr-defined]


def test_expressions_may_be_numbers_too() -> None:
    assert parse_expression("x + 1", MODEL).kind == "int"
    with pytest.raises(JaniError):
        parse_expression("b", MODEL, "real")


def test_deep_parentheses_are_fine_and_absurd_ones_an_error() -> None:
    assert format_expression(read_condition("(" * 5_000 + "b" + ")" * 5_000, MODEL)) == "b"
    with pytest.raises(JaniError, match="nested"):
        read_condition("(" * (MAX_DEPTH + 1) + "b", MODEL)


def test_long_texts_are_read_quickly_enough_to_notice_nothing() -> None:
    text = " and ".join(f"x + {i} != y" for i in range(5_000))
    node = read_condition(text, MODEL)
    assert isinstance(node, Operation)
    assert len(node.operands) == 5_000


NUMBERS = st.recursive(
    st.integers(-3, 10**30) | st.floats(-5, 5) | st.sampled_from([*NAMES, "r"]),
    lambda n: st.one_of(
        st.builds(binary, st.sampled_from(["+", "-", "*", "min", "max"]), n, n),
        st.builds(lambda e: {"op": "floor", "exp": e}, n),
        st.builds(
            lambda i, a, b: {"op": "ite", "if": binary("<", i, 1), "then": a, "else": b}, n, n, n
        ),
        st.builds(
            lambda e: {"op": "call", "function": "twice", "args": [{"op": "trc", "exp": e}]}, n
        ),
    ),
    max_leaves=8,
)
CONDITIONS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(["b", "c", True, False])
    | st.builds(binary, st.sampled_from(["=", "≠", "<", "≤", ">", "≥"]), NUMBERS, NUMBERS),
    lambda p: (
        st.builds(binary, st.sampled_from(["∧", "∨", "⇒", "=", "≠"]), p, p)
        | st.builds(lambda e: {"op": "¬", "exp": e}, p)
        | st.builds(lambda i, a, b: {"op": "ite", "if": i, "then": a, "else": b}, p, p, p)
    ),
    max_leaves=6,
)


@given(condition=CONDITIONS)
def test_what_is_written_is_read_back_the_same(condition: Any) -> None:
    node = read_condition(condition, MODEL)
    assert same(node, parse_expression(format_expression(node), MODEL))


@given(text=st.text(alphabet=" xybr01.()<>=&|!-+*/%'\"∧¬⇒,ifelsanotd", max_size=25))
def test_random_texts_are_conditions_or_errors(text: str) -> None:
    try:
        assert read_condition(text, MODEL).kind == "bool"
    except JaniError as error:
        assert error.path.startswith("text:") or error.source  # noqa: PT017 - both are fine


def same(left: Expression, right: Expression) -> bool:
    """Equal structure, kinds and values."""
    if type(left) is not type(right) or left.kind != right.kind:
        return False
    ours, theirs = getattr(left, "value", None), getattr(right, "value", None)
    if (repr(ours), getattr(left, "variable", None)) != (
        repr(theirs),
        getattr(right, "variable", None),
    ):
        return False
    parts = [getattr(n, "operands", getattr(n, "arguments", ())) for n in (left, right)]
    if getattr(left, "operator", "") != getattr(right, "operator", ""):
        return False
    return len(parts[0]) == len(parts[1]) and all(same(a, b) for a, b in zip(*parts, strict=True))
