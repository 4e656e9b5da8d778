"""How the states of one condition are counted and drawn: independent parts, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.engine.evaluation import evaluate
from safetest_gym.errors import EvaluationError, StartError
from safetest_gym.jani.depth import deep_recursion
from safetest_gym.jani.tree import Expression, Value, Variable
from safetest_gym.starts.automaton import TooLargeError
from safetest_gym.starts.components import Component, build_diagram, split
from safetest_gym.starts.counting import Diagram
from safetest_gym.starts.diagram import NoValueError, Row
from safetest_gym.starts.formula import FALSE, UNDEFINED, Comparison, Formula
from safetest_gym.starts.linear import linear_difference
from safetest_gym.starts.logic import Formulas
from safetest_gym.starts.polytope import Polytope, make_polytope
from safetest_gym.starts.tightening import conjuncts_of, relaxed, require_bounded, tightened

__all__ = ["Part", "Plan", "make_plan"]


@dataclass(slots=True)
class Part:
    """Some columns, independent of the others.

    Attributes:
        exact: the diagram's paths are the part's states, not only a superset.
        polytope: the same part by hit-and-run, if it is not exact but linear.
    """

    diagram: Diagram
    exact: bool
    polytope: Polytope | None


@dataclass(slots=True)
class Plan:
    """All columns of the states that satisfy a condition.

    Attributes:
        fixed: columns with one value.
        remainder: decides which of the states drawn satisfy the condition.
    """

    fixed: Row
    parts: list[Part]
    remainder: Formula

    @property
    def exact(self) -> bool:
        """Do all the states drawn satisfy the condition?"""
        return all(part.exact for part in self.parts)

    @property
    def nodes(self) -> int:
        """Size of all diagrams together."""
        return sum(part.diagram.nodes for part in self.parts)

    def count(self) -> int | None:
        """How many states there are; None if infinitely many."""
        counts = [part.diagram.count for part in self.parts]
        if 0 in counts or self.remainder is FALSE:
            return 0
        if not self.exact:
            return None
        total = 1
        for count in counts:
            if count is None:
                return None
            total *= count
        return total

    def enumerate(self, count: int) -> dict[int, NDArray[Any]]:
        """The columns that are not fixed of all ``count`` states, in some order."""
        columns: dict[int, NDArray[Any]] = {}
        inner, outer = count, 1
        for part in self.parts:
            size = part.diagram.count
            assert size is not None
            inner //= size
            for column, values in part.diagram.enumerate().items():
                columns[column] = np.tile(np.repeat(values, inner), outer)
            outer *= size
        return columns

    def draw(self, out: NDArray[Any], rng: np.random.Generator, *, walking: bool) -> None:
        """Fill the rows of ``out`` with states; ``walking`` uses the polytopes."""
        for column, value in self.fixed.items():
            out[:, column] = value
        for part in self.parts:
            sampler = part.polytope if walking and part.polytope else part.diagram
            sampler.sample(out, rng)


def make_plan(variables: Sequence[Variable], condition: Expression) -> Plan:
    """Work out the states over ``variables`` that satisfy ``condition``.

    Raises:
        StartError: a variable is unbounded, the condition has no value in some states, or
            it is too intricate to be counted.
    """
    with deep_recursion():
        formulas, formula = tightened(variables, condition)
        if formula is FALSE:
            return Plan({}, [], FALSE)
        require_bounded(variables, formulas)
        fixed: Row = {}
        free: list[int] = []
        for column, domain in enumerate(formulas.domains):
            if domain[0][0] == domain[-1][1]:
                fixed[column] = domain[0][0]
            else:
                free.append(column)
        conjuncts = conjuncts_of(formula)
        parts: list[Part] = []
        undefined = NoValueError({}) if UNDEFINED in conjuncts else None
        for component in split(free, [c for c in conjuncts if c is not UNDEFINED]):
            try:
                parts.append(_make_part(component, formulas))
            except NoValueError as error:
                undefined = error
            except TooLargeError as error:
                raise StartError(
                    f"the start condition is too intricate to be counted ({error}); bound its "
                    "variables more tightly, link fewer of them, or list the start states"
                ) from error
    plan = Plan(fixed, parts, formula)
    if undefined is not None and plan.count() != 0:
        lows = {column: domain[0][0] for column, domain in enumerate(formulas.domains)}
        raise _no_value(variables, condition, {**lows, **undefined.row})
    return plan


def _make_part(component: Component, formulas: Formulas) -> Part:
    looser = [relaxed(conjunct, formulas) for conjunct in component.conjuncts]
    exact = all(after is before for after, before in zip(looser, component.conjuncts, strict=True))
    kept = [conjunct for formula in looser for conjunct in conjuncts_of(formula)]
    diagram = build_diagram(Component(component.columns, tuple(kept)), formulas)
    return Part(diagram, exact, None if exact else _polytope(component, formulas))


def _polytope(component: Component, formulas: Formulas) -> Polytope | None:
    """The component by linear inequalities, if that is all it is."""
    rows: list[tuple[dict[int, float], float]] = []
    for conjunct in component.conjuncts:
        if not isinstance(conjunct, Comparison) or conjunct.symbol not in ("<", "≤"):
            return None
        row = linear_difference(conjunct.left, conjunct.right)
        if row is None:
            return None
        rows.append(row)
    box: dict[int, tuple[float, float]] = {}
    for column in component.columns:
        domain = formulas.domains[column]
        if not formulas.real[column] or len(domain) != 1:
            return None
        box[column] = domain[0]
    return make_polytope(box, rows)


def _no_value(variables: Sequence[Variable], condition: Expression, row: Row) -> StartError:
    values: dict[Variable, Value] = {}
    for column, variable in enumerate(variables):
        values[variable] = bool(row[column]) if variable.kind == "bool" else row[column]
    shown = ", ".join(f"{variable.name} = {value}" for variable, value in values.items())
    reason = ""
    try:
        evaluate(condition, values)
    except EvaluationError as error:
        reason = f": {error}"
    return StartError(
        f"the start condition has no value where {shown}{reason}; exclude such states in it"
    )
