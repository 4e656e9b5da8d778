"""Orders of actions learnt from earlier queries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from safetest_gym.deciders.ordering import TRIALS, ActionOrder
from safetest_gym.task import Task
from tests.oracles.hashed_systems import hashed_task, states_of


def _teach(order: ActionOrder, task: Task) -> None:
    """Every state keeps the last of its actions."""
    states = states_of(range(20))
    states = states[task.applicable_many(states).any(axis=1)]
    applicable = task.applicable_many(states)[:, order.current]
    if task.granularity == 0:
        position = applicable.sum(axis=1) - 1
    else:
        position = applicable.shape[1] - 1 - applicable[:, ::-1].argmax(axis=1)
    order.learn(states, position)


@pytest.mark.parametrize("mode", ["label", "edge"])
def test_actions_that_were_refuted_least_come_first(mode: Any) -> None:
    task = hashed_task(mode=mode)
    order = ActionOrder(task)
    order.ended(100)
    _teach(order, task)
    assert order.choose()
    before = task.applicable_many(states_of(range(20)))[:, order.current]
    assert before.any()
    assert order.current.tolist() != list(range(task.num_actions))
    share = (order._refuted + 1) / (order._refuted + order._kept + 2)
    assert (np.diff(share[order.current]) >= 0).all()


def test_the_counts_are_of_actions_whatever_the_order_is() -> None:
    task = hashed_task()
    straight, turned = ActionOrder(task), ActionOrder(task)
    turned.current = straight.current[::-1].copy()
    states = states_of(range(30))
    applicable = task.applicable_many(states)
    states, applicable = states[applicable.any(axis=1)], applicable[applicable.any(axis=1)]
    straight.learn(states, applicable.argmax(axis=1))
    turned.learn(states, applicable[:, ::-1].argmax(axis=1))
    assert straight._refuted.sum() == turned._refuted.sum() == 0
    first = np.bincount(applicable.argmax(axis=1), minlength=len(straight._kept))
    assert np.array_equal(straight._kept, first)
    last = applicable.shape[1] - 1 - applicable[:, ::-1].argmax(axis=1)
    assert np.array_equal(turned._kept, np.bincount(last, minlength=len(turned._kept)))


@pytest.mark.parametrize(("cost", "is_learnt"), [((100, 10), True), ((10, 100), False)])
def test_the_order_with_fewer_visits_stays(cost: tuple[int, int], is_learnt: bool) -> None:
    task = hashed_task()
    order = ActionOrder(task)
    used = []
    for _ in range(200):
        used.append(order._uses_learnt)
        if order.ended(cost[order._uses_learnt]):
            _teach(order, task)
            order.choose()
    assert sum(used[:TRIALS]) == TRIALS // 2
    assert used[TRIALS:].count(not is_learnt) <= 5
    assert used[-1] is is_learnt


def test_a_full_turn_of_trials_uses_both_orders_equally() -> None:
    order = ActionOrder(hashed_task())
    for _ in range(TRIALS):
        order.ended(1)
        order.choose()
    assert order._asked == [TRIALS // 2, TRIALS // 2]
