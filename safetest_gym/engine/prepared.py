"""Edges made ready for code: calls inlined, assignments over the state before the step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from safetest_gym.engine.composition import Composition, Participant, Rule
from safetest_gym.engine.rewrite import Inliner, Update, reads, sequence
from safetest_gym.errors import JaniError
from safetest_gym.jani.tree import (
    Automaton,
    Destination,
    Edge,
    Expression,
    Literal,
    Model,
    Operation,
    Reference,
    Variable,
)

__all__ = ["Preparation", "PreparedDestination", "PreparedEdge"]

MAX_TANGLED = 20_000


@dataclass(frozen=True, slots=True)
class PreparedDestination:
    """Probability (None is 1) and effect of a destination."""

    probability: Expression | None
    update: Update


@dataclass(frozen=True, slots=True)
class PreparedEdge:
    """One edge, or a fixed combination of edges, and the number it is known by.

    ``conjuncts`` hold together exactly if the edge is enabled; the location comes first.
    ``weights`` are probabilities that must sum to 1, per edge that the reader did not check.
    """

    number: int
    conjuncts: tuple[Expression, ...]
    destinations: tuple[PreparedDestination, ...]
    weights: tuple[tuple[Expression, ...], ...]

    @property
    def written(self) -> set[Variable]:
        """Every variable that a destination may write."""
        return {v for d in self.destinations for v in d.update.values}


class Preparation:
    """Prepares edges on demand; each automaton's edges once.

    A rule is *tangled* when one participant's assignment reads or overwrites what another
    participant assigns at another index; only then combinations of edges are formed here.
    """

    def __init__(self, model: Model, composition: Composition) -> None:
        self._model = model
        self._composition = composition
        self.inline = Inliner()
        self._conjuncts: dict[tuple[int, int], tuple[Expression, ...]] = {}
        self._edges: dict[tuple[int, int], tuple[PreparedDestination, ...]] = {}

    def single(self, automaton: int, edge: int, number: int) -> PreparedEdge:
        """One automaton's edge."""
        key = (automaton, edge)
        if key not in self._edges:
            self._edges[key] = self._destinations([automaton], [edge])
        weights = self._weights([automaton], [edge])
        return PreparedEdge(number, self.guard(automaton, edge), self._edges[key], weights)

    def combinations(self, rule: Rule) -> list[PreparedEdge]:
        """Every composed edge of a tangled rule."""
        if rule.size > MAX_TANGLED:
            raise JaniError(
                f"a synchronisation of {rule.size} edge combinations has assignments that "
                "depend on each other through assignment indices",
                path="$.system.syncs",
                hint=f"at most {MAX_TANGLED} such combinations are supported",
            )
        automata = [participant.automaton for participant in rule.participants]
        result = []
        for number in range(rule.base, rule.base + rule.size):
            edges = rule.edges(number)
            conjuncts = tuple(
                itertools.chain.from_iterable(
                    self.guard(a, e) for a, e in zip(automata, edges, strict=True)
                )
            )
            destinations = self._destinations(automata, edges)
            weights = self._weights(automata, edges)
            result.append(PreparedEdge(number, conjuncts, destinations, weights))
        return result

    def is_tangled(self, rule: Rule) -> bool:
        """See the class."""
        if len(rule.participants) < 2:
            return False
        used = [_assignment_uses(self._automaton_edges(p)) for p in rule.participants]
        for (written, _), (others_written, others_read) in itertools.permutations(used, 2):
            for variable, indices in written.items():
                lowest = min(indices)
                if any(index > lowest for index in others_read.get(variable, ())):
                    return True
                if variable in others_written and len(indices | others_written[variable]) > 1:
                    return True
        return False

    def _automaton_edges(self, participant: Participant) -> list[Edge]:
        automaton = self._model.automata[participant.automaton]
        return [automaton.edges[e] for e in participant.edges]

    def guard(self, automaton: int, edge: int) -> tuple[Expression, ...]:
        """What holds if one automaton's edge is enabled, as conjuncts."""
        key = (automaton, edge)
        if key not in self._conjuncts:
            owner = self._model.automata[automaton]
            tree = owner.edges[edge]
            first: tuple[Expression, ...] = ()
            if owner.location_variable is not None:
                first = (_at(owner, tree.location),)
            self._conjuncts[key] = (*first, *_conjuncts(self.inline.plain(tree.guard)))
        return self._conjuncts[key]

    def _destinations(
        self, automata: Sequence[int], edges: Sequence[int]
    ) -> tuple[PreparedDestination, ...]:
        owners = [self._model.automata[a] for a in automata]
        trees = [owner.edges[e] for owner, e in zip(owners, edges, strict=True)]
        result = []
        for combination in itertools.product(*(tree.destinations for tree in trees)):
            assignments = itertools.chain.from_iterable(d.assignments for d in combination)
            update = sequence(assignments, self.inline)
            for owner, tree, destination in zip(owners, trees, combination, strict=True):
                if owner.location_variable is not None and destination.location != tree.location:
                    update.values[owner.location_variable] = Literal(destination.location, "int")
            result.append(PreparedDestination(self._probability(combination), update))
        return tuple(result)

    def _weights(
        self, automata: Sequence[int], edges: Sequence[int]
    ) -> tuple[tuple[Expression, ...], ...]:
        found = []
        for automaton, edge in zip(automata, edges, strict=True):
            tree = self._model.automata[automaton].edges[edge]
            given = [d.probability or Literal(1.0, "real") for d in tree.destinations]
            if not all(isinstance(probability, Literal) for probability in given):
                found.append(tuple(self.inline.plain(probability) for probability in given))
        return tuple(found)

    def _probability(self, combination: Iterable[Destination]) -> Expression | None:
        factors: list[Expression] = []
        for destination in combination:
            probability = destination.probability
            if probability is not None:
                factors.append(self.inline.plain(probability))
        if not factors:
            return None
        if len(factors) == 1:
            return factors[0]
        if all(isinstance(f, Literal) for f in factors):
            values = [f.value for f in factors if isinstance(f, Literal)]
            return Literal(float(math.prod(values)), "real")
        return Operation("*", tuple(factors), "real")


def _at(owner: Automaton, location: int) -> Expression:
    assert owner.location_variable is not None
    return Operation("=", (Reference(owner.location_variable), Literal(location, "int")), "bool")


def _conjuncts(guard: Expression) -> tuple[Expression, ...]:
    if isinstance(guard, Operation) and guard.operator == "∧":
        return guard.operands
    if isinstance(guard, Literal) and guard.value is True:
        return ()
    return (guard,)


def _assignment_uses(
    edges: Iterable[Edge],
) -> tuple[dict[Variable, set[int]], dict[Variable, set[int]]]:
    """Per variable, the indices at which assignments write it and read it."""
    written: dict[Variable, set[int]] = {}
    read: dict[Variable, set[int]] = {}
    for edge in edges:
        for destination in edge.destinations:
            for assignment in destination.assignments:
                written.setdefault(assignment.variable, set()).add(assignment.index)
                for variable in reads([assignment.value]):
                    read.setdefault(variable, set()).add(assignment.index)
    return written, read
