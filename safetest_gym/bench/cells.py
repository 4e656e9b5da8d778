"""Measured cells as JSON Lines: what is there is not measured again."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from safetest_gym.bench.experiment import Cell, Facts, Row
from safetest_gym.errors import ConfigError

__all__ = ["CellFile"]


class CellFile:
    """One line per cell; a line that a kill cut short does not count and is removed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, Facts | None] = {}
        if path.exists():
            self._read()

    def _read(self) -> None:
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        for number, line in enumerate(whole.decode("utf-8").splitlines(), 1):
            try:
                entry = json.loads(line)
                self._known[_key(entry["cell"])] = entry["facts"]
            except (ValueError, KeyError, TypeError):
                raise ConfigError(
                    f"{self.path}, line {number} is no measured cell; remove the line, or give "
                    "another folder"
                ) from None
        if len(whole) < len(data):
            with self.path.open("r+b") as file:
                file.truncate(len(whole))

    def __contains__(self, cell: Cell) -> bool:
        return _key(cell) in self._known

    def add(self, cell: Cell, facts: Facts | None) -> None:
        """Write a cell; it is on the disk when this returns."""
        entry = json.dumps({"cell": cell, "facts": facts})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(entry + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._known[_key(cell)] = json.loads(entry)["facts"]

    def rows(self, plan: Sequence[Cell]) -> list[Row]:
        """Those of these cells that are measured, in their order."""
        return [Row(cell, self._known[_key(cell)]) for cell in plan if cell in self]


def _key(cell: Cell) -> str:
    return json.dumps(cell, sort_keys=True)
