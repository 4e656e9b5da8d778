from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from safetest_gym.envs.tasks.inverted_pendulum import InvertedPendulum
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.errors import StartError
from safetest_gym.starts.slicing import start_slices
from safetest_gym.task import Task, load_task
from tests.oracles.random_tasks import grid_task
from tests.starts.building import starts_of


def _line() -> Task:
    line = OneWayLine(packages=4, locations=5, variant="icy")
    return load_task({**line.model(), "properties": line.properties()})


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
@pytest.mark.parametrize("make", [_line, grid_task])
def test_slices_together_are_the_whole_set_once(make: Callable[[], Task], size: int) -> None:
    starts = make().initial
    parts = list(start_slices(starts, size))
    assert all(len(part) <= size for part in parts)
    together = np.concatenate(parts)
    whole = starts.enumerate(100_000)
    assert len(together) == len(whole)
    assert {tuple(row) for row in together.tolist()} == {tuple(row) for row in whole.tolist()}


def test_infinitely_many_states_have_no_slices() -> None:
    pendulum = InvertedPendulum()
    task = load_task({**pendulum.model(), "properties": pendulum.properties()})
    with pytest.raises(StartError, match="infinitely many"):
        next(start_slices(task.initial, 10))


@pytest.mark.parametrize("size", [1, 3, 7, 10, 60, 1000])
def test_scattered_slices_have_every_state_once_too(size: int) -> None:
    starts = starts_of({"x": (0, 9), "y": (0, 9)}, "x + y <= 11")
    plain = np.concatenate(list(start_slices(starts, size)))
    scattered = np.concatenate(list(start_slices(starts, size, scattered=True)))
    order = np.lexsort(scattered.T[::-1])
    assert (scattered[order] == plain[np.lexsort(plain.T[::-1])]).all()
    if size == 10:
        assert abs(int(scattered[0, 0]) - int(scattered[10, 0])) > 2
