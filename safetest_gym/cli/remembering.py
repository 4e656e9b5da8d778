"""``task.json`` in the folders that commands write, so that a report finds the task again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from safetest_gym.cli.options import read_constants
from safetest_gym.cli.subject import bundled_name, read_parameters

if TYPE_CHECKING:
    from safetest_gym.reports import TaskSource

__all__ = ["remember_task"]


def remember_task(
    folder: Path,
    model: Path,
    properties: Path | None,
    choice: str | None,
    constants: Sequence[str] | None,
    action_mode: Literal["edge", "label"] = "label",
) -> None:
    """Write how the task was loaded into ``folder``, if a command made it."""
    if not folder.is_dir():
        return
    from safetest_gym.reports import write_task_file

    write_task_file(folder, _source(folder, model, properties, choice, constants, action_mode))


def _source(
    folder: Path,
    model: Path,
    properties: Path | None,
    choice: str | None,
    constants: Sequence[str] | None,
    action_mode: Literal["edge", "label"],
) -> TaskSource:
    from safetest_gym.reports import TaskSource

    name = bundled_name(model)
    given = constants or []
    return TaskSource(
        model=_seen_from(folder, model) if name is None else name,
        properties=None if properties is None else _seen_from(folder, properties),
        property=choice,
        constants=read_constants(given) if name is None else read_parameters(given),
        action_mode=action_mode,
    )


def _seen_from(folder: Path, file: Path) -> str:
    return Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()
