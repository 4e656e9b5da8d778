"""Faults of a store, read without their task and without touching the file."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetest_gym.errors import StoreError
from safetest_gym.faults.store_file import address_to_read

__all__ = ["FaultList", "FaultRow", "read_faults"]

_FAULTS = (
    "SELECT id, state, action, outcome, alternatives, run, step, count, fixed FROM faults "
    "WHERE task = ? ORDER BY fixed, count DESC, id"
)


@dataclass(frozen=True, slots=True)
class FaultRow:
    """A stored fault; states are lists of numbers in the order of the list's variables.

    Attributes:
        history: what happened to it and with which version of the policy, in order.
    """

    number: int
    state: list[float]
    action: str
    outcome: list[float]
    alternatives: list[str]
    run: int
    step: int
    count: int
    fixed: bool
    history: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FaultList:
    """A task's faults in one store: open ones first, of these the most frequent."""

    name: str
    task: str
    digest: str
    variables: list[str]
    faults: list[FaultRow]

    @property
    def open(self) -> int:
        """How many are not fixed."""
        return sum(not fault.fixed for fault in self.faults)


def read_faults(path: Path, name: str) -> list[FaultList]:
    """Every task's faults; nothing if the file is another program's database.

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        with closing(sqlite3.connect(address_to_read(path), uri=True)) as connection:
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
            if not {"about", "faults", "history", "tasks"} <= tables:
                return []
            return [_read_task(connection, name, row) for row in _tasks(connection)]
    except (sqlite3.Error, ValueError) as error:
        raise StoreError(f"{path} cannot be read as a fault store: {error}") from None


def _tasks(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    return connection.execute("SELECT digest, name, variables FROM tasks ORDER BY name").fetchall()


def _read_task(connection: sqlite3.Connection, name: str, row: tuple[str, str, str]) -> FaultList:
    digest, task, variables = row
    events: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for fault, what, policy in connection.execute(
        "SELECT fault, what, policy FROM history ORDER BY id"
    ):
        events[fault].append((what, policy))
    faults = [_row(found, events) for found in connection.execute(_FAULTS, (digest,))]
    return FaultList(name, task, digest, json.loads(variables), faults)


def _row(found: tuple[Any, ...], events: dict[int, list[tuple[str, str]]]) -> FaultRow:
    number, state, action, outcome, alternatives, run, step, count, fixed = found
    return FaultRow(
        number,
        json.loads(state),
        action,
        json.loads(outcome),
        json.loads(alternatives),
        run,
        step,
        count,
        bool(fixed),
        tuple(events[number]),
    )
