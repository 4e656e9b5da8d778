"""Records on disk, one JSON object per line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from safetest_gym.errors import StoreError
from safetest_gym.replacing import replace_file
from safetest_gym.task import Task

__all__ = ["JsonLines", "Record"]

Record = dict[str, Any]


class JsonLines:
    """Records about one task, on disk before training goes on.

    Every line names the task by its digest. A line that a kill cut short is dropped when
    the file is read again.
    """

    def __init__(self, path: Path, task: Task) -> None:
        self.path, self._task = path, task

    def resumed(self) -> list[Record]:
        """The records so far; none if there is no file.

        Raises:
            StoreError: a line is broken, or about another task.
        """
        if not self.path.exists():
            return []
        text = self.path.read_text(encoding="utf-8")
        kept = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
        records = [self._record(number, line) for number, line in enumerate(kept, 1)]
        replace_file(self.path, lambda path: path.write_text("".join(kept), encoding="utf-8"))
        return records

    def _record(self, number: int, line: str) -> Record:
        try:
            record: Record = json.loads(line)
            digest = record.pop("task")
        except (ValueError, KeyError, AttributeError, TypeError):
            raise StoreError(
                f"{self.path}, line {number} is no record; mend or remove it, or use another folder"
            ) from None
        if digest != self._task.digest:
            raise StoreError(
                f"{self.path} has records of another task than {self._task.name}; use another "
                "folder"
            )
        return record

    def add(self, record: Record) -> None:
        """Append a record."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**record, "task": self._task.digest}) + "\n")
            file.flush()
            os.fsync(file.fileno())
