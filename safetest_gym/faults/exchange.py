"""Faults to and from other programs: JSON Lines, CSV, and JANI start states."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetest_gym.errors import StoreError
from safetest_gym.faults.fault import Fault

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["read_csv", "read_jsonl", "write_csv", "write_jsonl", "write_start_states"]

_SEEN = ("run", "step", "start_safe", "count", "radius")


def write_jsonl(path: str | Path, task: Task, faults: Iterable[Fault]) -> None:
    """One JSON object per line and fault, with names."""
    with Path(path).open("w", encoding="utf-8") as file:
        for fault in faults:
            file.write(json.dumps({"task": task.digest, **fault.as_dict(task)}) + "\n")


def read_jsonl(path: str | Path, task: Task) -> list[Fault]:
    """The inverse of `write_jsonl`; faults of other tasks are refused."""
    lines = enumerate(_text(path).split("\n"), 1)
    return [_read(line, f"{path}, line {number}", task) for number, line in lines if line.strip()]


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise StoreError(f"{path} holds no faults: {error}") from None


def _read(line: str, where: str, task: Task) -> Fault:
    try:
        data = json.loads(line)
        if not isinstance(data, dict):
            raise StoreError("expected an object")
        return _fault(data, task)
    except ValueError as error:
        raise StoreError(f"{where}: {error}") from None


def _fault(data: dict[str, Any], task: Task) -> Fault:
    if data.get("task", task.digest) != task.digest:
        raise StoreError("a fault of another task (model, property or constants)")
    return Fault.from_dict(data, task)


def write_csv(path: str | Path, task: Task, faults: Iterable[Fault]) -> None:
    """One row per fault; columns ``state.x`` and ``outcome.x`` per variable x."""
    names = [variable.name for variable in task.variables]
    header = _columns(task)
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for fault in faults:
            data = fault.as_dict(task)
            row = [data["action"], json.dumps(data["alternatives"])]
            row += [json.dumps(data[name]) for name in _SEEN]
            row += [json.dumps(data[part][n]) for part in ("state", "outcome") for n in names]
            writer.writerow([*row, task.digest])


def _columns(task: Task) -> list[str]:
    names = [variable.name for variable in task.variables]
    values = [f"{part}.{name}" for part in ("state", "outcome") for name in names]
    return ["action", "alternatives", *_SEEN, *values, "task"]


def read_csv(path: str | Path, task: Task) -> list[Fault]:
    """The inverse of `write_csv`; faults of other tasks are refused."""
    reader = csv.DictReader(io.StringIO(_text(path), newline=""))
    missing = sorted(set(_columns(task)) - set(reader.fieldnames or ()) - {"task"})
    if missing:
        raise StoreError(
            f"{path} holds no faults of {task.name}: there is no column {', '.join(missing)}"
        )
    faults = []
    for number, row in enumerate(reader, 2):
        try:
            faults.append(_fault(_nested(row), task))
        except ValueError as error:
            raise StoreError(f"{path}, line {number}: {error}") from None
    return faults


def _nested(row: dict[str, str]) -> dict[str, Any]:
    data: dict[str, Any] = {"state": {}, "outcome": {}}
    for column, text in row.items():
        part, dot, name = (column or "").partition(".")
        if text is None or column is None:
            raise StoreError("more or fewer values than columns")
        if dot and part in ("state", "outcome"):
            data[part][name] = json.loads(text)
        else:
            data[column] = text if column in ("action", "task") else json.loads(text)
    return data


def write_start_states(path: str | Path, task: Task, faults: Sequence[Fault]) -> None:
    """The faults' states as JANI ``states-values``, which tools read as start states."""
    values = [
        {"variables": [{"var": v, "value": x} for v, x in task.as_dict(fault.state).items()]}
        for fault in faults
    ]
    document = {"op": "states-values", "values": values}
    Path(path).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
