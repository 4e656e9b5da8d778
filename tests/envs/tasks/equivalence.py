"""Strict comparison of a generated model with a published one, and counts of state spaces.

Variable i of one stands for variable i of the other, action i for action i. Both are
explored in lock-step; every state must have the same choices, outcomes and probabilities.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.envs.tasks.document import Choice, Document, Json, State, read_json

FIGURES = (
    "states",
    "choices",
    "failing",
    "goal",
    "safe",
    "deadlocks_not_failing",
    "start_states",
    "start_states_safe",
)
"""What `counts` counts, in order."""


@dataclass(frozen=True)
class Planning:
    """A planning property, its parts as plain expressions."""

    name: str
    start: Any
    goal: Any
    failure: Any
    potential: Any
    step_reward: Any

    @classmethod
    def of(cls, data: Json) -> Planning:
        """Read a ``PA`` property."""
        expression = data["expression"]
        objective = expression["objective"]
        start = expression["start"]
        return cls(
            name=data["name"],
            start=start["values"] if start["op"] == "states-values" else start["exp"],
            goal=objective["goal"]["exp"],
            failure=expression["reach"]["exp"],
            potential=objective.get("goal-potential"),
            step_reward=objective.get("step-reward"),
        )

    def starts(self, document: Document, limit: int = 100_000) -> list[State]:
        """All start states, listed or by the condition, without duplicates."""
        if isinstance(self.start, list):
            rows = [{v["var"]: v["value"] for v in row["variables"]} for row in self.start]
            return list(dict.fromkeys(document.state(row) for row in rows))
        return document.matching(self.start, limit)


@dataclass(frozen=True)
class Published:
    """A published model, its listed starts and its start condition."""

    document: Document
    listed: Planning
    condition: Planning

    @classmethod
    def read(cls, folder: Path, name: str) -> Published:
        """Read ``name.jani`` and ``name.props.jani``."""
        model = read_json(folder / f"{name}.jani")
        properties = read_json(folder / f"{name}.props.jani")["properties"]
        both = [*properties, *model["properties"]]
        all_of_them = [Planning.of(p) for p in both if p["expression"]["op"] == "PA"]
        condition = next(p.start for p in all_of_them if isinstance(p.start, dict))
        listed = next((p for p in all_of_them if isinstance(p.start, list)), all_of_them[0])
        return cls(
            document=Document(model),
            listed=listed,
            condition=replace(all_of_them[0], start=condition),
        )


def space(
    document: Document, starts: Iterable[State], limit: int | None = None
) -> dict[State, tuple[Choice, ...]]:
    """Reachable states with their choices, breadth first; goal and failing states go on."""
    seen: dict[State, tuple[Choice, ...]] = {}
    queue = deque(dict.fromkeys(starts))
    known = set(queue)
    while queue and (limit is None or len(seen) < limit):
        state = queue.popleft()
        seen[state] = tuple(document.choices(state))
        for _, outcomes in seen[state]:
            for _, target in outcomes:
                if target not in known:
                    known.add(target)
                    queue.append(target)
    return seen


def counts(document: Document, planning: Planning, starts: Sequence[State]) -> dict[str, int]:
    """The figures of planning_cases.json, with every edge an action of its own."""
    states = space(document, starts)
    failing = document.function(planning.failure)
    goal = document.function(planning.goal)
    safe = safe_states(document, planning, states)
    return {
        "states": len(states),
        "choices": sum(max(1, len(c)) for c in states.values()),  # a deadlock counts one
        "failing": sum(bool(failing(s)) for s in states),
        "goal": sum(bool(goal(s)) for s in states),
        "safe": len(safe),
        "deadlocks_not_failing": sum(not c and not failing(s) for s, c in states.items()),
        "start_states": len(starts),
        "start_states_safe": sum(s in safe for s in starts),
    }


def safe_states(
    document: Document, planning: Planning, states: dict[State, tuple[Choice, ...]]
) -> set[State]:
    """States from which failing is avoidable: failing first, goal and deadlock end runs."""
    failing = document.function(planning.failure)
    goal = document.function(planning.goal)
    left: dict[State, int] = {}
    users: dict[State, list[tuple[State, int]]] = {}
    refuted: set[tuple[State, int]] = set()
    queue = [s for s in states if failing(s)]
    unsafe = set(queue)
    for state, choices in states.items():
        if state in unsafe or goal(state) or not choices:
            continue
        left[state] = len(choices)
        for number, (_, outcomes) in enumerate(choices):
            for _, target in outcomes:
                users.setdefault(target, []).append((state, number))
    while queue:
        for user in users.get(queue.pop(), ()):
            if user in refuted:
                continue
            refuted.add(user)
            left[user[0]] -= 1
            if left[user[0]] == 0:
                unsafe.add(user[0])
                queue.append(user[0])
    return set(states) - unsafe


def require_same_variables(ours: Document, theirs: Document) -> None:
    """Kinds, bounds and initial values agree position by position; so do the actions."""
    mine = [(v.kind, v.lower, v.upper, v.initial) for v in ours.variables]
    other = [(v.kind, v.lower, v.upper, v.initial) for v in theirs.variables]
    assert mine == other
    assert len(ours.actions) == len(theirs.actions)


def require_same_steps(
    ours: Document, theirs: Document, states: Mapping[State, tuple[Choice, ...]]
) -> None:
    """Our choices in each state are theirs; by induction the reachable states are too."""
    number = {label: index for index, label in enumerate(ours.actions)}
    other = {label: index for index, label in enumerate(theirs.actions)}
    for state, choices in states.items():
        expected = sorted((other.get(label, -1), outcomes) for label, outcomes in choices)
        actual = sorted((number.get(label, -1), o) for label, o in ours.choices(state))
        assert actual == expected, state


def require_same_conditions(
    ours: tuple[Document, Planning], theirs: tuple[Document, Planning], states: Iterable[State]
) -> int:
    """Failing, goal, start and what shaping the published one has agree on all states."""
    (my_document, mine), (their_document, other) = ours, theirs
    parts = ("failure", "goal", "start", "potential", "step_reward")
    pairs = [
        (
            part,
            my_document.function(getattr(mine, part)),
            their_document.function(getattr(other, part)),
        )
        for part in parts
        if getattr(other, part) is not None
    ]
    number = 0
    for state in states:
        number += 1
        for part, left, right in pairs:
            assert abs(left(state) - right(state)) < 1e-12, (part, state)
    return number


def perturbed(document: Document, states: Sequence[State], seed: int, number: int) -> list[State]:
    """States with one to three values drawn anew: mostly outside every reachable set."""
    rng = random.Random(seed)
    result = []
    for _ in range(number):
        values = list(rng.choice(states))
        for _ in range(rng.randint(1, 3)):
            index = rng.randrange(len(document.variables))
            variable = document.variables[index]
            low, high = int(variable.lower or 0), int(variable.upper or 0)
            values[index] = rng.randint(low, high)
        result.append(tuple(values))
    return result


def require_equivalent(
    generator: Any, published: Published, starts: Sequence[State], limit: int | None = None
) -> int:
    """Variables, steps and conditions agree from the given starts; number of states."""
    ours = Document(generator.model())
    mine = Planning.of(generator.properties()[0])
    theirs = published.document
    require_same_variables(ours, theirs)
    states = space(theirs, starts, limit)
    require_same_steps(ours, theirs, states)
    more = perturbed(theirs, list(states), 0, 20_000)
    require_same_conditions((ours, mine), (theirs, published.condition), [*states, *more])
    return len(states)
