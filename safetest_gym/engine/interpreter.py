"""What a model does in a state, on plain Python values: the slow twin of the machine code.

It is written straight from the definitions, to be read rather than to be fast; certificate
checkers and error messages rely on it. A state is a tuple of Python values in the order of
``Model.variables``. The definitions beyond DESIGN section 2 and the JANI specification:

- In every automaton all edges of the current location have their guard evaluated, also when no
  partner is ready, except edges that take part in no rule of the composition: those do not exist.
  A composed edge is enabled if all its edges are; only then are their probabilities evaluated,
  in the source state.
- Probabilities lie in [0, 1] (within 1e-9) and sum to 1 (within 1e-6) per edge, else it is an
  error. A destination whose probability is 0 (or below) does not exist: its assignments are not
  evaluated. The outcomes of several participants are the product of their destinations, the
  last participant's fastest; equal successors stay separate outcomes.
- The assignments of all participants happen by ascending index; those of one index read what
  lower indices left. Two that give one variable different values at one index are an error,
  unless it is a transient variable that no assignment of a higher index reads (a reward).
  Transient variables start every transition at their initial value.
- Every assigned int has 64 bits and every assigned real is finite, but bounds are checked once,
  on the final value of each assigned state variable. Bounds of transients are not checked.
- An action of ``label`` mode has all enabled edges of its label as outcomes, each edge equally
  likely; in a dtmc all enabled edges together are one action in both modes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from safetest_gym.engine.composition import Rule, compose
from safetest_gym.engine.distance import distance
from safetest_gym.engine.evaluation import Values, as_kind, evaluate
from safetest_gym.engine.rewrite import reads
from safetest_gym.errors import EvaluationError, LimitError, OutOfBoundsError, StartError
from safetest_gym.jani.tree import (
    Automaton,
    Destination,
    Edge,
    Expression,
    Kind,
    Model,
    Value,
    Variable,
)

__all__ = ["STEP", "Choice", "Interpreter", "State"]

STEP = "step"
"""Label of the only action of a dtmc."""

RANGE_TOLERANCE = 1e-9
SUM_TOLERANCE = 1e-6

State = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that can be chosen in a state.

    Attributes:
        label: the synchronisation result, ``τ`` for silent edges, ``step`` in a dtmc.
        edges: numbers of the composed edges behind it, ascending.
        outcomes: (probability, successor), by composed edge, then in document order.
    """

    label: str
    edges: tuple[int, ...]
    outcomes: tuple[tuple[float, State], ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """An automaton taking one destination of one of its edges."""

    automaton: Automaton
    edge: Edge
    destination: Destination


class Interpreter:
    """The transition relation of ``model``, computed anew for every question."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.composition = compose(model)
        self._taking_part = {
            (participant.automaton, edge)
            for rule in self.composition.rules
            for participant in rule.participants
            for edge in participant.edges
        }

    def initial_states(self, limit: int = 100_000) -> tuple[State, ...]:
        """All initial states, found by trying every value of what has no initial value.

        Raises:
            LimitError: more than ``limit`` candidates.
            StartError: a variable without initial value has infinitely many values.
        """
        candidates = [self._initial_values(variable) for variable in self.model.variables]
        if math.prod([len(values) for values in candidates]) > limit:
            raise LimitError(f"more than {limit} candidates for initial states")
        return tuple(
            state
            for state in itertools.product(*candidates)
            if self.holds(self.model.initial, state)
        )

    def choices(self, state: State) -> tuple[Choice, ...]:
        """The enabled composed edges, by number.

        Raises:
            EvaluationError: something in an enabled edge, or a guard, has no value.
            OutOfBoundsError: an outcome leaves its variable's bounds.
        """
        values = self.values(state)
        enabled = [self._enabled(number, values) for number in range(len(self.model.automata))]
        found = []
        for rule in self.composition.rules:
            ready = [
                [edge for edge in participant.edges if edge in enabled[participant.automaton]]
                for participant in rule.participants
            ]
            for picked in itertools.product(*ready):
                label = self.composition.labels[rule.label]
                outcomes = tuple(self._outcomes(rule, picked, values))
                found.append(Choice(label, (_number(rule, picked),), outcomes))
        return tuple(found)

    def actions(self, state: State, mode: Literal["label", "edge"] = "label") -> tuple[Choice, ...]:
        """What a policy can choose: enabled edges merged as ``mode`` and the model's type say."""
        choices = self.choices(state)
        if self.model.type == "dtmc":
            return (_merged(STEP, choices),) if choices else ()
        if mode == "edge":
            return choices
        return tuple(
            _merged(label, [choice for choice in choices if choice.label == label])
            for label in self.composition.labels
            if any(choice.label == label for choice in choices)
        )

    def value(self, expression: Expression, state: State, what: str = "") -> Value:
        """The value of ``expression`` in ``state``; errors call it ``what``, and tell the state."""
        values = self.values(state)
        if what:
            return self._evaluate(expression, values, values, what)
        return evaluate(expression, values)

    def holds(self, condition: Expression, state: State) -> bool:
        """Does ``condition`` hold in ``state``?"""
        return bool(self.value(condition, state))

    def distance(self, condition: Expression, state: State) -> float:
        """How far ``state`` is from satisfying ``condition`` ([J] section 5)."""
        return distance(condition, self.values(state))

    def values(self, state: State) -> dict[Variable, Value]:
        """``state`` by variable."""
        return dict(zip(self.model.variables, state, strict=True))

    def describe(self, state: State) -> str:
        """``state`` for messages: ``x=3, proc.location=idle``."""
        return ", ".join(
            f"{variable.name}={variable.locations[int(value)] if variable.locations else value}"
            for variable, value in zip(self.model.variables, state, strict=True)
        )

    def _initial_values(self, variable: Variable) -> Sequence[Value]:
        for automaton in self.model.automata:
            if automaton.location_variable is variable:
                return automaton.initial_locations
        if variable.initial is not None:
            return (as_kind(variable.initial, variable.kind),)
        if variable.kind == "bool":
            return (False, True)
        if variable.kind == "real" or variable.lower is None or variable.upper is None:
            raise StartError(f"variable {variable.name!r} has infinitely many initial values")
        return range(int(variable.lower), int(variable.upper) + 1)

    def _enabled(self, number: int, values: Values) -> set[int]:
        automaton = self.model.automata[number]
        here = automaton.location_variable
        location = values[here] if here is not None else 0
        return {
            index
            for index, edge in enumerate(automaton.edges)
            if edge.location == location
            and (number, index) in self._taking_part
            and self._evaluate(edge.guard, values, values, f"the guard of the edge at {edge.path}")
        }

    def _outcomes(
        self, rule: Rule, picked: Sequence[int], values: Values
    ) -> Iterator[tuple[float, State]]:
        alternatives = []
        for participant, index in zip(rule.participants, picked, strict=True):
            automaton = self.model.automata[participant.automaton]
            edge = automaton.edges[index]
            alternatives.append(
                [
                    (probability, _Step(automaton, edge, destination))
                    for probability, destination in self._destinations(edge, values)
                ]
            )
        for combination in itertools.product(*alternatives):
            probability = 1.0
            for factor, _ in combination:
                probability *= factor
            yield probability, self._successor([step for _, step in combination], values)

    def _destinations(self, edge: Edge, values: Values) -> list[tuple[float, Destination]]:
        weighted = []
        for destination in edge.destinations:
            probability = 1.0
            if destination.probability is not None:
                what = f"the probability at {destination.path}"
                probability = float(self._evaluate(destination.probability, values, values, what))
            if not -RANGE_TOLERANCE <= probability <= 1 + RANGE_TOLERANCE:
                raise EvaluationError(
                    f"probability {probability} of the destination at {destination.path}"
                    f" is not within 0 and 1 in state {self._shown(values)}"
                )
            weighted.append((probability, destination))
        total = 0.0
        for probability, _ in weighted:
            total += probability
        if abs(total - 1) > SUM_TOLERANCE:
            raise EvaluationError(
                f"the probabilities of the edge at {edge.path} sum to {total}, not 1,"
                f" in state {self._shown(values)}"
            )
        return [
            (probability, destination) for probability, destination in weighted if probability > 0
        ]

    def _successor(self, steps: Sequence[_Step], values: Values) -> State:
        after = dict(values)
        for variable in self.model.transients:
            if variable.initial is not None:
                after[variable] = variable.initial
        writers: dict[Variable, _Step] = {}
        planned = [
            (assignment, step) for step in steps for assignment in step.destination.assignments
        ]
        for index in sorted({assignment.index for assignment, _ in planned}):
            assigned: dict[Variable, Value] = {}
            later = reads([a.value for a, _ in planned if a.index > index])
            for assignment, step in planned:
                if assignment.index != index:
                    continue
                variable = assignment.variable
                what = f"the assignment to {variable.name!r} at {assignment.path}"
                value = self._evaluate(assignment.value, after, values, what, variable.kind)
                same = assigned.setdefault(variable, value) == value
                if not same and (variable in later or not variable.transient):
                    raise EvaluationError(
                        f"{variable.name!r} is assigned both {assigned[variable]} and {value} at"
                        f" index {index}, by the destination at {step.destination.path} and"
                        f" another, in state {self._shown(values)}"
                    )
                writers[variable] = step
            after.update(assigned)
        for step in steps:
            if step.automaton.location_variable is not None:
                after[step.automaton.location_variable] = step.destination.location
        for variable, step in writers.items():
            self._check_bounds(variable, after[variable], step, values)
        return tuple(after[variable] for variable in self.model.variables)

    def _check_bounds(self, variable: Variable, value: Value, step: _Step, source: Values) -> None:
        if variable.transient or variable.kind == "bool":
            return
        low = variable.lower is not None and value < variable.lower
        high = variable.upper is not None and value > variable.upper
        if low or high:
            raise OutOfBoundsError(
                f"the edge at {step.edge.path} assigns {value} to {variable.name!r}, outside"
                f" {variable.lower}..{variable.upper}, by its destination at"
                f" {step.destination.path}, in state {self._shown(source)}"
            )

    def _evaluate(
        self,
        expression: Expression,
        values: Values,
        source: Values,
        what: str,
        kind: Kind | None = None,
    ) -> Value:
        try:
            return as_kind(evaluate(expression, values), kind or expression.kind)
        except EvaluationError as error:
            raise EvaluationError(f"{error}, in {what}, in state {self._shown(source)}") from error

    def _shown(self, values: Values) -> str:
        return "(" + self.describe(tuple(values[v] for v in self.model.variables)) + ")"


def _number(rule: Rule, picked: Sequence[int]) -> int:
    offset = 0
    for participant, edge in zip(rule.participants, picked, strict=True):
        offset = offset * len(participant.edges) + participant.edges.index(edge)
    return rule.base + offset


def _merged(label: str, choices: Sequence[Choice]) -> Choice:
    return Choice(
        label,
        tuple(number for choice in choices for number in choice.edges),
        tuple(
            (probability / len(choices), successor)
            for choice in choices
            for probability, successor in choice.outcomes
        ),
    )
