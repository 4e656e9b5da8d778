"""Describe a task in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from safetest_gym.jani import format_expression
from safetest_gym.jani.tree import Variable

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["describe_task", "domain_text", "log10_size"]


def domain_text(variable: Variable) -> str:
    """The values a variable can have."""
    if variable.locations:
        return ", ".join(variable.locations)
    if variable.kind == "bool":
        return "bool"
    lower = "-∞" if variable.lower is None else variable.lower
    upper = "∞" if variable.upper is None else variable.upper
    return f"{variable.kind} {lower} .. {upper}"


def log10_size(variables: tuple[Variable, ...]) -> float:
    """Decimal logarithm of the number of valuations; infinite if a variable is unbounded."""
    total = 0.0
    for variable in variables:
        if variable.kind == "real" or variable.lower is None or variable.upper is None:
            return math.inf
        total += math.log10(int(variable.upper) - int(variable.lower) + 1)
    return total


def describe_task(task: Task) -> str:
    """Several lines: size, variables, actions and conditions."""
    model, property_ = task.model, task.property
    edges = sum(len(automaton.edges) for automaton in model.automata)
    lines = [
        f"{model.name} ({model.type}): {task.num_variables} variables, {task.num_actions} "
        f"actions, {len(model.automata)} automata with {edges} edges",
        "variables:",
        *(f"  {variable.name}: {domain_text(variable)}" for variable in task.variables),
        f"actions: {', '.join(task.actions[:50])}{', …' if task.num_actions > 50 else ''}",
    ]
    if property_.name:
        lines.append(f"property: {property_.name}")
    for name, condition in (("failing", property_.failure), ("goal", property_.goal)):
        if condition is not None:
            lines.append(f"{name}: {format_expression(condition)}")
    return "\n".join(lines)
