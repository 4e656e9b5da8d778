"""The task a command is about, where it is a bundled one and not a JANI file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["Subject", "bundled_name", "open_bundled", "read_parameters"]

_ID = re.compile(r"(?:safetest/)?([A-Za-z]+)(?:-v0)?")


@dataclass(frozen=True, slots=True)
class Subject:
    """A task and what belongs to it as an environment.

    Attributes:
        generator: of the bundled task, None for a model.
        observed: names of the variables a learner is to see, None for all.
        step_limit: of an episode.
    """

    task: Task
    generator: object = None
    observed: tuple[str, ...] | None = None
    step_limit: int = 1000


def bundled_name(model: Path) -> str | None:
    """The name in ``safetest/NAME-v0`` or ``NAME``, None if this looks like a file.

    >>> bundled_name(Path("safetest/OneWayLine-v0")), bundled_name(Path("line.jani"))
    ('OneWayLine', None)
    """
    found = _ID.fullmatch(model.as_posix())
    return None if found is None or model.exists() else found[1]


def open_bundled(name: str, constants: Sequence[str], arguments: dict[str, Any]) -> Subject:
    """A bundled task; ``constants`` are ``NAME=VALUE`` texts of its parameters.

    Values are JSON or words; ``arguments`` are those of `safetest_gym.task.load_task`.
    """
    # By name, because the core knows no face; these load only for bundled tasks.
    bundled: Any = import_module("safetest_gym.envs.bundled")
    options: Any = import_module("safetest_gym.envs.options")
    generator, environment = bundled.split_arguments(name, read_parameters(constants))
    task, found = options.open_task(generator, {**environment, **arguments})
    observed = None if found.observed is None else tuple(found.observed)
    return Subject(task, generator, observed, found.step_limit)


def read_parameters(texts: Sequence[str]) -> dict[str, Any]:
    """``NAME=VALUE`` texts of a bundled task's parameters; values are JSON or words."""
    parameters: dict[str, Any] = {}
    for text in texts:
        name, separator, value = (part.strip() for part in text.partition("="))
        if not separator or not name:
            raise typer.BadParameter(f"expected NAME=VALUE, got {text!r}", param_hint="--const")
        if name in parameters:
            raise typer.BadParameter(f"{name} is given twice", param_hint="--const")
        try:
            parameters[name] = json.loads(value)
        except ValueError:
            parameters[name] = value
    return parameters
