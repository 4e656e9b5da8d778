"""A fault: one decision of a policy that gives safety away ([J] Def. 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.deciders.verdict import Verdict
from safetest_gym.errors import ConfigError

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["Fault", "show_values"]

_MOST_SHOWN = 6
_DOOMED = ", from where failing cannot surely be avoided"


@dataclass(frozen=True, slots=True, eq=False)
class Fault:
    """In ``state``, which is safe, the policy takes ``action``, which can lead to ``outcome``.

    Attributes:
        outcome: an unsafe outcome of the action (failing, or failing cannot surely be avoided).
        alternatives: actions all of whose outcomes are safe.
        run: index of the first run that it was seen on; -1 if it was not found on a run.
        step: its place on that run.
        start: was that run's start state safe?
        count: how often it was seen on all the runs.
        radius: of the analysis; finite for an r-fault.
    """

    state: NDArray[Any]
    action: int
    outcome: NDArray[Any]
    alternatives: tuple[int, ...]
    run: int = -1
    step: int = 0
    start: Verdict = Verdict.UNKNOWN
    count: int = 1
    radius: float = float("inf")

    def describe(self, task: Task) -> str:
        """The fault in words, with the variables that change."""
        changed = np.flatnonzero(self.state != self.outcome)
        relevant = _relevant(task, self.state, self.alternatives)
        shown = relevant if len(relevant) else changed
        if not len(shown):
            shown = np.arange(task.num_variables)
        safe = [task.actions[a] for a in self.alternatives]
        failing = "" if task.is_failing(self.outcome) else _DOOMED
        where = show_values(task, self.state, shown)
        what = show_values(task, self.outcome, changed) or "the same state"
        text = f"{where}: {task.actions[self.action]} can lead to {what}{failing}"
        if not safe:
            return text
        return f"{text}; {' and '.join(safe)} {'is' if len(safe) == 1 else 'are'} safe"

    def as_dict(self, task: Task) -> dict[str, Any]:
        """Plain data with names."""
        return {
            "state": task.as_dict(self.state),
            "action": task.actions[self.action],
            "outcome": task.as_dict(self.outcome),
            "alternatives": [task.actions[a] for a in self.alternatives],
            "run": self.run,
            "step": self.step,
            "start_safe": None if self.start == Verdict.UNKNOWN else self.start == Verdict.SAFE,
            "count": self.count,
            "radius": None if self.radius == float("inf") else int(self.radius),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any], task: Task) -> Fault:
        """The inverse of `as_dict`."""
        starts = {None: Verdict.UNKNOWN, True: Verdict.SAFE, False: Verdict.UNSAFE}
        radius = data.get("radius")
        numbers = {name: number for number, name in enumerate(task.actions)}
        try:
            return cls(
                task.state(data["state"]),
                numbers[data["action"]],
                task.state(data["outcome"]),
                tuple(numbers[name] for name in data["alternatives"]),
                int(data.get("run", -1)),
                int(data.get("step", 0)),
                starts[data.get("start_safe")],
                int(data.get("count", 1)),
                float("inf") if radius is None else float(radius),
            )
        except KeyError as error:
            raise ConfigError(f"not a fault of {task.name}: no {error} is known") from None
        except (TypeError, ValueError) as error:
            raise ConfigError(f"not a fault of {task.name}: {error}") from None


def _relevant(task: Task, state: NDArray[Any], actions: tuple[int, ...]) -> NDArray[np.intp]:
    """Variables that safe alternatives change: they say where the policy is."""
    changes = np.zeros(task.num_variables, np.bool_)
    for action, outcomes in task.successors(state):
        if action in actions:
            for _, outcome in outcomes:
                changes |= outcome != state
    return np.flatnonzero(changes)


def show_values(task: Task, state: NDArray[Any], places: NDArray[np.intp]) -> str:
    """``name=value`` of some variables, the first few of them."""
    values = task.as_dict(state)
    names = [task.variables[v].name for v in places]
    more = ", …" if len(names) > _MOST_SHOWN else ""
    return ", ".join(f"{name}={_short(values[name])}" for name in names[:_MOST_SHOWN]) + more


def _short(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
