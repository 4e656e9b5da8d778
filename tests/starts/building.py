"""Start-state sets from a few words."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from safetest_gym.engine.evaluation import evaluate
from safetest_gym.jani import parse_expression, read_model
from safetest_gym.jani.tree import Expression, Model, StartCondition
from safetest_gym.starts import ConditionStarts, Satisfies

Types = Mapping[str, Any]
"""``"bool"``, ``"int"``, ``"real"``, ``(least, greatest)`` or ``(least, greatest, "real")``."""


def model_of(types: Types) -> Model:
    """A model with variables of ``types`` and nothing else."""
    variables = [{"name": name, "type": _type(given)} for name, given in types.items()]
    automaton = {
        "name": "a",
        "locations": [{"name": "l"}],
        "initial-locations": ["l"],
        "edges": [],
    }
    return read_model(
        {
            "jani-version": 1,
            "name": "small",
            "type": "lts",
            "variables": variables,
            "automata": [automaton],
            "system": {"elements": [{"automaton": "a"}]},
        }
    )


def condition_of(types: Types, text: str) -> tuple[Model, Expression]:
    """A model and a condition on it."""
    model = model_of(types)
    return model, parse_expression(text, model, "bool")


def starts_of(types: Types, text: str, satisfies: Satisfies | None = None) -> ConditionStarts:
    """The states within ``types`` that satisfy ``text``."""
    model, condition = condition_of(types, text)
    return ConditionStarts(model.variables, StartCondition(condition), satisfies=satisfies)


def by_trying(types: Types, text: str) -> Iterator[tuple[int, ...]]:
    """The same one by one: every state within ``types``, in lexicographic order."""
    model, condition = condition_of(types, text)
    ranges: list[range] = []
    for variable in model.variables:
        assert variable.lower is not None
        assert variable.upper is not None
        ranges.append(range(int(variable.lower), int(variable.upper) + 1))
    for state in itertools.product(*ranges):
        values = {
            variable: bool(value) if variable.kind == "bool" else value
            for variable, value in zip(model.variables, state, strict=True)
        }
        if evaluate(condition, values):
            yield state


def _type(given: Any) -> Any:
    if isinstance(given, str):
        return given
    base = given[2] if len(given) == 3 else "int"
    return {"kind": "bounded", "base": base, "lower-bound": given[0], "upper-bound": given[1]}
