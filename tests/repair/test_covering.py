"""Small linear programs end at the cheapest corner, row by row or all at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from safetest_gym.repair.covering import Covering, undominated
from safetest_gym.repair.solver import Program, choose_solver
from tests.oracles.covering import least_cost

_CUTOFF = 1e4
"""More than any corner costs whose numbers are as small as here."""


@st.composite
def _programs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    count, width = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rows = draw(arrays(np.int64, (count, width), elements=st.integers(-3, 3)))
    needs = draw(arrays(np.int64, count, elements=st.integers(-3, 4)))
    return rows.astype(np.float64), needs.astype(np.float64)


@given(program=_programs(), split=st.integers(0, 5))
def test_the_end_is_the_cheapest_corner_in_one_step_and_in_two(program, split) -> None:  # type: ignore[no-untyped-def]  # drawn
    rows, needs = program
    covering, every = Covering(rows, needs), np.arange(len(rows))
    best = least_cost(rows, needs)
    first = covering.solve(None, every[:split], _CUTOFF)
    for start, more in ((None, every), (first, every[split:])):
        vertex = covering.solve(start, more, _CUTOFF)
        if np.isfinite(best):
            assert vertex.is_possible
            assert vertex.bound == pytest.approx(best, abs=1e-6)
            assert vertex.point.sum() == pytest.approx(best, abs=1e-6)
            assert (rows @ vertex.point >= needs - 1e-6).all()
        else:
            assert not vertex.is_possible
            assert vertex.bound >= _CUTOFF


@given(program=_programs(), share=st.sampled_from([0.3, 0.9, 1.5]))
def test_a_program_ends_at_the_cutoff(program, share) -> None:  # type: ignore[no-untyped-def]  # drawn
    rows, needs = program
    best = least_cost(rows, needs)
    if np.isfinite(best) and best > 0:
        vertex = Covering(rows, needs).solve(None, np.arange(len(rows)), share * best)
        assert vertex.bound >= min(share, 1) * best - 1e-6
        assert vertex.bound <= best + 1e-6


@given(program=_programs())
def test_columns_that_are_nowhere_above_another_one_are_not_missed(program) -> None:  # type: ignore[no-untyped-def]  # drawn
    rows, needs = program
    kept = undominated(rows)
    for j in set(range(rows.shape[1])) - set(kept.tolist()):
        assert (rows[:, [j]] <= rows[:, kept]).all(axis=0).any()
    for j in kept:
        others = rows[:, kept[kept != j]]
        assert not (rows[:, [j]] <= others).all(axis=0).any()
    assert least_cost(rows[:, kept], needs) == pytest.approx(least_cost(rows, needs))


@pytest.mark.parametrize("seed", range(5))
def test_larger_programs_end_where_highs_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(-1, 2, (80, 150)) * rng.random((80, 150))
    needs = rng.random(80)
    program = Program(
        cost=np.ones(150),
        lower=np.zeros(150),
        upper=np.full(150, np.inf),
        start=np.arange(0, 80 * 150 + 1, 150, dtype=np.int32),
        columns=np.tile(np.arange(150, dtype=np.int32), 80),
        values=rows.ravel(),
        row_lower=needs,
    )
    best = choose_solver("highs").solve(program).bound
    covering = Covering(rows, needs)
    half = covering.solve(None, np.arange(40))
    assert covering.solve(half, np.arange(40, 80)).bound == pytest.approx(best, rel=1e-6)
