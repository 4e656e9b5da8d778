"""``safetest-gym info``: what a model and its property say."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetest_gym.cli.options import (
    AsJson,
    Constants,
    ModelFile,
    PropertiesFile,
    PropertyChoice,
    open_task,
)
from safetest_gym.cli.reporting import print_json
from safetest_gym.errors import LimitError, StartError

if TYPE_CHECKING:
    from rich.table import Table

    from safetest_gym.jani.tree import Expression, Model, Property, Variable
    from safetest_gym.task import Task

__all__ = ["info"]

_MOST_ROWS = 30


def info(
    model: ModelFile,
    constants: Constants = None,
    properties: PropertiesFile = None,
    choice: PropertyChoice = None,
    as_json: AsJson = False,
) -> None:
    """Describe a model: variables, actions, automata, properties, start states, size."""
    task = open_task(model, properties, choice, constants)
    description = _describe(task, _listed_properties(task, properties))
    if as_json:
        print_json(description)
    else:
        _print(description)


def _listed_properties(task: Task, file: Path | None) -> tuple[Property, ...]:
    """All that could have been chosen."""
    from safetest_gym.jani import read_properties

    return task.model.properties if file is None else read_properties(file, task.model)


def _describe(task: Task, properties: tuple[Property, ...]) -> dict[str, Any]:
    from safetest_gym.describe import log10_size

    model, chosen = task.model, task.property
    size = log10_size(model.variables)
    count, trouble = _count_starts(task)
    description: dict[str, Any] = {
        "name": task.name,
        "type": model.type,
        "digest": task.digest,
        "constants": dict(model.constants),
        "variables": [_describe_variable(variable) for variable in model.variables],
        "actions": list(task.actions),
        "automata": [
            {
                "name": automaton.name,
                "locations": list(automaton.locations),
                "edges": len(automaton.edges),
            }
            for automaton in model.automata
        ],
        "synchronisations": list(_describe_vectors(model)),
        "properties": [_describe_property(entry) for entry in properties],
        "property": chosen.name or None,
        "failure": _text(chosen.failure),
        "goal": _text(chosen.goal),
        "start_states": count,
        "size_bound_log10": round(size, 2) if math.isfinite(size) else None,
    }
    if trouble:
        description["start_states_unknown"] = trouble
    return description


def _text(condition: Expression | None) -> str | None:
    from safetest_gym.jani import format_expression

    return None if condition is None else format_expression(condition)


def _describe_variable(variable: Variable) -> dict[str, Any]:
    from safetest_gym.describe import domain_text

    description: dict[str, Any] = {
        "name": variable.name,
        "type": variable.kind,
        "domain": domain_text(variable),
        "lower": variable.lower,
        "upper": variable.upper,
        "initial": variable.initial,
    }
    if variable.locations:
        description["locations"] = list(variable.locations)
    return description


def _describe_vectors(model: Model) -> Iterator[dict[str, Any]]:
    for vector in model.vectors:
        participants = {
            automaton.name: action
            for automaton, action in zip(model.automata, vector.synchronise, strict=True)
            if action is not None
        }
        yield {"synchronise": participants, "result": vector.result}


def _describe_property(entry: Property) -> dict[str, Any]:
    from safetest_gym.jani.tree import FilterProperty, PlanningProperty

    if isinstance(entry, PlanningProperty):
        return {"name": entry.name, "kind": "planning"}
    if isinstance(entry, FilterProperty):
        return {"name": entry.name, "kind": "reachability"}
    return {"name": entry.name, "kind": "unsupported", "reason": entry.reason}


def _count_starts(task: Task) -> tuple[int | None, str]:
    """How many start states there are, or None and why that is not known."""
    try:
        count = task.initial.count()
    except (StartError, LimitError) as error:
        return None, str(error)
    return count, "" if count is not None else "infinitely many"


def _print(description: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False)
    bound = description["size_bound_log10"]
    console.print(f"{description['name']} ({description['type']})")
    console.print(f"digest {description['digest']}")
    console.print(f"states: {'no bound' if bound is None else f'at most 10^{bound}'}")
    starts = description.get("start_states_unknown") or f"{description['start_states']:,}"
    console.print(f"start states: {starts}")
    console.print(f"actions ({len(description['actions'])}): {', '.join(description['actions'])}")
    for name in ("failure", "goal"):
        console.print(f"{name}: {description[name] or 'none'}")
    for table in _tables(description):
        if table.row_count:
            console.print(table)


def _tables(description: dict[str, Any]) -> Iterator[Table]:
    yield _table("constants", ["name", "value"], list(description["constants"].items()))
    yield _table(
        "variables",
        ["name", "domain", "initial"],
        [
            (
                entry["name"],
                entry["domain"],
                _initial_text(entry),
            )
            for entry in description["variables"]
        ],
    )
    yield _table(
        "automata",
        ["name", "locations", "edges"],
        [
            (entry["name"], len(entry["locations"]), entry["edges"])
            for entry in description["automata"]
        ],
    )
    yield _table(
        "synchronisations",
        ["actions", "result"],
        [
            (
                ", ".join(f"{name}.{action}" for name, action in entry["synchronise"].items()),
                entry["result"] or "silent",
            )
            for entry in description["synchronisations"]
        ],
    )
    yield _table(
        "properties",
        ["number", "name", "kind", ""],
        [
            (
                number,
                entry["name"],
                entry["kind"],
                "used" if entry["name"] == description["property"] else entry.get("reason", ""),
            )
            for number, entry in enumerate(description["properties"])
        ],
    )


def _initial_text(variable: dict[str, Any]) -> str:
    initial = variable["initial"]
    if initial is None:
        return "any"
    return str(variable["locations"][initial] if "locations" in variable else initial)


def _table(title: str, headers: list[str], rows: list[tuple[object, ...]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for header in headers:
        table.add_column(header)
    for row in rows[:_MOST_ROWS]:
        table.add_row(*(Text(str(cell)) for cell in row))
    if len(rows) > _MOST_ROWS:
        table.add_row(f"and {len(rows) - _MOST_ROWS} more (all with --json)")
    return table
