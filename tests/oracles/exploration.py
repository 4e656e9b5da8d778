"""The reachable part of a model, explored with the interpreter: slow, and beyond doubt."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

from safetest_gym.engine.interpreter import Interpreter, State
from safetest_gym.errors import EvaluationError

__all__ = ["Exploration", "explore", "reachable"]


@dataclass(frozen=True)
class Exploration:
    """Size of the reachable part.

    Attributes:
        transitions: distinct successors, summed over choices.
    """

    states: int
    choices: int
    transitions: int
    deadlocks: int
    initial_states: int


def reachable(
    interpreter: Interpreter,
    starts: tuple[State, ...],
    limit: int,
    *,
    past_errors: bool = False,
) -> list[State]:
    """States reachable from ``starts``, breadth first, up to about ``limit`` of them.

    With ``past_errors``, states whose successors cannot be computed count as having none.
    """
    found = dict.fromkeys(starts)
    queue = deque(found)
    while queue and len(found) < limit:
        try:
            choices = interpreter.choices(queue.popleft())
        except EvaluationError:
            if not past_errors:
                raise
            continue
        for choice in choices:
            for _, successor in choice.outcomes:
                if successor not in found:
                    found[successor] = None
                    queue.append(successor)
    return list(found)


def explore(
    interpreter: Interpreter,
    starts: tuple[State, ...] | None = None,
    *,
    mode: Literal["label", "edge"] = "edge",
    limit: int = 100_000,
) -> Exploration:
    """Explore everything reachable from ``starts`` (default: the initial states)."""
    starts = interpreter.initial_states() if starts is None else tuple(dict.fromkeys(starts))
    states = reachable(interpreter, starts, limit)
    choices = transitions = deadlocks = 0
    for state in states:
        actions = interpreter.actions(state, mode)
        choices += len(actions)
        deadlocks += not actions
        for action in actions:
            transitions += len({successor for _, successor in action.outcomes})
    return Exploration(len(states), choices, transitions, deadlocks, len(starts))
