"""The unsafe states of a task as one decision diagram, by regression ([S] App. A)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from safetest_gym.deciders.symbolic import Condition, Encoding, Partition
from safetest_gym.engine.composition import Rule, compose
from safetest_gym.jani.tree import FALSE, Automaton, Destination, Edge, Variable

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["Regression"]


@dataclass(frozen=True, slots=True)
class _Move:
    """One outcome of a composed edge.

    Attributes:
        possible: its probability is positive, and it has a value within the bounds.
        bits: what the bits that change become.
    """

    possible: Condition
    bits: dict[str, Condition]


@dataclass(frozen=True, slots=True)
class _ComposedEdge:
    action: int
    enabled: Condition
    moves: tuple[_Move, ...]


class Regression:
    """Propagates unsafety from the failure condition over the whole space of values.

    States in which the model has no value (an assignment out of bounds, a division by
    zero) may be there although none is reached. So there are two answers: ``unsafe``
    holds if they do no harm, and still there is no way to be safe; ``doubtful`` if a way
    to be safe exists at most through such states.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.encoding = Encoding(task.model.variables)
        self.bdd = self.encoding.bdd
        self.unsafe: Condition = self.bdd.false
        self.doubtful: Condition = self.bdd.false
        self._broken: Condition = self.bdd.false
        self._edges: list[_ComposedEdge] = []

    def work(self) -> Iterator[None]:
        """Compute; pauses between small pieces of work."""
        encoding, model, bdd = self.encoding, self.task.model, self.bdd
        composition = compose(model)
        for rule in composition.rules:
            for number in range(rule.base, rule.base + rule.size):
                self._add_edge(rule, number)
                yield
        failing, bad = self._truth(self.task.property.failure or FALSE)
        goal, worse = self._truth(self.task.property.goal or FALSE)
        enabled = encoding.union(edge.enabled for edge in self._edges)
        live = encoding.valid & ~failing & ~goal & enabled
        self._broken = (self._broken & live) | ((bad | worse) & encoding.valid)
        failing &= encoding.valid
        self.unsafe = failing
        for region in self._regress(failing, live):
            self.unsafe = region
            yield
        self.doubtful = self.unsafe
        if self._broken & ~self.unsafe != bdd.false:
            for region in self._regress(self.unsafe | self._broken, live):
                self.doubtful = region
                yield

    def _regress(self, region: Condition, live: Condition) -> Iterator[Condition]:
        """Regions that grow up to the least fixed point, which comes last."""
        while True:
            following = live & ~region
            for action in sorted({edge.action for edge in self._edges}):
                following &= self._refuted(action, region)
                yield region
            if following == self.bdd.false:
                return
            region |= following

    def _refuted(self, action: int, region: Condition) -> Condition:
        """Is the action not applicable, or has it an outcome in the region?"""
        applicable, hit = self.bdd.false, self.bdd.false
        for edge in self._edges:
            if edge.action == action:
                applicable |= edge.enabled
                for move in edge.moves:
                    before = self.bdd.let(move.bits, region) if move.bits else region
                    hit |= edge.enabled & move.possible & before
        return ~applicable | hit

    def _truth(self, expression: object) -> tuple[Condition, Condition]:
        """Where a condition holds, and where it has no value."""
        part = self.encoding.partition(expression, self.encoding.state)  # type: ignore[arg-type]  # FALSE or a property's
        holds = part.get(True, self.bdd.false)
        return holds, ~(holds | part.get(False, self.bdd.false))

    def _add_edge(self, rule: Rule, number: int) -> None:
        model = self.task.model
        parts = [
            (model.automata[participant.automaton], index)
            for participant, index in zip(rule.participants, rule.edges(number), strict=True)
        ]
        enabled = self.encoding.valid
        for automaton, index in parts:
            edge = automaton.edges[index]
            here = automaton.location_variable
            if here is not None:
                enabled &= self.encoding.state[here].get(edge.location, self.bdd.false)
            holds, nothing = self._truth(edge.guard)
            self._broken |= enabled & nothing
            enabled &= holds
        if enabled == self.bdd.false:
            return
        edges = [(automaton, automaton.edges[index]) for automaton, index in parts]
        moves = tuple(self._moves(edges, enabled))
        action = {0: number, 1: rule.label, 2: 0}[self.task.granularity]
        self._edges.append(_ComposedEdge(action, enabled, moves))

    def _moves(
        self, edges: Sequence[tuple[Automaton, Edge]], enabled: Condition
    ) -> Iterator[_Move]:
        for picked in itertools.product(*(edge.destinations for _, edge in edges)):
            chance = enabled
            for destination in picked:
                if destination.probability is not None:
                    part = self.encoding.partition(destination.probability, self.encoding.state)
                    self._broken |= enabled & ~self.encoding.union(part.values())
                    chance &= self.encoding.union(c for p, c in part.items() if p > 0)
            if chance == self.bdd.false:
                continue
            after = self._after(edges, picked)
            within = self.bdd.true
            bits: dict[str, Condition] = {}
            for variable, part in after.items():
                within &= self.encoding.within(variable, part)
                bits |= self.encoding.bits_after(variable, part)
            self._broken |= chance & ~within
            yield _Move(chance & within, bits)

    def _agreed(self, one: Partition, other: Partition) -> Partition:
        """No value where two assignments to a variable differ."""
        if one is other:
            return one
        return {v: one[v] & other[v] for v in one.keys() & other.keys()}

    def _after(
        self, edges: Sequence[tuple[Automaton, Edge]], picked: Sequence[Destination]
    ) -> dict[Variable, Partition]:
        """The variables of the state that are assigned, and what they become."""
        always = self.bdd.true
        environment: dict[Variable, Partition] = dict(self.encoding.state)
        for variable in self.task.model.transients:
            if variable.initial is not None:
                environment[variable] = {variable.initial: always}
        planned = [assignment for destination in picked for assignment in destination.assignments]
        changed: set[Variable] = set()
        if len({a.index for a in planned}) <= 1 and not self.task.model.transients:
            environment = self.encoding.state  # known partitions are found again
        for index in sorted({assignment.index for assignment in planned}):
            assigned: dict[Variable, Partition] = {}
            for a in planned:
                if a.index == index:
                    part = self.encoding.partition(a.value, environment)
                    assigned[a.variable] = self._agreed(assigned.get(a.variable, part), part)
            changed |= assigned.keys()
            environment = {**environment, **assigned}
        after = {v: environment[v] for v in changed if not v.transient}
        for (automaton, _), destination in zip(edges, picked, strict=True):
            if automaton.location_variable is not None:
                after[automaton.location_variable] = {destination.location: always}
        return after
