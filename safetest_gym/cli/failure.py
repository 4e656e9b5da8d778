"""The task of commands that need a failure condition."""

from __future__ import annotations

import json
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import typer

from safetest_gym.cli.options import LoadingOptions, open_subject
from safetest_gym.cli.subject import Subject
from safetest_gym.errors import ConfigError

if TYPE_CHECKING:
    from safetest_gym.jani.tree import FilterProperty
    from safetest_gym.task import Task

__all__ = [
    "FailureProperty",
    "FailureText",
    "JudgedOptions",
    "open_judged_subject",
    "require_failure",
]

FailureText = Annotated[
    str | None,
    typer.Option(
        "--failure", metavar="FILE|TEXT", help="Failure condition instead of the property's."
    ),
]
FailureProperty = Annotated[
    str | None,
    typer.Option(
        "--failure-property",
        metavar="NAME",
        help="Take the target of this F / U property as the failure condition; where the left "
        "side of U does not hold, a run ends safely.",
    ),
]


class JudgedOptions(LoadingOptions, Protocol):
    """The options that say what the task is and when it fails."""

    @property
    def failure(self) -> str | None: ...
    @property
    def failure_property(self) -> str | None: ...
    @property
    def mode(self) -> Literal["label", "edge"]: ...


def require_failure(task: Task) -> None:
    """Refuse a task in which nothing can fail, only because nobody said what failing is."""
    if task.property.failure is None:
        raise ConfigError(
            f"{task.name} has no failure condition; give --properties, --property or --failure"
        )


def open_judged_subject(options: JudgedOptions) -> Subject:
    """Load the task; it must have a failure condition."""
    if options.failure is not None and options.failure_property is not None:
        raise ConfigError("give --failure or --failure-property, not both")
    given = options.model, options.properties, options.choice, options.constants
    subject = open_subject(*given, options.mode, {"failure": options.failure})
    if options.failure_property is not None:
        task = _with_failure_property(subject.task, options, options.failure_property)
        return replace(subject, task=task)
    require_failure(subject.task)
    return subject


def _with_failure_property(task: Task, options: JudgedOptions, name: str) -> Task:
    from safetest_gym.jani import read_condition, read_properties
    from safetest_gym.jani.operators import build
    from safetest_gym.jani.tree import FilterProperty
    from safetest_gym.task import Task

    listed = task.model.properties
    if options.properties is not None:
        listed = (*read_properties(options.properties, task.model), *listed)
    found = {entry.name: entry for entry in listed if isinstance(entry, FilterProperty)}
    if name not in found:
        close = get_close_matches(name, found, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(found) or 'none'}"
        raise ConfigError(f"there is no F / U property {name!r} ({hint})")
    goal = task.property.goal
    left = _left_of_until(options, found[name])
    if left is not True:
        stays = read_condition({"op": "state-condition", "exp": left}, task.model)
        over = build("¬", [stays])
        goal = over if goal is None else build("∨", [goal, over])
    judged = replace(task.property, failure=found[name].target, goal=goal)
    return Task(task.model, judged, task.action_mode)


def _left_of_until(options: JudgedOptions, wanted: FilterProperty) -> Any:
    """The left side of the property's U as JANI data; True for F."""
    for path in (options.properties, options.model):
        document = {} if path is None else json.loads(path.read_text(encoding="utf-8-sig"))
        entries = document.get("properties", []) if isinstance(document, dict) else []
        for entry in entries:
            if entry.get("name") == wanted.name:
                return _left(entry["expression"])
    return True


def _left(expression: Any) -> Any:
    while isinstance(expression, dict) and expression.get("op") not in ("F", "U"):
        operator = expression.get("op")
        if operator == "filter":
            expression = expression["values"]
        elif "exp" in expression:
            expression = expression["exp"]
        else:
            sides = expression.get("left"), expression.get("right")
            expression = next((side for side in sides if isinstance(side, dict)), None)
    if isinstance(expression, dict) and expression["op"] == "U":
        return expression.get("left", True)
    return True
