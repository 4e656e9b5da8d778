"""Sets whose diagram is large while it is built are listed, and drawn from uniformly."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from safetest_gym.envs.tasks.blocksworld import Blocksworld
from safetest_gym.errors import EvaluationError, StartError
from safetest_gym.starts import ConditionStarts, components, search
from safetest_gym.starts.propagation import largest
from safetest_gym.starts.tightening import conjuncts_of, tightened
from safetest_gym.task import load_task
from tests.starts.building import Types, by_trying, condition_of, starts_of
from tests.starts.test_random_conditions import problems


def towers(blocks: int) -> ConditionStarts:
    generator = Blocksworld(blocks=blocks, table_limit=min(blocks, 5))
    task = load_task(generator.model(), {"properties": generator.properties()})
    assert isinstance(task.initial, ConditionStarts)
    return task.initial


def arrangements(blocks: int, limit: int) -> int:
    """Ways to put distinct blocks into at most ``limit`` towers, none if there are none."""
    towers = range(1, min(blocks, limit) + 1)
    return sum(
        math.comb(blocks - 1, k - 1) * math.factorial(blocks) // math.factorial(k) for k in towers
    )


@pytest.fixture
def listing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No diagram but of all states is small enough."""
    monkeypatch.setattr(components, "_FIRST_TRY", 0)
    monkeypatch.setattr(components, "MAX_NODES", 0)


@pytest.mark.parametrize("blocks", [3, 4, 5])
def test_a_listed_set_has_the_states_of_the_diagram(
    blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = towers(blocks).enumerate(10_000)
    monkeypatch.setattr(components, "_FIRST_TRY", 0)
    listed = towers(blocks)
    assert (listed.enumerate(10_000) == expected).all()
    assert listed.count() == len(expected)
    assert all(listed.contains(state) for state in expected[:50])


@pytest.mark.usefixtures("listing")
def test_states_of_a_listed_set_are_drawn_uniformly() -> None:
    listed = towers(4)
    count = listed.count()
    assert count is not None
    drawn = listed.sample(200 * count, np.random.default_rng(5))
    seen = Counter(map(tuple, drawn.tolist()))
    assert len(seen) == count
    squares = sum((number - 200) ** 2 / 200 for number in seen.values())
    assert abs(squares - count) < 6 * math.sqrt(2 * count)


def check(types: Types, text: str) -> None:
    starts = starts_of(types, text)
    try:
        expected = list(by_trying(types, text))
        assert [tuple(row) for row in starts.enumerate(10**5).tolist()] == expected
    except EvaluationError:
        return  # some state has no value
    except StartError:
        return  # it cannot be listed


@pytest.mark.usefixtures("listing")
def test_random_conditions_are_listed_exactly() -> None:
    @given(problems())
    @settings(max_examples=100)
    def compare(problem: tuple[Types, str]) -> None:
        check(*problem)

    compare()


@pytest.mark.slow
@pytest.mark.usefixtures("listing")
def test_many_random_conditions_are_listed_exactly() -> None:
    @given(problems())
    @settings(max_examples=3000)
    def compare(problem: tuple[Types, str]) -> None:
        check(*problem)

    compare()


def test_the_number_of_states_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_PROBED", 60)
    types = dict.fromkeys("abcdef", (0, 5))
    model, condition = condition_of(types, "a + b + c = 7 and max(d, e) <= f")
    formulas, formula = tightened(model.variables, condition)
    found = search.Search(range(6), conjuncts_of(formula), formulas)
    expected = starts_of(types, "a + b + c = 7 and max(d, e) <= f").count()
    assert expected is not None
    assert found.estimate() == pytest.approx(expected, rel=0.3)


def test_conditions_without_a_value_somewhere_are_not_listed() -> None:
    model, condition = condition_of({"x": (0, 5), "y": (0, 5)}, "5 % x = y")
    assert largest(conjuncts_of(tightened(model.variables, condition)[1])) is None


@pytest.mark.usefixtures("listing")
def test_a_set_without_states_is_listed_as_such() -> None:
    starts = starts_of(dict.fromkeys("xyz", (0, 5)), "x != y and y != z and x != z and x + z = 1")
    assert starts.count() == 8
    starts = starts_of(dict.fromkeys("xyz", (0, 2)), "x*x + y*y + z*z = 7")
    assert starts.count() == 0
    assert starts.enumerate(10).shape == (0, 3)


@pytest.mark.usefixtures("listing")
def test_columns_of_many_values_are_split_into_ranges() -> None:
    types = dict.fromkeys("xyz", (0, 30_000))
    starts = starts_of(types, "max(x, y) * 1000 = z and x + y >= 5")
    expected = sum(1 for x in range(31) for y in range(31) if x + y >= 5)
    assert starts.count() == expected
    assert all(starts.contains(state) for state in starts.enumerate(2000))


@pytest.mark.usefixtures("listing")
def test_a_set_that_is_too_large_to_be_listed_says_how_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(components, "_FEW", 100)
    monkeypatch.setattr(components, "MAX_STATES", 100)
    with pytest.raises(StartError, match=r"about 9e.02 states .* list the start states"):
        starts_of(dict.fromkeys("xyz", (0, 9)), "x + y != z").count()


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [6, 7, 8])
def test_all_towers_are_counted(blocks: int) -> None:
    """Each block of all in the hand, the others in towers; or none in the hand."""
    held = blocks * arrangements(blocks - 1, 5)
    assert towers(blocks).count() == arrangements(blocks, 5) + held
