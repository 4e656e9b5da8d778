"""The linear-time check agrees with trying all rankings."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from safetest_gym.repair.ranking import Demand, contradicting, levels, ranked

ACTIONS = 4


def _satisfied(demand: Demand, ranking: tuple[int, ...]) -> bool:
    """Does the best good action stand above all bad ones?"""
    good, bad = demand
    places = {action: place for place, action in enumerate(ranking)}
    best = min((places[a] for a in range(ACTIONS) if good >> a & 1), default=ACTIONS)
    return all(best < places[a] for a in range(ACTIONS) if bad >> a & 1)


@st.composite
def _demand(draw: st.DrawFn) -> Demand:
    bad = draw(st.integers(0, 2**ACTIONS - 1))
    return draw(st.integers(0, 2**ACTIONS - 1)) & ~bad, bad


@given(st.lists(_demand(), max_size=7))
def test_demands_contradict_exactly_if_no_ranking_satisfies_them(demands: list[Demand]) -> None:
    possible = any(
        all(_satisfied(demand, ranking) for demand in demands)
        for ranking in permutations(range(ACTIONS))
    )
    assert bool(contradicting(demands, ACTIONS)) is not possible


@given(st.lists(_demand(), max_size=7))
def test_levels_and_winners_are_of_one_ranking_that_satisfies_the_demands(
    demands: list[Demand],
) -> None:
    wrong = contradicting(demands, ACTIONS)
    fine = [demand for demand in demands if demand not in wrong]
    down, winners = levels(fine, ACTIONS), ranked(fine, ACTIONS)
    for good, bad in fine:
        if bad:
            winner = winners[good, bad]
            assert good >> winner & 1
            assert all(down[winner] < down[a] for a in range(ACTIONS) if bad >> a & 1)
