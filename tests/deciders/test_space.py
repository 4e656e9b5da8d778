"""What is kept per state, beside a list of what it should be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetest_gym.deciders.space import StateSpace
from safetest_gym.engine.kernels.intern import rehash_kernel
from safetest_gym.task import Task
from tests.deciders.agreement import counting_task

COLUMNS: tuple[tuple[Any, int], ...] = (
    (np.uint8, 0),
    (np.int32, -1),
    (np.int32, 0),
    (np.int16, -1),
    (np.int64, 0),
)
TASK: Task = counting_task(1)


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("grow"), st.integers(1, 5000)),
            st.tuples(st.just("forget"), st.integers(0, 5000)),
        ),
        max_size=8,
    )
)
def test_entries_of_forgotten_states_are_as_in_the_beginning(
    steps: list[tuple[str, int]],
) -> None:
    space = StateSpace(TASK)
    columns = [space.column(dtype, fill) for dtype, fill in COLUMNS]
    mirror = np.zeros(0, np.int64)
    for step, number in steps:
        if step == "grow":
            last = space.known + number
            space.grow_states(last)
            space.states[space.known : last, 0] = np.arange(space.known, last)
            space.table.fill(0)
            rehash_kernel(space.states, space.table, last)
            for column in columns:
                column[space.known : last] = 7
            space.known = last
            mirror = np.full(last, 7)
        else:
            first = min(number, space.known)
            space.forget(first, space.known)
            mirror = mirror[:first]
        for column, (_, fill) in zip(columns, COLUMNS, strict=True):
            assert len(column) == len(space.states)
            assert np.array_equal(column[: len(mirror)], mirror)
            assert (column[len(mirror) :] == fill).all()
        assert np.count_nonzero(space.table) == space.known


def test_columns_are_filled_with_bytes_that_are_all_equal() -> None:
    with pytest.raises(ValueError, match="equal"):
        StateSpace(TASK).column(np.int32, 1)
