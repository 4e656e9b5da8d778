"""How steps end, as the engine numbers them and as `info` names them."""

from __future__ import annotations

from typing import Literal

import numpy as np

__all__ = ["DEADLOCK", "FAILING", "GOAL", "INVALID", "OUTCOME_NAMES", "RUNNING", "TRUNCATED"]
__all__ += ["Outcome"]

Outcome = Literal["goal", "failing", "deadlock", "truncated", "invalid"]

RUNNING, GOAL, FAILING, DEADLOCK, TRUNCATED, INVALID = range(6)

OUTCOME_NAMES = np.array(
    [None, "goal", "failing", "deadlock", "truncated", "invalid"], dtype=object
)
"""Name of an outcome by its number; None while the episode runs."""
