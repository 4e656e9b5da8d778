"""A task's composed edges and bounds, ready for boxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safetest_gym.engine.prepared import Preparation
from safetest_gym.engine.rewrite import Inliner
from safetest_gym.errors import ConfigError
from safetest_gym.jani.tree import Expression, Literal, Operation, Reference
from safetest_gym.verify.intervals import Floats

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["Command", "commands_of", "domain_of"]

MAX_COMMANDS = 20_000


@dataclass(frozen=True, slots=True)
class Command:
    """A composed edge: the action it belongs to, when it is enabled, what it can do.

    Attributes:
        outcomes: per destination its probability (None is 1), and the new value per column.
    """

    action: int
    guard: tuple[Expression, ...]
    outcomes: tuple[tuple[Expression | None, dict[int, Expression]], ...]


def commands_of(task: Task) -> tuple[list[Command], Inliner]:
    """All composed edges over the state before the step, and what inlines calls."""
    composition = task.engine.composition
    if composition.size > MAX_COMMANDS:
        raise ConfigError(
            f"the abstract method treats models of up to {MAX_COMMANDS} composed edges, "
            f"{task.name} has {composition.size}"
        )
    preparation, shared = Preparation(task.model, composition), _Shared()
    columns = {variable: i for i, variable in enumerate(task.variables)}
    found = []
    for rule in composition.rules:
        for edge in preparation.combinations(rule):
            action = rule.label if task.action_mode == "label" else edge.number
            outcomes = tuple(
                (
                    None if d.probability is None else shared.of(d.probability),
                    {columns[v]: shared.of(value) for v, value in d.update.values.items()},
                )
                for d in edge.destinations
            )
            guard = tuple(shared.of(condition) for condition in edge.conjuncts)
            found.append(Command(0 if task.model.type == "dtmc" else action, guard, outcomes))
    return found, preparation.inline


class _Shared:
    """Makes one node of equal ones, so that their bounds are computed once."""

    def __init__(self) -> None:
        self._done: dict[int, tuple[Expression, Expression]] = {}
        self._nodes: dict[tuple[object, ...], Expression] = {}

    def of(self, expression: Expression) -> Expression:
        known = self._done.get(id(expression))
        if known is not None:
            return known[1]
        node = expression
        key: tuple[object, ...] = (type(expression), id(expression))
        if isinstance(expression, Literal):
            key = (Literal, repr(expression.value), expression.kind)
        elif isinstance(expression, Reference):
            key = (Reference, id(expression.variable))
        elif isinstance(expression, Operation):
            operands = tuple(map(self.of, expression.operands))
            node = Operation(expression.operator, operands, expression.kind)
            key = (expression.operator, expression.kind, *map(id, operands))
        node = self._nodes.setdefault(key, node)
        self._done[id(expression)] = expression, node
        return node


def domain_of(task: Task) -> tuple[Floats, Floats]:
    """The variables' bounds, (V,) each.

    Raises:
        ConfigError: an integer is not bounded within 2**53.
    """
    low, high = np.full(task.num_variables, -np.inf), np.full(task.num_variables, np.inf)
    for column, variable in enumerate(task.variables):
        if variable.kind == "bool":
            low[column], high[column] = 0, 1
            continue
        if variable.lower is not None:
            low[column] = float(variable.lower)
        if variable.upper is not None:
            high[column] = float(variable.upper)
        if variable.kind == "int" and not (low[column] > -(2**53) and high[column] < 2**53):
            raise ConfigError(
                f"the abstract method needs bounds within 2**53 for the integer {variable.name}"
            )
    return low, high
