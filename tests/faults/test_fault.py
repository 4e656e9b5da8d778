from __future__ import annotations

import numpy as np
import pytest

from safetest_gym.errors import ConfigError
from safetest_gym.faults import Fault
from tests.oracles.random_tasks import grid_task

NAMES = ("right", "left", "up", "down")


def test_a_fault_is_told_in_words() -> None:
    task = grid_task()
    numbers = {name: task.actions.index(name) for name in NAMES}
    state, outcome = np.array([3, 3]), np.array([4, 4])
    safe = tuple(sorted((numbers["left"], numbers["down"])))
    fault = Fault(state, numbers["right"], outcome, safe)
    names = " and ".join(task.actions[a] for a in safe)
    assert fault.describe(task) == f"x=3, y=3: right can lead to x=4, y=4; {names} are safe"


def test_an_outcome_that_does_not_fail_yet_is_told_so() -> None:
    task = grid_task()
    right, left = task.actions.index("right"), task.actions.index("left")
    fault = Fault(np.array([2, 3]), right, np.array([3, 3]), (left,))
    text = fault.describe(task)
    assert text == (
        "x=2, y=3: right can lead to x=3, from where failing cannot surely be avoided; left is safe"
    )


def test_a_fault_without_a_safe_alternative_is_told_without_one() -> None:
    task = grid_task()
    right = task.actions.index("right")
    text = Fault(np.array([3, 3]), right, np.array([4, 4]), ()).describe(task)
    assert text == "x=3, y=3: right can lead to x=4, y=4"


def test_plain_data_that_is_no_fault_is_refused() -> None:
    with pytest.raises(ConfigError, match="not a fault of grid"):
        Fault.from_dict({"state": {"x": 1, "y": 2}}, grid_task())
