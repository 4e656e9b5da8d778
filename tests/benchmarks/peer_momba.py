"""Momba's gym class on our bundled tasks, as the peer that our stepping is measured against."""

from __future__ import annotations

from typing import Any

from safetest_gym.bench import peers
from safetest_gym.envs.tasks import make_generator
from tests.benchmarks.harness import Facts

__all__ = ["step_with_momba"]


def step_with_momba(*, task: str, parameters: dict[str, Any], steps: int, repeats: int) -> Facts:
    """Step at random, asking for the mask after each step, as its users would."""
    generator = make_generator(task, parameters)
    return peers.step_with_momba(generator.model(), generator.properties()[0], steps, repeats)
