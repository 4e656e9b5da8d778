"""The folder of a training's safety tests: JSON Lines, arrays, faults, the best model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm

from safetest_gym.callbacks.json_lines import JsonLines, Record
from safetest_gym.errors import StoreError
from safetest_gym.faults import FaultStore
from safetest_gym.policies import save_sb3_interface
from safetest_gym.replacing import replace_file
from safetest_gym.task import Task

__all__ = ["Record", "Records"]


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
        if folder is None:
            self.store = FaultStore(":memory:")
            return
        folder.mkdir(parents=True, exist_ok=True)
        self._lines = JsonLines(folder / "safety.jsonl", task)
        if self._lines.path.exists() and not resume:
            raise StoreError(
                f"{folder} has the records of another training; pass resume=True to go on "
                "with them, or another folder"
            )
        self.history += self._lines.resumed()
        self.store = FaultStore(folder / "faults.sqlite")

    def add(self, record: Record) -> None:
        """Append the record of a test."""
        self.history.append(record)
        if self.folder is None:
            return
        self._lines.add(record)
        columns: dict[str, Any] = {
            name: np.array([entry[name] for entry in self.history]) for name in record
        }
        replace_file(self.folder / "safety.npz", lambda path: np.savez(path, **columns))

    def save_best(self, model: BaseAlgorithm) -> None:
        """Write the model, what `load_policy` needs beside it, and VecNormalize's statistics."""
        if self.folder is None:
            return
        path = self.folder / "best_safe_model.zip"
        replace_file(path, model.save)
        save_sb3_interface(model, path)
        normalize = model.get_vec_normalize_env()
        if normalize is not None:
            target = self.folder / "best_safe_model_vecnormalize.pkl"
            replace_file(target, lambda fresh: normalize.save(str(fresh)))
