"""``safetest-gym tasks``: list the bundled tasks, write one as JANI files of any size."""

from __future__ import annotations

import json
from dataclasses import fields
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from safetest_gym.cli.options import AsJson
from safetest_gym.cli.reporting import print_json, reports_errors
from safetest_gym.errors import ConfigError, SafetestError

__all__ = ["tasks"]

_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "Literal": ((str,), "a word"),
    "bool": ((bool,), "true or false"),
    "float": ((float, int), "a number"),
    "int": ((int,), "a whole number"),
    "tuple": ((list,), "a JSON list"),
}
"""How the types of parameters begin, and what they take from the command line."""

tasks = typer.Typer(help="List the bundled tasks, or write one as JANI.", no_args_is_help=True)


def list_tasks(as_json: AsJson = False) -> None:
    """List the bundled tasks with their parameters and the parameters' defaults."""
    # By name, because the core knows no face.
    bundled: Any = import_module("safetest_gym.envs.tasks")
    found = {name: bundled.make_generator(name, {}) for name in bundled.NAMES}
    parameters = {name: _parameters(generator) for name, generator in found.items()}
    if as_json:
        rows = [
            {"id": f"safetest/{name}-v0", "about": _about(found[name]), "parameters": values}
            for name, values in parameters.items()
        ]
        print_json({"tasks": rows})
        return
    for name, values in parameters.items():
        print(f"safetest/{name}-v0\n    {_about(found[name])}")
        for parameter, value in values.items():
            print(f"    --{_dashed(parameter)} {json.dumps(value)}")


def write(
    context: typer.Context,
    task: Annotated[
        str, typer.Argument(metavar="ID", help="Such as safetest/OneWayLine-v0 or OneWayLine.")
    ],
    folder: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Made where it does not exist.")
    ] = Path(),
    as_json: AsJson = False,
) -> None:
    """Write a bundled task: NAME.jani and NAME.props.jani.

    Every other option is a parameter of the task, as ``tasks list`` shows them: ``--packages
    20``, ``--icy [2,4]``, ``--variant icy``.
    """
    name = task.removeprefix("safetest/").removesuffix("-v0")
    generator = _generator(name, context.args)
    documents = {
        "model": (folder / f"{generator.name}.jani", generator.model()),
        "properties": (
            folder / f"{generator.name}.props.jani",
            {"properties": generator.properties()},
        ),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for path, document in documents.values():
        text = json.dumps(document, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
    written = {kind: str(path) for kind, (path, _) in documents.items()}
    if as_json:
        print_json({"name": generator.name, **written, "parameters": _parameters(generator)})
        return
    for file in written.values():
        print(file)


def _generator(name: str, arguments: list[str]) -> Any:
    """The generator with the parameters that the command line gives."""
    bundled: Any = import_module("safetest_gym.envs.tasks")
    default = bundled.make_generator(name, {})
    given = _read(name, arguments, default)
    try:
        return bundled.make_generator(name, given)
    except (TypeError, ValueError) as error:
        if isinstance(error, SafetestError):
            raise
        raise ConfigError(f"{name} cannot be made with {given}: {error}") from None


def _parameters(generator: Any) -> dict[str, Any]:
    return {field.name: getattr(generator, field.name) for field in fields(generator)}


def _about(generator: Any) -> str:
    lines = (type(generator).__doc__ or "").splitlines()
    return lines[0].strip() if lines else ""


def _dashed(parameter: str) -> str:
    return parameter.replace("_", "-")


def _read(name: str, arguments: list[str], default: Any) -> dict[str, Any]:
    """Parameters from ``--NAME VALUE`` and ``--NAME=VALUE``; values are JSON or words."""
    known = {field.name: str(field.type) for field in fields(default)}
    given: dict[str, Any] = {}
    left = list(arguments)
    while left:
        option, separator, text = left.pop(0).partition("=")
        parameter = option.removeprefix("--").replace("-", "_")
        if not option.startswith("--") or parameter not in known:
            close = get_close_matches(parameter, known, n=1)
            options = ", ".join(f"--{_dashed(each)}" for each in known) or "none"
            hint = f"did you mean --{_dashed(close[0])}?" if close else f"its options: {options}"
            raise ConfigError(f"{name} has no option {option} ({hint})")
        if parameter in given:
            raise ConfigError(f"{option} is given twice")
        if not separator:
            if not left:
                raise ConfigError(f"{option} needs a value")
            text = left.pop(0)
        given[parameter] = _value(option, text, known[parameter])
    return given


def _value(option: str, text: str, kind: str) -> Any:
    """The value that ``text`` stands for, of the kind that the generator declares."""
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if value is None and kind.endswith("None"):
        return None
    for name, (types, words) in _KINDS.items():
        right = isinstance(value, types) and isinstance(value, bool) == (name == "bool")
        if kind.startswith(name) and not right:
            raise ConfigError(f"{option} must be {words}, got {text!r}")
    return value


tasks.command("list")(reports_errors(list_tasks))
tasks.command("write", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(
    reports_errors(write)
)
