"""Arguments and options that several commands share, and the task they describe."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

import typer

from safetest_gym.cli.subject import Subject, bundled_name, open_bundled

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = [
    "AsJson",
    "Constants",
    "LoadingOptions",
    "ModelFile",
    "PropertiesFile",
    "PropertyChoice",
    "check_output",
    "join_constants",
    "open_subject",
    "open_task",
    "read_constants",
]

ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="JANI file, or a bundled task such as safetest/OneWayLine-v0 or OneWayLine.",
        show_default=False,
    ),
]
PropertiesFile = Annotated[
    Path | None,
    typer.Option("--properties", metavar="FILE", help="JANI file with properties."),
]
PropertyChoice = Annotated[
    str | None,
    typer.Option(
        "--property",
        metavar="NAME|NUMBER",
        help="Which property to use, by name or by number from 0.",
    ),
]
Constants = Annotated[
    list[str] | None,
    typer.Option(
        "--const",
        metavar="NAME=VALUE",
        help="Value of an open constant, or of a bundled task's parameter; repeatable.",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else to standard output.")
]

_BINDING = re.compile(r"\s*([^=\s,-][^=,]*?)\s*=\s*([^=,]*?)\s*")


class LoadingOptions(Protocol):
    """What every command is given to load a task; some take a mode and conditions besides."""

    @property
    def model(self) -> Path: ...
    @property
    def constants(self) -> Sequence[str] | None: ...
    @property
    def properties(self) -> Path | None: ...
    @property
    def choice(self) -> str | None: ...


def join_constants(arguments: Sequence[str]) -> list[str]:
    """Let several values follow one ``--const``: repeat the option before each.

    >>> join_constants(["m.jani", "--const", "K=2", "N=3", "--json"])
    ['m.jani', '--const', 'K=2', '--const', 'N=3', '--json']
    """
    joined: list[str] = []
    place: Literal["elsewhere", "value", "more"] = "elsewhere"
    for argument in arguments:
        if argument == "--const":
            place = "value"
        elif place == "value":
            place = "more"
        elif place == "more" and _BINDING.fullmatch(argument):
            joined.append("--const")
        else:
            place = "elsewhere"
        joined.append(argument)
    return joined


def read_constants(texts: Sequence[str]) -> dict[str, bool | int | float]:
    """Read ``NAME=VALUE`` texts; one text may hold several, separated by commas.

    >>> read_constants(["N=3", "p=0.5,fair=true"])
    {'N': 3, 'p': 0.5, 'fair': True}
    """
    constants: dict[str, bool | int | float] = {}
    for text in (part for whole in texts for part in whole.split(",")):
        match = _BINDING.fullmatch(text)
        if match is None:
            raise typer.BadParameter(f"expected NAME=VALUE, got {text!r}", param_hint="--const")
        name, value = match.groups()
        if name in constants:
            raise typer.BadParameter(f"{name} is given twice", param_hint="--const")
        constants[name] = _read_value(name, value)
    return constants


def _read_value(name: str, text: str) -> bool | int | float:
    if text in ("true", "false"):
        return text == "true"
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    raise typer.BadParameter(
        f"{name} must be a number, true or false, got {text!r}", param_hint="--const"
    )


def check_output(option: str, path: Path | None, endings: Sequence[str] = ()) -> None:
    """Refuse a file that cannot be written, before the work whose result it is to hold."""
    if path is None:
        return
    if endings and path.suffix not in endings:
        listed = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise typer.BadParameter(f"expected a {listed} file, got {path}", param_hint=option)
    if path.is_dir() or not path.parent.is_dir():
        wrong = f"{path} is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise typer.BadParameter(wrong, param_hint=option)


def open_task(
    model: Path,
    properties: Path | None,
    choice: str | None,
    constants: Sequence[str] | None,
    action_mode: Literal["edge", "label"] = "label",
) -> Task:
    """Load the task that the options describe."""
    return open_subject(model, properties, choice, constants, action_mode).task


def open_subject(
    model: Path,
    properties: Path | None,
    choice: str | None,
    constants: Sequence[str] | None,
    action_mode: Literal["edge", "label"] = "label",
    conditions: Mapping[str, str | None] | None = None,
) -> Subject:
    """The same with what is known of a bundled task as an environment.

    Args:
        conditions: ``failure``, ``goal``, ``start`` instead of the property's, as
            `safetest_gym.task.load_task` takes them; None for the property's.
    """
    name = bundled_name(model)
    replaced = {part: text for part, text in (conditions or {}).items() if text is not None}
    if name is not None:
        given = {"properties": properties, "property": choice, **replaced}
        arguments = {key: value for key, value in given.items() if value is not None}
        return open_bundled(name, constants or [], {**arguments, "action_mode": action_mode})
    values = read_constants(constants or [])
    from safetest_gym.task import load_task

    task = load_task(
        model,
        properties,
        property=choice,
        constants=values,
        action_mode=action_mode,
        failure=replaced.get("failure"),
        goal=replaced.get("goal"),
        start=replaced.get("start"),
    )
    return Subject(task)
