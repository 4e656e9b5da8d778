"""Deciders that compute the least radius of states with the r-Bellman operator."""

from __future__ import annotations

import math

from safetest_gym.deciders.explicit import ExplicitDecider

__all__ = ["BellmanDecider"]


class BellmanDecider(ExplicitDecider):
    """Bounds of the least radius only grow, and stay for later queries ([J] 6.1)."""

    def _prepare(self) -> None:
        super()._prepare()
        self._limit = 1 if self.radius == math.inf else int(self.radius) + 1
