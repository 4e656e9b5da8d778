"""What there is to report: a folder and the two levels below it, read as plain data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetest_gym.errors import StoreError

__all__ = ["Loop", "Results", "Sources", "Tests", "Training", "read_json", "read_sources"]

_DEPTH = 2
_NOT_ENTERED = {"checkpoints", "logs", "policies"}
_STORES = {".db", ".sqlite"}

Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tests:
    """Records of a `SafetyTestCallback`, one per test.

    Attributes:
        name: the folder below the reported one, ``.`` for itself.
        digest: of the task that was trained on; empty without a record.
        repairs: of a `RepairCallback`, one per attempt.
    """

    name: str
    folder: Path
    records: list[Data]
    digest: str
    repairs: list[Data] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Training:
    """A folder of ``safetest-gym train``.

    Attributes:
        options: of the run.
        history: an evaluation per interval.
        evaluation: of the final policy; None while the run has not finished.
    """

    name: str
    folder: Path
    options: Data
    history: list[Data]
    evaluation: Data | None


@dataclass(frozen=True, slots=True)
class Loop:
    """``loop.json`` of a debugging loop."""

    name: str
    folder: Path
    data: Data

    @property
    def iterations(self) -> list[Data]:
        """One entry per round, the first before any repair."""
        return list(self.data.get("iterations", ()))


@dataclass(frozen=True, slots=True)
class Results:
    """``results.json``: a table that its author wants on top.

    Each row has a ``name`` and, where known, ``unsafe_rate``, ``goal_rate`` (fractions),
    ``faults`` and ``verdict``; the first is the state before, the last the one after.
    """

    title: str
    rows: list[Data]


@dataclass(slots=True)
class Sources:
    """Everything that was found, in the order of folder names."""

    directory: Path
    results: list[Results] = field(default_factory=list)
    trainings: list[Training] = field(default_factory=list)
    tests: list[Tests] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    stores: list[Path] = field(default_factory=list)
    task_files: list[Path] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Is there nothing to report?"""
        return not (self.results or self.trainings or self.tests or self.loops or self.stores)

    def name_of(self, path: Path) -> str:
        """A path below the folder, for people."""
        return path.relative_to(self.directory).as_posix()


def read_sources(directory: Path) -> Sources:
    """Read a folder and its sub-folders.

    Raises:
        StoreError: it is no folder, has nothing of ours, or a file in it is broken.
    """
    if not directory.is_dir():
        raise StoreError(f"{directory} is no folder; give the folder of a training or a loop")
    found = Sources(directory)
    for folder in _folders(directory, _DEPTH):
        _read_folder(folder, found)
    if found.empty:
        raise StoreError(
            f"{directory} has nothing to report: it needs safety.jsonl (SafetyTestCallback), "
            "run.json (safetest-gym train), loop.json or a fault store, in it or at most two "
            "folders below"
        )
    return found


def _folders(folder: Path, depth: int) -> Iterator[Path]:
    yield folder
    if depth:
        for entry in sorted(folder.iterdir()):
            if entry.is_dir() and entry.name not in _NOT_ENTERED and entry.name[0] != ".":
                yield from _folders(entry, depth - 1)


def _read_folder(folder: Path, found: Sources) -> None:
    name = found.name_of(folder)
    if (folder / "results.json").exists():
        data = read_json(folder / "results.json")
        found.results.append(Results(str(data.get("title", "Results")), data.get("rows", [])))
    if (folder / "run.json").exists():
        found.trainings.append(_read_training(name, folder))
    if (folder / "safety.jsonl").exists():
        found.tests.append(_read_tests(name, folder))
    if (folder / "loop.json").exists():
        found.loops.append(Loop(name, folder, read_json(folder / "loop.json")))
    if (folder / "task.json").exists():
        found.task_files.append(folder / "task.json")
    found.stores += sorted(file for file in folder.iterdir() if file.suffix in _STORES)


def _read_training(name: str, folder: Path) -> Training:
    options, history, evaluation = read_json(folder / "run.json"), [], None
    if (folder / "summary.json").exists():
        summary = read_json(folder / "summary.json")
        history, evaluation = summary.get("history", []), summary.get("evaluation")
    else:
        kept = (folder / "checkpoints").glob("[0-9]*/progress.json")
        newest = max(kept, key=lambda file: int(file.parent.name), default=None)
        if newest is not None:
            history = read_json(newest).get("history", [])
    return Training(name, folder, options, history, evaluation)


def _read_tests(name: str, folder: Path) -> Tests:
    records = _read_lines(folder / "safety.jsonl", "a test")
    digest = str(records[-1]["task"]) if records else ""
    repairs = []
    if (folder / "repair.jsonl").exists():
        repairs = _read_lines(folder / "repair.jsonl", "a repair")
    return Tests(name, folder, records, digest, repairs)


def _read_lines(path: Path, what: str) -> list[Data]:
    """JSON Lines, each with the digest of its task and the number of steps."""
    records = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(keepends=True), 1):
        if not line.endswith("\n"):
            break  # a kill cut it short
        try:
            record = json.loads(line)
            _ = record["task"], record["steps"]
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path}, line {number} is no record of {what}: {error}") from None
        records.append(record)
    return records


def read_json(path: Path) -> Data:
    """An object from a file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StoreError(f"{path} is no JSON: {error}") from None
    if not isinstance(data, dict):
        raise StoreError(f"{path} must hold a JSON object")
    return data
