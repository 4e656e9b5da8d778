"""Improved policy iteration, beyond what `test_algorithms` asks of all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from safetest_gym.deciders import Verdict, make_decider
from safetest_gym.deciders.ipi import IpiDecider
from safetest_gym.envs.tasks.families import OuterLoop
from safetest_gym.task import load_task
from tests.oracles.hashed_systems import hashed_task, states_of


@pytest.mark.parametrize("size", [2, 3, 10])
def test_the_outer_loop_family_takes_a_round_for_each_state(size: int) -> None:
    family = OuterLoop(size=size)
    task = load_task(family.model(), {"properties": family.properties()})
    decider = make_decider("ipi", task)
    assert decider.decide(task.initial.enumerate(1)[0]) is Verdict.UNSAFE
    assert decider.statistics.expanded > size * (size + 1) // 2


@pytest.mark.parametrize("order", ["app", "rand"])
def test_looking_again_before_backing_up_gives_the_same_verdicts(order: Any) -> None:
    task = hashed_task()
    states = states_of(range(500))
    plain = make_decider("ipi", task, order=order)
    again = IpiDecider(task, order=order)
    again.recheck = True
    assert again.recheck
    assert not IpiDecider(task).recheck
    assert np.array_equal(plain.decide_many(states), again.decide_many(states))
    assert again.statistics.expanded <= plain.statistics.expanded
