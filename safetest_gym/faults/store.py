"""Faults in an SQLite file that several processes may write and that survives any kill."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from safetest_gym.deciders.verdict import Verdict
from safetest_gym.errors import StoreError
from safetest_gym.faults.fault import Fault
from safetest_gym.faults.store_file import StoreFile
from safetest_gym.policies import Policy

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["Added", "Chunk", "Event", "FaultStore", "StoredFault"]

_HISTORY = (
    "SELECT fault, what, at, policy FROM history JOIN faults ON faults.id = fault "
    "WHERE task = ? ORDER BY history.id"
)


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a fault's history; times are seconds since 1970.

    ``found`` first, ``seen`` once per later policy, ``fixed``, and ``reopened`` when it was
    found again after that.
    """

    what: Literal["found", "seen", "fixed", "reopened"]
    at: float
    policy: str


@dataclass(frozen=True, slots=True, eq=False)
class StoredFault:
    """A fault with its history."""

    fault: Fault
    fixed: bool
    history: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Added:
    """What `FaultStore.add` did: positions of the new faults, and how many were known."""

    new: tuple[int, ...]
    known: int
    reopened: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a long job that is done once its faults are stored; JSON data to keep."""

    job: str
    number: int
    result: dict[str, Any]


class FaultStore:
    """Faults by (task, state, action) in one file.

    What `add` was given is on disk when it returns. Objects may be pickled and shared by
    processes: each opens the file itself.

    Args:
        clock: seconds since 1970.
    """

    def __init__(self, path: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(path)
        self._clock = clock
        self._file = StoreFile(self.path)
        with self._file.reading():
            pass  # so that a file that is no store is told of at once

    def __getstate__(self) -> tuple[Path, Callable[[], float]]:
        return self.path, self._clock

    def __setstate__(self, state: tuple[Path, Callable[[], float]]) -> None:
        self.path, self._clock = state
        self._file = StoreFile(self.path)

    def __enter__(self) -> FaultStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        self._file.close()

    def add(
        self, task: Task, faults: Sequence[Fault], *, policy: str = "", chunk: Chunk | None = None
    ) -> Added:
        """Store faults, those already known too; on disk when this returns.

        Args:
            policy: version of the policy that has them, for the history.
            chunk: marks a piece of a job as done in the same step.
        """
        new: list[int] = []
        known = reopened = 0
        with self._file.writing() as connection:
            _add_task(connection, task)
            for place, fault in enumerate(faults):
                what = _add_fault(connection, task, fault, Event("found", self._clock(), policy))
                if what == "found":
                    new.append(place)
                known += what in ("seen", "known")
                reopened += what == "reopened"
            if chunk is not None:
                connection.execute(
                    "INSERT OR REPLACE INTO chunks VALUES (?, ?, ?)",
                    (chunk.job, chunk.number, json.dumps(chunk.result)),
                )
        return Added(tuple(new), known, reopened)

    def chunks(self, job: str) -> dict[int, dict[str, Any]]:
        """Pieces of a job that are done, with what was kept of them."""
        query = "SELECT number, result FROM chunks WHERE job = ? ORDER BY number"
        with self._file.reading() as connection:
            rows = connection.execute(query, (job,)).fetchall()
        return {number: json.loads(result) for number, result in rows}

    def count(self, task: Task, *, fixed: bool | None = None) -> int:
        """How many faults of the task are stored."""
        query = "SELECT count(*) FROM faults WHERE task = ?"
        query += "" if fixed is None else f" AND fixed = {int(fixed)}"
        with self._file.reading() as connection:
            count: int = connection.execute(query, (task.digest,)).fetchone()[0]
        return count

    def faults(self, task: Task, *, fixed: bool | None = None) -> list[StoredFault]:
        """The task's faults in the order they were first stored.

        Args:
            fixed: only those that are, or are not; by default all.
        """
        query = (
            "SELECT id, state, action, outcome, alternatives, run, step, start, count, radius, "
            "fixed FROM faults WHERE task = ?"
        )
        query += "" if fixed is None else f" AND fixed = {int(fixed)}"
        events: dict[int, list[Event]] = defaultdict(list)
        with self._file.reading() as connection:
            rows = connection.execute(f"{query} ORDER BY id", (task.digest,)).fetchall()
            for fault, *event in connection.execute(_HISTORY, (task.digest,)):
                events[fault].append(Event(*event))
        return [
            StoredFault(_fault_of(task, row[1:10]), bool(row[10]), tuple(events[row[0]]))
            for row in rows
        ]

    def update(self, task: Task, policy: Policy, version: str) -> tuple[int, int]:
        """Ask a policy about every stored fault: how many are now fixed, and still open.

        Fixed means that it takes an action there that is known to be safe. Taking a third
        action settles nothing: the fault stays as it is.
        """
        from safetest_gym.fuzzing import PolicyGraph

        stored = self.faults(task)
        if not stored:
            return 0, 0
        graph = PolicyGraph(task, policy)
        numbers = graph.intern(np.array([entry.fault.state for entry in stored]))
        graph.expand(numbers)
        fixed = 0
        with self._file.writing() as connection:
            for entry, action in zip(stored, graph.action[numbers].tolist(), strict=True):
                now = entry.fixed
                if action in entry.fault.alternatives:
                    now = True
                elif action == entry.fault.action:
                    now = False
                if now != entry.fixed:
                    what: Literal["fixed", "reopened"] = "fixed" if now else "reopened"
                    event = Event(what, self._clock(), version)
                    _change(connection, task, entry.fault, event)
                fixed += now
        return fixed, len(stored) - fixed


def _key(task: Task, fault: Fault) -> tuple[str, str, str]:
    return task.digest, json.dumps(fault.state.tolist()), task.actions[fault.action]


def _add_task(connection: sqlite3.Connection, task: Task) -> None:
    variables = json.dumps([variable.name for variable in task.variables])
    connection.execute(
        "INSERT OR IGNORE INTO tasks VALUES (?, ?, ?, ?)",
        (task.digest, task.name, variables, json.dumps(list(task.actions))),
    )


def _add_fault(connection: sqlite3.Connection, task: Task, fault: Fault, event: Event) -> str:
    """Insert a fault or note that it was seen again; what its history says of that."""
    key = _key(task, fault)
    alternatives = json.dumps([task.actions[a] for a in fault.alternatives])
    row = connection.execute(
        "SELECT id, fixed, alternatives FROM faults WHERE task = ? AND state = ? AND action = ?",
        key,
    ).fetchone()
    if row is None:
        connection.execute(
            "INSERT INTO faults (task, state, action, outcome, alternatives, run, step, start, "
            "count, radius, fixed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
            (
                *key,
                json.dumps(fault.outcome.tolist()),
                alternatives,
                fault.run,
                fault.step,
                int(fault.start),
                fault.count,
                None if fault.radius == float("inf") else fault.radius,
            ),
        )
        _change(connection, task, fault, event)
        return "found"
    if fault.alternatives and row[2] == "[]":  # a budget had ended before one was found
        connection.execute(
            "UPDATE faults SET alternatives = ? WHERE id = ?", (alternatives, row[0])
        )
    if row[1]:
        _change(connection, task, fault, Event("reopened", event.at, event.policy))
        return "reopened"
    seen = connection.execute(
        "SELECT 1 FROM history WHERE fault = ? AND policy = ? LIMIT 1", (row[0], event.policy)
    ).fetchone()
    if seen is None:
        _change(connection, task, fault, Event("seen", event.at, event.policy))
        return "seen"
    return "known"


def _change(connection: sqlite3.Connection, task: Task, fault: Fault, event: Event) -> None:
    """Write an event, and what it says about being fixed."""
    key = _key(task, fault)
    where = "task = ? AND state = ? AND action = ?"
    connection.execute(
        "INSERT INTO history (fault, what, at, policy) "
        f"SELECT id, ?, ?, ? FROM faults WHERE {where}",
        (event.what, event.at, event.policy, *key),
    )
    if event.what in ("fixed", "reopened"):
        fixed = int(event.what == "fixed")
        connection.execute(f"UPDATE faults SET fixed = ? WHERE {where}", (fixed, *key))


def _fault_of(task: Task, row: tuple[Any, ...]) -> Fault:
    state, action, outcome, alternatives, run, step, start, count, radius = row
    try:
        return Fault(
            task.engine.vectors(np.array([json.loads(state)]))[0],
            task.actions.index(action),
            task.engine.vectors(np.array([json.loads(outcome)]))[0],
            tuple(task.actions.index(name) for name in json.loads(alternatives)),
            run,
            step,
            Verdict(start),
            count,
            float("inf") if radius is None else radius,
        )
    except (ValueError, TypeError) as error:
        raise StoreError(f"a stored fault does not fit {task.name}: {error}") from None
