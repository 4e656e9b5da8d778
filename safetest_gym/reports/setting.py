"""The task of a folder, found again by its digest, and how its states are drawn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

from safetest_gym.errors import SafetestError
from safetest_gym.reports.task_file import FILES, TaskSource, read_task_file
from safetest_gym.task import Task, load_task

__all__ = ["Setting", "Settings", "setting_of"]

_NUMBER = re.compile(r"(?:0|[1-9]\d*)(?:\.\d+)?")


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """A task and its picture.

    Attributes:
        picture: name of the picture of its states.
        parameters: what pictures may know besides the state.
        step_limit: of a run.
    """

    task: Task
    picture: str = "table"
    parameters: Mapping[str, object] | None = None
    step_limit: int = 1000


def setting_of(task: Task, generator: object = None) -> Setting:
    """The setting of a loaded task; ``generator`` of a bundled one, for its picture."""
    if generator is None:
        return Setting(task, parameters=dict(task.model.constants))
    return _open_generator(type(generator).__name__, generator, task)


def _open_generator(name: str, generator: object, task: Task | None = None) -> Setting:
    # By name, because the core knows no face; these load only for bundled tasks.
    bundled: Any = import_module("safetest_gym.envs.bundled")
    options: Any = import_module("safetest_gym.envs.options")
    _, arguments = bundled.split_arguments(name, {})
    opened, found = options.open_task(generator, arguments)
    return Setting(task or opened, found.picture, found.parameters, found.step_limit)


class Settings:
    """Tasks by digest: the one given, those of ``task.json`` files, the bundled ones.

    Bundled tasks have their default parameters, or those that the task's name tells.

    Attributes:
        problems: why a ``task.json`` was of no use.
    """

    def __init__(self, given: Setting | None, task_files: Sequence[Path]) -> None:
        self.problems: list[str] = []
        self._known: dict[str, Setting] = {}
        self._bundled = _bundled_settings()
        for path in task_files:
            try:
                self._add(_open(read_task_file(path), path.parent))
            except (SafetestError, ExceptionGroup, OSError) as error:
                self.problems.append(f"{path.name} of {path.parent.name}: {error}")
        if given is not None:
            self._add(given)

    def _add(self, setting: Setting) -> None:
        self._known[setting.task.digest] = setting

    def find(self, digest: str, name: str = "") -> Setting | None:
        """The setting of the task with this digest and, where it is known, this name."""
        if digest not in self._known:
            for guessed in _named_settings(name):
                self._known.setdefault(guessed.task.digest, guessed)
        while digest not in self._known:
            opened = next(self._bundled, None)
            if opened is None:
                return None
            self._known.setdefault(opened.task.digest, opened)
        return self._known[digest]


def _named_settings(name: str) -> Iterator[Setting]:
    """Bundled tasks whose name, but for the numbers in it, is this one.

    The numbers are those of the first parameters that are numbers, as in
    ``one_way_line_15_10_det``. That is a guess; who asks compares digests.
    """
    tasks: Any = import_module("safetest_gym.envs.tasks")
    numbers = [json.loads(number) for number in _NUMBER.findall(name)]
    for kind in tasks.NAMES:
        plain = tasks.make_generator(kind, {})
        if not numbers or _NUMBER.sub("#", plain.name) != _NUMBER.sub("#", name):
            continue
        values = {field.name: getattr(plain, field.name) for field in fields(plain)}
        counted = [key for key, value in values.items() if type(value) in (int, float)]
        try:
            yield _open_generator(kind, tasks.make_generator(kind, dict(zip(counted, numbers))))  # noqa: B905  # a name tells some of them
        except SafetestError:
            continue  # no such task


def _bundled_settings() -> Iterator[Setting]:
    """Every bundled task with its default parameters; half a second for all."""
    tasks: Any = import_module("safetest_gym.envs.tasks")
    for name in tasks.NAMES:
        yield _open_generator(name, tasks.make_generator(name, {}))


def _open(source: TaskSource, folder: Path) -> Setting:
    tasks: Any = import_module("safetest_gym.envs.tasks")
    name = source.model.removeprefix("safetest/").removesuffix("-v0")
    loading: dict[str, Any] = {
        part: _seen_from(folder, text)
        for part in ("failure", "goal", "start")
        if (text := getattr(source, part)) is not None
    }
    if source.properties is not None:
        loading["properties"] = folder / source.properties
    if source.property is not None:
        loading["property"] = source.property
    loading["action_mode"] = source.action_mode
    if name not in tasks.NAMES:
        return setting_of(load_task(folder / source.model, constants=source.constants, **loading))
    bundled: Any = import_module("safetest_gym.envs.bundled")
    options: Any = import_module("safetest_gym.envs.options")
    generator, arguments = bundled.split_arguments(name, dict(source.constants))
    task, found = options.open_task(generator, {**arguments, **loading})
    return Setting(task, found.picture, found.parameters, found.step_limit)


def _seen_from(folder: Path, text: str) -> str | Path:
    return folder / text if Path(text).suffix in FILES else text
