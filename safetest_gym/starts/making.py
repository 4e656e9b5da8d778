"""From a task's start to its set of states."""

from __future__ import annotations

from collections.abc import Sequence

from safetest_gym.jani.tree import (
    FALSE,
    Expression,
    Literal,
    Model,
    Operation,
    Reference,
    Start,
    StartCondition,
    StartValues,
    Variable,
)
from safetest_gym.starts.base import StartSet
from safetest_gym.starts.condition import ConditionStarts, Satisfies
from safetest_gym.starts.listed import ListedStarts

__all__ = ["default_condition", "default_starts", "make_starts"]


def make_starts(
    variables: Sequence[Variable], start: Start, *, satisfies: Satisfies | None = None
) -> StartSet:
    """The states over ``variables`` that ``start`` describes.

    Args:
        satisfies: a fast test of the condition, for conditions that compare reals.
    """
    if isinstance(start, StartValues):
        return ListedStarts(variables, start)
    return ConditionStarts(variables, start, satisfies=satisfies)


def default_starts(model: Model, *, satisfies: Satisfies | None = None) -> StartSet:
    """The model's own initial states.

    Args:
        satisfies: a fast test of ``model.initial``; all else is fixed before it is asked.
    """
    start = StartCondition(default_condition(model))
    return make_starts(model.variables, start, satisfies=satisfies)


def default_condition(model: Model) -> Expression:
    """What holds in exactly the initial states, within the variables' bounds.

    Initial values and initial locations as equations, and the model's initial condition.
    """
    operands: list[Expression] = []
    for variable in model.variables:
        if variable.initial is not None and not variable.locations:
            operands.append(_equals(variable, variable.initial))
    for automaton in model.automata:
        if automaton.location_variable is not None:
            choices = [
                _equals(automaton.location_variable, location)
                for location in automaton.initial_locations
            ]
            operands.append(_joined("∨", choices) if choices else FALSE)
        elif not automaton.initial_locations:
            operands.append(FALSE)
    return _joined("∧", [*operands, model.initial])


def _equals(variable: Variable, value: bool | float) -> Expression:
    literal = Literal(value, variable.kind)
    return Operation("=", (Reference(variable), literal), "bool")


def _joined(symbol: str, operands: Sequence[Expression]) -> Expression:
    return operands[0] if len(operands) == 1 else Operation(symbol, tuple(operands), "bool")
