from __future__ import annotations

import pytest

from safetest_gym.envs.tasks import NAMES
from tests.benchmarks.endurance import walk


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_long_random_walk_meets_no_error_and_keeps_its_memory(name: str) -> None:
    facts = walk(task=name, steps=300_000, copies=256)
    assert facts["steps"] >= 300_000
    assert sum(facts["ends"].values()) > 0
    assert facts["growth"] < 32
