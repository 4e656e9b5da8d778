"""``task.json`` in the folders that commands write, so that a report finds the task again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetest_gym.cli.options import LoadingOptions, read_constants
from safetest_gym.cli.subject import bundled_name, read_parameters

if TYPE_CHECKING:
    from safetest_gym.reports import TaskSource

__all__ = ["remember_task"]


def remember_task(folder: Path, options: LoadingOptions) -> None:
    """Write how the task was loaded into ``folder``, if a command made it."""
    if not folder.is_dir():
        return
    from safetest_gym.reports import write_task_file

    write_task_file(folder, _source(folder, options))


def _source(folder: Path, options: LoadingOptions) -> TaskSource:
    from safetest_gym.reports import TaskSource
    from safetest_gym.reports.task_file import FILES

    def seen(name: str) -> str | None:
        text: str | None = getattr(options, name, None)
        if text is None or Path(text).suffix not in FILES:
            return text
        return _seen_from(folder, Path(text))

    name = bundled_name(options.model)
    given = options.constants or []
    beside: dict[str, Any] = {part: seen(part) for part in ("failure", "goal", "start")}
    return TaskSource(
        model=_seen_from(folder, options.model) if name is None else name,
        properties=None if options.properties is None else _seen_from(folder, options.properties),
        property=options.choice,
        constants=read_constants(given) if name is None else read_parameters(given),
        action_mode=getattr(options, "mode", "label"),
        **beside,
    )


def _seen_from(folder: Path, file: Path) -> str:
    return Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()
