"""What a policy was made for: the variables it reads and the actions it chooses among."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from safetest_gym.errors import PolicyError

__all__ = ["Interface", "TaskNames"]

_MOST_TOLD = 3


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class TaskNames(Protocol):
    """The part of a `safetest_gym.task.Task` that an interface needs."""

    @property
    def variables(self) -> Sequence[_Named]:
        """The state variables in the order of state vectors."""
        ...

    @property
    def actions(self) -> Sequence[str]:
        """Action names by number."""
        ...


@dataclass(frozen=True, slots=True)
class Interface:
    """Names of a policy's inputs and outputs, and where a task has them.

    With ``columns`` and ``numbers`` left out, states consist of just these variables and
    actions are numbered as listed; `bind` looks the names up in a task.

    Attributes:
        variables: names the policy reads, in input order.
        actions: names in output order; they must be exactly the task's, in any order.
        columns: per variable, its index in state vectors.
        numbers: per output, the task's number of the action.
        num_columns: length of state vectors.
    """

    variables: tuple[str, ...]
    actions: tuple[str, ...]
    columns: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()
    num_columns: int = 0

    def __post_init__(self) -> None:
        for kind, names in (("variable", self.variables), ("action", self.actions)):
            if not names:
                raise PolicyError(f"a policy needs at least one {kind}")
            twice = sorted(name for name, count in Counter(names).items() if count > 1)
            if twice:
                raise PolicyError(f"{kind} named twice: {', '.join(twice)}")
        if not self.num_columns:
            object.__setattr__(self, "columns", tuple(range(len(self.variables))))
            object.__setattr__(self, "numbers", tuple(range(len(self.actions))))
            object.__setattr__(self, "num_columns", len(self.variables))

    @classmethod
    def of(
        cls,
        task: TaskNames,
        *,
        variables: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
    ) -> Interface:
        """The interface of a policy made for ``task``: everything in order, where not given."""
        names = [variable.name for variable in task.variables]
        wanted = cls(
            tuple(names if variables is None else variables),
            tuple(task.actions if actions is None else actions),
        )
        return wanted.bind(task)

    @property
    def num_actions(self) -> int:
        """How many actions there are, in the policy as in its task."""
        return len(self.actions)

    @property
    def order(self) -> tuple[int, ...]:
        """Per action number of the task, the output that stands for it."""
        outputs = [0] * len(self.numbers)
        for output, number in enumerate(self.numbers):
            outputs[number] = output
        return tuple(outputs)

    def bind(self, task: TaskNames) -> Interface:
        """The same names with their places in ``task``; `PolicyError` lists what differs.

        A variable ``automaton.name`` also matches a plain ``name``.
        """
        columns = {variable.name: i for i, variable in enumerate(task.variables)}
        numbers = {name: i for i, name in enumerate(task.actions)}
        found = [columns.get(v, columns.get(v.rpartition(".")[2])) for v in self.variables]
        variables = [
            _unknown("variable", name, columns)
            for name, column in zip(self.variables, found, strict=True)
            if column is None
        ]
        actions = [
            _unknown("action", name, numbers) for name in self.actions if name not in numbers
        ]
        known = set(self.actions)
        missing = [
            f"the task's action {name!r} is unknown to the policy"
            for name in task.actions
            if name not in known
        ]
        doubled = [
            f"several variables of the policy could be the task's {task.variables[column].name!r}"
            for column, count in Counter(found).items()
            if column is not None and count > 1
        ]
        faults = [text for part in (variables, actions, missing, doubled) for text in _first(part)]
        if faults:
            raise PolicyError("the policy was not made for this task: " + "; ".join(faults))
        return replace(
            self,
            columns=tuple(column for column in found if column is not None),
            numbers=tuple(numbers[name] for name in self.actions),
            num_columns=len(columns),
        )


def _first(faults: list[str]) -> list[str]:
    """Of many alike, the first few and how many there are."""
    more = len(faults) - _MOST_TOLD
    return faults if more <= 1 else [*faults[:_MOST_TOLD], f"and {more} more like it"]


def _unknown(kind: str, name: str, known: dict[str, int]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"the policy's {kind} {name!r} is not in the task{hint}"
