"""Runs of a policy as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["End", "Run", "Runs"]


class End(IntEnum):
    """Why a run stopped.

    CYCLE: it goes round for ever without a choice, and looking ahead as far as that is
    allowed finds no failing state, or there is nothing else to see. EXHAUSTED: the search
    has seen all the states that the policy can still reach, and none of them fails.
    """

    FAILING = 0
    GOAL = 1
    DEADLOCK = 2
    LIMIT = 3
    CYCLE = 4
    EXHAUSTED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One run: ``states[i + 1]`` is an outcome of ``actions[i]`` in ``states[i]``.

    Attributes:
        index: which run of its fuzzer it is.
        states: vectors (n + 1, V), the start first.
        actions: numbers (n,).
    """

    index: int
    states: NDArray[Any]
    actions: NDArray[np.int64]
    end: End

    @property
    def start(self) -> NDArray[Any]:
        """Where it began."""
        first: NDArray[Any] = self.states[0]
        return first

    @property
    def unsafe(self) -> bool:
        """Does it end in a failing state?"""
        return self.end is End.FAILING

    def __len__(self) -> int:
        return len(self.actions)

    def as_dict(self, task: Task) -> dict[str, Any]:
        """Plain data, states as lists in the order of the task's variables."""
        return {
            "run": self.index,
            "end": self.end.name.lower(),
            "actions": [task.actions[a] for a in self.actions],
            "states": self.states.tolist(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any], task: Task) -> Run:
        """The inverse of `as_dict`."""
        numbers = {name: number for number, name in enumerate(task.actions)}
        try:
            actions = np.array([numbers[name] for name in data["actions"]], np.int64)
            states = task.engine.vectors(np.array(data["states"]))
            end = End[str(data["end"]).upper()]
            index = int(data["run"])
        except KeyError as error:
            raise ConfigError(f"not a run of {task.name}: no {error} is known") from None
        except (ValueError, TypeError) as error:
            raise ConfigError(f"not a run of {task.name}: {error}") from None
        if len(states) != len(actions) + 1:
            raise ConfigError(
                f"not a run of {task.name}: {len(states)} states and {len(actions)} actions"
            )
        return cls(index, states, actions, end)


class Runs(Sequence[Run]):
    """Many runs, kept as flat arrays.

    Attributes:
        words: packed states of all runs, one run after the other.
        offsets: run r has the states ``offsets[r] : offsets[r + 1]``.
        actions: per state the action taken there, -1 in a run's last state.
        ends: `End` per run.
        indices: number of each run at its fuzzer.
    """

    def __init__(
        self,
        task: Task,
        words: NDArray[np.int64],
        actions: NDArray[np.int64],
        offsets: NDArray[np.int64],
        ends: NDArray[np.int64],
        indices: NDArray[np.int64],
    ) -> None:
        self.task = task
        self.words = words
        self.actions = actions
        self.offsets = offsets
        self.ends = ends
        self.indices = indices

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return self.take(np.arange(len(self))[place])
        number = range(len(self))[place]
        first, last = self.offsets[number], self.offsets[number + 1]
        return Run(
            int(self.indices[number]),
            self.task.engine.unpack(self.words[first:last]),
            self.actions[first : last - 1].copy(),
            End(int(self.ends[number])),
        )

    def __iter__(self) -> Iterator[Run]:
        for number in range(len(self)):
            yield self[number]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Actions per run."""
        return np.diff(self.offsets) - 1

    def take(self, chosen: NDArray[np.int64]) -> Runs:
        """Some of the runs."""
        sizes = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        rows = np.repeat(self.offsets[chosen] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return Runs(
            self.task,
            self.words[rows],
            self.actions[rows],
            offsets,
            self.ends[chosen],
            self.indices[chosen],
        )

    def unsafe(self) -> Runs:
        """Those that end in a failing state."""
        return self.take(np.flatnonzero(self.ends == End.FAILING))

    def count(self, end: Any) -> int:
        """How many runs end so."""
        return int((self.ends == int(end)).sum())

    def counts(self) -> dict[str, int]:
        """How many runs end in each way, by the lower-case names of `End`."""
        return {end.name.lower(): self.count(end) for end in End}

    @classmethod
    def of(cls, task: Task, runs: Sequence[Run]) -> Runs:
        """From single runs."""
        if isinstance(runs, Runs):
            return runs
        sizes = [len(run.states) for run in runs]
        states = [run.states for run in runs]
        words = task.engine.pack(
            np.concatenate(states) if states else np.empty((0, task.num_variables), task.dtype)
        )
        last = np.array([-1], np.int64)
        parts = [part for run in runs for part in (run.actions, last)]
        return cls(
            task,
            words,
            np.concatenate(parts).astype(np.int64) if parts else np.empty(0, np.int64),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.array([run.end for run in runs], np.int64),
            np.array([run.index for run in runs], np.int64),
        )

    @classmethod
    def join(cls, task: Task, parts: Sequence[Runs]) -> Runs:
        """Several batches as one."""
        if len(parts) == 1:
            return parts[0]
        shifts = np.cumsum([0, *(len(part.words) for part in parts)])
        offsets = [part.offsets[:-1] + shift for part, shift in zip(parts, shifts, strict=False)]
        empty = np.empty(0, np.int64)
        return cls(
            task,
            np.concatenate(
                [np.empty((0, task.engine.num_words), np.int64)] + [part.words for part in parts]
            ),
            np.concatenate([empty, *(part.actions for part in parts)]),
            np.concatenate([*offsets, shifts[-1:]]).astype(np.int64),
            np.concatenate([empty, *(part.ends for part in parts)]),
            np.concatenate([empty, *(part.indices for part in parts)]),
        )
