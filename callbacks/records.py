"""The folder of a training's safety tests: JSON Lines, arrays, faults, the best model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm

from safetest_gym.errors import StoreError
from safetest_gym.faults import FaultStore
from safetest_gym.policies import save_sb3_interface
from safetest_gym.task import Task

__all__ = ["Records"]

Record = dict[str, Any]


class Records:
    """What tests found, in memory and, with a folder, on disk.

    Every line of ``safety.jsonl`` is on disk before training goes on; a line that a kill
    cut short is dropped when training is resumed.

    Args:
        folder: None to keep everything in memory.
        resume: go on with what is in the folder; without, it must be empty of records.
    """

    def __init__(self, task: Task, folder: Path | None, *, resume: bool) -> None:
        self.folder = folder
        self.history: list[Record] = []
        self._digest = task.digest
        if folder is None:
            self.store = FaultStore(":memory:")
            return
        folder.mkdir(parents=True, exist_ok=True)
        if self._lines.exists():
            if not resume:
                raise StoreError(
                    f"{folder} has the records of another training; pass resume=True to go on "
                    "with them, or another folder"
                )
            self._read(task)
        self.store = FaultStore(folder / "faults.sqlite")

    @property
    def _lines(self) -> Path:
        assert self.folder is not None
        return self.folder / "safety.jsonl"

    def _read(self, task: Task) -> None:
        kept = []
        for line in self._lines.read_text(encoding="utf-8").splitlines(keepends=True):
            if not line.endswith("\n"):
                break
            record = json.loads(line)
            if record.pop("task") != self._digest:
                raise StoreError(
                    f"{self._lines} has records of another task than {task.name}; use another "
                    "folder"
                )
            self.history.append(record)
            kept.append(line)
        _replace(self._lines, lambda path: path.write_text("".join(kept), encoding="utf-8"))

    def add(self, record: Record) -> None:
        """Append the record of a test."""
        self.history.append(record)
        if self.folder is None:
            return
        with self._lines.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**record, "task": self._digest}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        columns: dict[str, Any] = {
            name: np.array([entry[name] for entry in self.history]) for name in record
        }
        _replace(self.folder / "safety.npz", lambda path: np.savez(path, **columns))

    def save_best(self, model: BaseAlgorithm) -> None:
        """Write the model, what `load_policy` needs beside it, and VecNormalize's statistics."""
        if self.folder is None:
            return
        path = self.folder / "best_safe_model.zip"
        _replace(path, model.save)
        save_sb3_interface(model, path)
        normalize = model.get_vec_normalize_env()
        if normalize is not None:
            target = self.folder / "best_safe_model_vecnormalize.pkl"
            _replace(target, lambda fresh: normalize.save(str(fresh)))


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    """Write under another name first, so that ``path`` is always complete."""
    fresh = path.with_name(f"{path.stem}.new{path.suffix}")
    write(fresh)
    fresh.replace(path)
