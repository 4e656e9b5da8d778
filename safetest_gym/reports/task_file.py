"""``task.json``: how to load a folder's task again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from safetest_gym.errors import StoreError
from safetest_gym.replacing import replace_file
from safetest_gym.reports.sources import read_json
from safetest_gym.task import ActionMode

__all__ = ["FILES", "TaskSource", "read_task_file", "write_task_file"]

FILES = (".jani", ".json")
"""How names of files end, which tells them from conditions as text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskSource:
    """What the commands are given to load a task.

    Attributes:
        model: a JANI file, seen from the folder of ``task.json``, or a bundled task.
        constants: open constants of a model, or parameters of a bundled task.
        failure, goal, start: instead of the property's, where they were given: a file, seen
            from the folder as well, or text.
    """

    model: str
    properties: str | None = None
    property: str | int | None = None
    constants: Mapping[str, Any] = field(default_factory=dict)
    action_mode: ActionMode = "label"
    failure: str | None = None
    goal: str | None = None
    start: str | None = None


def write_task_file(folder: str | Path, source: TaskSource) -> Path:
    """Write ``task.json``, so that a report of the folder needs no options."""
    path = Path(folder) / "task.json"
    text = json.dumps(asdict(source), indent=1) + "\n"
    replace_file(path, lambda fresh: fresh.write_text(text, encoding="utf-8"))
    return path


def read_task_file(path: Path) -> TaskSource:
    """The inverse of `write_task_file`; paths are seen from here again."""
    data = read_json(path)
    try:
        source = TaskSource(**data)
    except TypeError as error:
        raise StoreError(f"{path}: {error}") from None
    return source
