"""A user's limit of seconds; what limits repairs otherwise is counted, not timed."""

from __future__ import annotations

import math
import time

__all__ = ["HardStop"]


class HardStop:
    """Seconds from now on, and whether their end has cut anything short.

    Attributes:
        cut: something was left out for lack of time, so that the result depends on the
            machine and on its load.
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self.seconds = seconds
        self.cut = False
        self._begun = time.monotonic()

    def left(self) -> float:
        """Seconds left, at least 0."""
        if math.isinf(self.seconds):
            return math.inf
        return max(self._begun + self.seconds - time.monotonic(), 0.0)

    def over(self) -> bool:
        """Is it time to leave out what is not necessary? To be asked before such work only."""
        if self.left() > 0:
            return False
        self.cut = True
        return True
