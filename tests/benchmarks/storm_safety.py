"""The safe set of a planning model by Storm: explicit build, then graph-based Pmin = 0."""

from __future__ import annotations

from pathlib import Path

from safetest_gym.bench import peers
from tests.benchmarks.harness import Facts

__all__ = ["safe_set_with_storm"]


def safe_set_with_storm(*, model: str, properties: str) -> Facts:
    """The states from which failing before the goal can surely be avoided."""
    return peers.safe_set_with_storm(Path(model), Path(properties))
