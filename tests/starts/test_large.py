"""Conditions of the kind that planning problems have, at sizes that need a good diagram."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from safetest_gym.starts import ConditionStarts
from tests.starts.building import Types, by_trying, starts_of


def stacks(blocks: int, piles: int) -> int:
    """Ways to stack numbered blocks into that many piles."""
    return math.comb(blocks - 1, piles - 1) * math.factorial(blocks) // math.factorial(piles)


def blocksworld(n: int) -> ConditionStarts:
    """``n`` blocks, one of them perhaps in the hand, not all on the table.

    ``b`` tells what a block is on: 0 the hand, 1 the table, else another block; ``c`` is 1
    if nothing is on it and it is not in the hand; ``h`` is its height.
    """
    blocks = range(n)
    types: Types = {
        "hand": (0, 1),
        "table": (0, n),
        **{f"b{i}": (0, n) for i in blocks},
        **{f"c{i}": (0, 1) for i in blocks},
        **{f"h{i}": (0, n) for i in blocks},
    }

    def code(i: int, j: int) -> int:
        return 2 + j if j < i else 1 + j

    def exactly(chosen: tuple[int, ...], value: int) -> str:
        return " and ".join(f"b{i} {'==' if i in chosen else '!='} {value}" for i in blocks)

    held = [f"(hand == 0 and {exactly((i,), 0)})" for i in blocks]
    parts = [" or ".join([f"(hand == 1 and {exactly((), 0)})", *held])]
    tables = [
        f"(table == {t} and {exactly(chosen, 1)})"
        for t in range(1, n)
        for chosen in combinations(blocks, t)
    ]
    parts.append(" or ".join(tables))
    for j in blocks:
        others = [i for i in blocks if i != j]
        bare = " and ".join(f"b{i} != {code(i, j)}" for i in others)
        cases = [f"(c{j} == 1 and b{j} != 0 and {bare})", f"(c{j} == 0 and b{j} == 0 and {bare})"]
        for i in others:
            rest = [f"b{k} != {code(k, j)}" for k in others if k != i]
            on = [f"c{j} == 0", f"b{j} != 0", f"b{i} == {code(i, j)}", *rest]
            cases.append(f"({' and '.join(on)})")
        parts.append(" or ".join(cases))
    for i in blocks:
        parts += [f"b{i} == 1 => h{i} == 0", f"b{i} == 0 => h{i} == {n}"]
        parts += [f"b{i} == {code(i, j)} => h{i} == h{j} + 1" for j in blocks if j != i]
    return starts_of(types, " and ".join(f"({part})" for part in parts))


@pytest.mark.parametrize("n", [4, 5, 6, pytest.param(7, marks=pytest.mark.slow)])
def test_blocksworld_has_all_its_stacks(n: int) -> None:
    empty_hand = sum(stacks(n, piles) for piles in range(1, n))
    holding = n * sum(stacks(n - 1, piles) for piles in range(1, n))
    starts = blocksworld(n)
    assert starts.count() == empty_hand + holding
    assert all(starts.contains(state) for state in starts.sample(20, np.random.default_rng(0)))


def test_linked_variables_far_apart_are_brought_together() -> None:
    pairs = " and ".join(f"x{i} == x{i + 8}" for i in range(8))
    total = " + ".join(f"x{i}" for i in range(16))
    starts = starts_of({f"x{i}": (0, 20) for i in range(16)}, f"{pairs} and {total} == 40")
    assert starts.count() == math.comb(27, 7)  # 20 over 8 places


def test_a_thousand_cases_are_listed_exactly() -> None:
    rows = np.unique(np.random.default_rng(1).integers(0, 10, (1000, 8)), axis=0)
    cases = [" and ".join(f"x{i} == {value}" for i, value in enumerate(row)) for row in rows]
    text = " or ".join(f"({case})" for case in cases)
    starts = starts_of({f"x{i}": (0, 9) for i in range(8)}, text)
    assert (starts.enumerate(1000) == rows).all()


def test_a_deeply_nested_condition_is_no_trouble() -> None:
    text = "x == 0"
    for level in range(3000):
        text = f"({text} {'and' if level % 2 else 'or'} {'xy'[level % 2]} != {level % 4})"
    types = {"x": (0, 4), "y": (0, 4)}
    rows = starts_of(types, text).enumerate(25)
    assert [tuple(row) for row in rows.tolist()] == list(by_trying(types, text))
