from __future__ import annotations

import itertools
import math
import time
from typing import Any

import numpy as np
import pytest

from safetest_gym.policies import MlpPolicy, Policy, TreeEnsemblePolicy
from safetest_gym.repair.repairing import RepairOptions
from safetest_gym.repair.requests import FaultSet, KeepSet
from safetest_gym.repair.stop import HardStop
from tests.oracles.policies import random_network, random_states
from tests.repair.faulty import faults_of, forest


def _case(method: str) -> tuple[Policy, FaultSet, KeepSet]:
    policy: Policy = forest(1, trees=6, nodes=12, vector=True)
    if method in ("last-layer", "finetune"):
        policy = random_network(np.random.default_rng(1), [4, 48, 32, 4], "tanh")
    states = random_states(np.random.default_rng(2), 40, 4)
    keep = KeepSet(states=states, applicable=np.ones((40, 4), dtype=bool), penalty=1.0)
    return policy, faults_of(policy, 1, 20), keep


def _numbers(policy: Policy) -> bytes:
    if isinstance(policy, TreeEnsemblePolicy):
        return b"".join(tree.values.tobytes() for tree in policy.trees)
    assert isinstance(policy, MlpPolicy)
    return b"".join(layer.weight.tobytes() + layer.bias.tobytes() for layer in policy.layers)


@pytest.mark.parametrize("solver", ["highs", "auto"])
@pytest.mark.parametrize("method", ["leaves", "last-layer", "finetune"])
def test_a_repair_is_the_same_bit_for_bit_however_slow_the_machine(
    method: Any, solver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, faults, keep = _case(method)
    found = []
    for seconds in (0.0, 1000.0):  # that pass at each look at the clock
        ticks = itertools.count()
        monkeypatch.setattr(time, "monotonic", lambda: seconds * next(ticks))  # noqa: B023
        options = RepairOptions(method=method, solver=solver, work=0.2)
        found.append(options.run(policy, faults, keep))
        monkeypatch.undo()
    (fast, told), (slow, retold) = found
    assert _numbers(fast) == _numbers(slow)
    assert _numbers(fast) != _numbers(policy)
    assert (told.objective, told.lower_bound) == (retold.objective, retold.lower_bound)
    assert not retold.cut_short


def test_a_time_limit_that_cuts_something_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, faults, keep = _case("leaves")
    ticks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: 1.0 * next(ticks))
    _, report = RepairOptions(method="leaves", work=5, time_limit=3).run(policy, faults, keep)
    assert report.all_fixed
    assert report.cut_short
    assert "time limit" in report.describe()
    assert report.as_dict()["cut_short"] is True


def test_a_time_limit_that_is_not_reached_is_not_reported() -> None:
    policy, faults, keep = _case("leaves")
    _, report = RepairOptions(method="leaves", work=0.1, time_limit=1e6).run(policy, faults, keep)
    assert not report.cut_short


def test_without_seconds_nothing_is_ever_over() -> None:
    assert HardStop().left() == math.inf
    assert not HardStop().over()
