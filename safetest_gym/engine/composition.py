"""Which edges happen together, and the numbers they are known by.

A `Rule` is one synchronisation vector, or the silent edges of one automaton. A composed
edge is a choice of one edge per participant of a rule; composed edges are numbered over
all rules, within a rule with the last participant's edge varying fastest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from safetest_gym.errors import JaniError
from safetest_gym.jani.tree import Model

__all__ = ["SILENT", "Composition", "Participant", "Rule", "compose"]

SILENT = "τ"
"""Label of outcomes that no result names."""

MAX_NUMBER = 2**62


@dataclass(frozen=True, slots=True)
class Participant:
    """An automaton in a rule, with its edges (indices) that can take part."""

    automaton: int
    edges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """One way for edges to happen together.

    Attributes:
        label: index into `Composition.labels`.
        base: number of the rule's first composed edge.
        size: how many composed edges it has (the product over participants).
    """

    label: int
    participants: tuple[Participant, ...]
    base: int
    size: int

    def edges(self, number: int) -> tuple[int, ...]:
        """The edge index per participant of composed edge ``number``."""
        rest, picked = number - self.base, []
        for participant in reversed(self.participants):
            rest, index = divmod(rest, len(participant.edges))
            picked.append(participant.edges[index])
        return tuple(reversed(picked))


@dataclass(frozen=True, slots=True)
class Composition:
    """All rules of a model, by label.

    Attributes:
        labels: the model's actions in declaration order, then `SILENT` if needed.
        rules: ordered by label, then as the document gives them.
        size: number of composed edges.
    """

    labels: tuple[str, ...]
    rules: tuple[Rule, ...]
    size: int


def compose(model: Model) -> Composition:
    """Number the composed edges of ``model``; rules that can never fire are left out."""
    by_action: list[dict[str | None, list[int]]] = []
    for automaton in model.automata:
        edges: dict[str | None, list[int]] = {}
        for index, edge in enumerate(automaton.edges):
            edges.setdefault(edge.action, []).append(index)
        by_action.append(edges)

    found: dict[str, list[tuple[Participant, ...]]] = {label: [] for label in model.actions}
    for vector in model.vectors:
        participants = tuple(
            Participant(a, tuple(by_action[a].get(action, ())))
            for a, action in enumerate(vector.synchronise)
            if action is not None
        )
        label = SILENT if vector.result is None else vector.result
        found.setdefault(label, []).append(participants)
    for a, edges in enumerate(by_action):
        if None in edges:
            found.setdefault(SILENT, []).append((Participant(a, tuple(edges[None])),))

    labels = tuple(found)
    rules: list[Rule] = []
    base = 0
    for label_index, label in enumerate(labels):
        for participants in found[label]:
            size = math.prod(len(participant.edges) for participant in participants)
            if size == 0 or not participants:
                continue
            rules.append(Rule(label_index, participants, base, size))
            base += size
    if base > MAX_NUMBER:
        raise JaniError(
            f"the composition has {base} combinations of edges, more than 64-bit numbers hold",
            path="$.system",
            hint="use fewer automata in one synchronisation",
        )
    return Composition(labels, tuple(rules), base)
