"""Random conditions, counted and listed, against trying every state."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safetest_gym.errors import EvaluationError, StartError
from tests.starts.building import Types, by_trying, starts_of

NAMES = ("x", "y", "z")


@cache
def ints(depth: int) -> st.SearchStrategy[str]:
    leaves = st.sampled_from(NAMES) | st.integers(-4, 6).map(lambda value: f"({value})")
    if depth == 0:
        return leaves
    part = ints(depth - 1)
    binary = st.builds(lambda a, o, b: f"({a} {o} {b})", part, st.sampled_from("+-*%"), part)
    called = st.builds(
        lambda f, a, b: f"{f}({a}, {b})", st.sampled_from(("min", "max")), part, part
    )
    unary = st.builds(lambda f, a: f"{f}({a})", st.sampled_from(("abs", "sgn")), part)
    choice = st.builds(lambda a, c, b: f"({a} if {c} else {b})", part, bools(depth - 1), part)
    return leaves | binary | called | unary | choice


@cache
def bools(depth: int) -> st.SearchStrategy[str]:
    comparison = st.builds(
        lambda a, o, b: f"({a} {o} {b})",
        ints(max(0, depth - 1)),
        st.sampled_from(("==", "!=", "<", "<=", ">", ">=")),
        ints(max(0, depth - 1)) | st.sampled_from(("2.5", "-1.0", "(0.5 * x)", "(y / z)")),
    )
    leaves = st.sampled_from(("b", "c")) | comparison
    if depth == 0:
        return leaves
    part = bools(depth - 1)
    binary = st.builds(
        lambda a, o, b: f"({a} {o} {b})",
        part,
        st.sampled_from(("and", "or", "=>", "==", "!=")),
        part,
    )
    choice = st.builds(lambda a, c, b: f"({a} if {c} else {b})", part, part, part)
    return leaves | binary | part.map(lambda a: f"(not {a})") | choice


def bounds() -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(-4, 3), st.integers(0, 4)).map(lambda p: (p[0], p[0] + p[1]))


@st.composite
def problems(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    types: dict[str, Any] = {name: draw(bounds()) for name in NAMES}
    types.update(dict.fromkeys("bc", "bool"))
    conjuncts = draw(st.lists(bools(3), min_size=1, max_size=3))
    return types, " and ".join(conjuncts)


def check(types: Types, text: str) -> None:
    starts = starts_of(types, text)
    try:
        expected = list(by_trying(types, text))
    except EvaluationError:
        # Some state has no value from the left; another conjunct may still exclude it.
        with suppress(StartError):
            starts.count()
        return
    assert starts.count() == len(expected)
    assert [tuple(row) for row in starts.enumerate(10**5).tolist()] == expected
    if expected:
        drawn = starts.sample(20, np.random.default_rng(0))
        assert {tuple(row) for row in drawn.tolist()} <= set(expected)


@given(problems())
@settings(max_examples=100)
def test_random_conditions_are_counted_and_listed_exactly(problem: tuple[Types, str]) -> None:
    check(*problem)


@pytest.mark.slow
@given(problems())
@settings(max_examples=3000)
def test_many_random_conditions_are_counted_and_listed_exactly(problem: tuple[Types, str]) -> None:
    check(*problem)
