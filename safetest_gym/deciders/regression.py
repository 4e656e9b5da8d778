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
        possible: the edge is enabled, the outcome's probability is positive, and it has a
            value within the bounds.
        constants: what bits become that have the same value whenever it is possible.
        bits: what the other bits that change become.
    """

    possible: Condition
    constants: dict[str, bool]
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
        self._hits: dict[int, Condition] = {}

    def work(self) -> Iterator[None]:
        """Compute; pauses between small pieces of work."""
        encoding, model, bdd = self.encoding, self.task.model, self.bdd
        self._edges, self._hits = [], {}
        composition = compose(model)
        for rule in composition.rules:
            for number in range(rule.base, rule.base + rule.size):
                self._add_edge(rule, number)
                yield
        failing, bad = self._truth(self.task.property.failure or FALSE)
        goal, worse = self._truth(self.task.property.goal or FALSE)
        live = encoding.valid & ~failing & ~goal
        self._broken = (self._broken & live) | ((bad | worse) & encoding.valid)
        failing &= encoding.valid
        self.unsafe = failing
        for region in self._regress(bdd.false, failing, live):
            self.unsafe = region
            yield
        self.doubtful = self.unsafe
        harm = self._broken & ~self.unsafe
        if harm != bdd.false:
            for region in self._regress(self.unsafe, harm, live):
                self.doubtful = region
                yield

    def _regress(
        self, region: Condition, frontier: Condition, live: Condition
    ) -> Iterator[Condition]:
        """Regions that grow up to the least fixed point, which comes last.

        Args:
            region: closed already; what leads there is in ``_hits``.
            frontier: what joins it.
        """
        applicable: dict[int, Condition] = {}
        for edge in self._edges:
            applicable[edge.action] = applicable.get(edge.action, self.bdd.false) | edge.enabled
        while True:
            region |= frontier
            following = live & ~region
            alive = self.bdd.false  # in a dead end, no action is refuted
            for action in sorted(applicable):
                hit = self._hits.get(action, self.bdd.false)
                for move in self._moves_of(action):
                    hit |= move.possible & self._before(move, frontier)
                    yield region
                self._hits[action] = hit
                following &= ~applicable[action] | hit
                alive |= hit
            following &= alive
            if following == self.bdd.false:
                return
            frontier = following

    def _moves_of(self, action: int) -> Iterator[_Move]:
        for edge in self._edges:
            if edge.action == action:
                yield from edge.moves

    def _before(self, move: _Move, region: Condition) -> Condition:
        """Where does the move lead into the region, if it is possible?"""
        before = self.bdd.let(move.constants, region) if move.constants else region
        return self.bdd.let(move.bits, before) if move.bits else before

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
            yield self._move(chance & within, bits)

    def _move(self, possible: Condition, bits: dict[str, Condition]) -> _Move:
        """Guards often say what an assignment comes to: constants are replaced much faster."""
        constants: dict[str, bool] = {}
        others: dict[str, Condition] = {}
        for name, becomes in bits.items():
            if possible & becomes == self.bdd.false:
                constants[name] = False
            elif possible & ~becomes == self.bdd.false:
                constants[name] = True
            else:
                others[name] = becomes
        return _Move(possible, constants, others)

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
