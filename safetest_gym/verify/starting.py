"""Start states as boxes that have them all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.rewrite import Inliner
from safetest_gym.errors import ConfigError
from safetest_gym.jani.tree import Expression, Operation
from safetest_gym.starts.base import StartSet
from safetest_gym.starts.condition import ConditionStarts
from safetest_gym.starts.listed import ListedStarts
from safetest_gym.verify.intervals import Floats
from safetest_gym.verify.narrowing import Boxes, Narrower

__all__ = ["start_boxes"]

_MOST = 256
_PASSES = 3


def start_boxes(
    starts: StartSet | NDArray[Any], narrower: Narrower, domain: tuple[Floats, Floats]
) -> Boxes:
    """Boxes that together have every start state, and maybe more.

    Raises:
        ConfigError: it is a set of a kind of its own.
    """
    if isinstance(starts, ListedStarts):
        starts = starts.enumerate(starts.count())
    if isinstance(starts, np.ndarray):
        points = starts.astype(np.float64)
        return points, points.copy()
    if not isinstance(starts, ConditionStarts):
        raise ConfigError(f"start states must be a list or a condition, not {type(starts)}")
    boxes = domain[0][None, :].copy(), domain[1][None, :].copy()
    for conjunct in _conjuncts(Inliner().plain(starts.condition)):
        boxes = _narrowed(conjunct, boxes, narrower)
    for _ in range(_PASSES):
        for conjunct in _conjuncts(Inliner().plain(starts.condition)):
            alive = narrower.narrow(conjunct, boxes)
            boxes = boxes[0][alive], boxes[1][alive]
    return boxes


def _conjuncts(condition: Expression) -> tuple[Expression, ...]:
    if isinstance(condition, Operation) and condition.operator == "∧":
        return tuple(part for operand in condition.operands for part in _conjuncts(operand))
    return (condition,)


def _narrowed(conjunct: Expression, boxes: Boxes, narrower: Narrower) -> Boxes:
    """Boxes of their own for each case of a disjunction, unless these are too many."""
    cases: tuple[Expression, ...] = (conjunct,)
    if isinstance(conjunct, Operation) and conjunct.operator == "∨":
        cases = conjunct.operands
    if len(cases) * len(boxes[0]) > _MOST:
        cases = (conjunct,)
    found = []
    for case in cases:
        part = boxes[0].copy(), boxes[1].copy()
        alive = narrower.narrow(case, part)
        found.append((part[0][alive], part[1][alive]))
    return np.concatenate([low for low, _ in found]), np.concatenate([high for _, high in found])
