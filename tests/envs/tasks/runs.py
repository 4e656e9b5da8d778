"""Random runs of generated models, alone and side by side with a published one."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from safetest_gym.task import Task, load_task
from tests.envs.tasks.document import Document, Json, State
from tests.envs.tasks.equivalence import Planning, require_same_variables

Pair = tuple[Document, Planning]


class Generator(Protocol):
    """What every task generator offers."""

    @property
    def name(self) -> str: ...

    def model(self) -> Json: ...

    def properties(self) -> list[Json]: ...


def generated(task: Generator) -> Pair:
    """The generated model with its first property."""
    return Document(task.model()), Planning.of(task.properties()[0])


def box_of(condition: Any) -> dict[str, list[float]]:
    """The bounds per variable of a conjunction of comparisons with numbers."""
    if condition["op"] == "∧":
        box = box_of(condition["left"])
        for name, (lower, upper) in box_of(condition["right"]).items():
            known = box.get(name, [lower, upper])
            box[name] = [max(known[0], lower), min(known[1], upper)]
        return box
    left, right = condition["left"], condition["right"]
    name, value = (left, right) if isinstance(left, str) else (right, left)
    open_end = float("inf")
    if condition["op"] == "=":
        return {name: [value, value]}
    below = (condition["op"] == "≤") == isinstance(left, str)
    return {name: [-open_end, value] if below else [value, open_end]}


def sampled(pair: Pair, number: int, seed: int) -> list[State]:
    """Start states drawn from the box that the start condition describes."""
    document, planning = pair
    rng = random.Random(seed)
    box = box_of(planning.start)
    starts = []
    for _ in range(number):
        draw = {n: lo if lo == hi else rng.uniform(lo, hi) for n, (lo, hi) in box.items()}
        starts.append(document.state(draw))
    holds = document.function(planning.start)
    assert all(holds(start) for start in starts)
    return starts


def anywhere(document: Document, number: int, seed: int) -> list[State]:
    """States drawn from the variables' bounds: whole numbers and others."""
    rng = random.Random(seed)

    def value(kind: str, lower: Any, upper: Any) -> Any:
        whole = kind == "int" or rng.random() < 0.3
        return rng.randint(int(lower), int(upper)) if whole else rng.uniform(lower, upper)

    variables = document.variables
    return [(*(value(v.kind, v.lower, v.upper) for v in variables), 0) for _ in range(number)]


def walk(pair: Pair, start: State, steps: int, seed: int) -> list[State]:
    """A run of random choices and outcomes until it ends; bounds are checked on the way."""
    document, ends = pair[0], _ends(pair)
    rng = random.Random(seed)
    run = [start]
    while len(run) <= steps and not ends(run[-1]):
        choices = list(document.choices(run[-1]))
        if not choices:
            break
        _, outcomes = rng.choice(choices)
        run.append(rng.choice(outcomes)[1])
    return run


def _ends(pair: Pair) -> Callable[[State], bool]:
    document, planning = pair
    failing, goal = document.function(planning.failure), document.function(planning.goal)
    return lambda state: bool(failing(state) or goal(state))


def require_same_runs(ours: Pair, theirs: Pair, starts: Sequence[State], steps: int) -> int:
    """Bit for bit the same choices and verdicts along random runs; the states compared."""
    require_same_variables(ours[0], theirs[0])
    assert ours[0].actions == theirs[0].actions
    conditions = [
        (pair[0].function(pair[1].failure), pair[0].function(pair[1].goal))
        for pair in (ours, theirs)
    ]
    compared = 0
    for seed, start in enumerate(starts):
        for state in walk(theirs, start, steps, seed):
            mine, other = ([bool(part(state)) for part in pair] for pair in conditions)
            assert mine == other, state
            assert sorted(ours[0].choices(state)) == sorted(theirs[0].choices(state)), state
            compared += 1
    return compared


def require_same_starts(ours: Pair, theirs: Pair, states: Sequence[State]) -> None:
    """Both start conditions describe one box, and agree on the states given."""
    assert box_of(ours[1].start) == box_of(theirs[1].start)
    mine, other = ours[0].function(ours[1].start), theirs[0].function(theirs[1].start)
    assert [bool(mine(state)) for state in states] == [bool(other(state)) for state in states]


def loaded(task: Generator) -> Task:
    """The generated task as the package reads it, with its first property."""
    return load_task(task.model(), {"properties": task.properties()})


def require_same_tasks(ours: Task, theirs: Task, number: int, steps: int) -> int:
    """Read by the package, both tasks agree to 1e-9 along random runs; the states compared."""
    assert [(v.lower, v.upper) for v in ours.variables] == [
        (v.lower, v.upper) for v in theirs.variables
    ]
    assert ours.actions == theirs.actions
    rng = np.random.default_rng(0)
    states = theirs.initial.sample(number, rng)
    compared = 0
    for _ in range(steps):
        classes, possible = theirs.classify(states), theirs.applicable_many(states)
        np.testing.assert_array_equal(ours.classify(states), classes)
        np.testing.assert_array_equal(ours.applicable_many(states), possible)
        _require_same_outcomes(ours, theirs, states[compared % len(states)])
        compared += len(states)
        ended = (classes > 0) | ~possible.any(axis=1)
        states[ended] = theirs.initial.sample(int(ended.sum()), rng)
        possible = theirs.applicable_many(states)
        open_ones = possible.any(axis=1)
        actions = np.where(possible, rng.random(possible.shape), -1.0).argmax(axis=1)
        live = states[open_ones]
        states[open_ones] = theirs.step_many(live, actions[open_ones], rng)
    return compared


def _require_same_outcomes(ours: Task, theirs: Task, state: Any) -> None:
    mine, other = ours.successors(state), theirs.successors(state)
    assert [action for action, _ in mine] == [action for action, _ in other]
    for (_, left), (_, right) in zip(mine, other, strict=True):
        assert [chance for chance, _ in left] == [chance for chance, _ in right]
        for (_, target), (_, reference) in zip(left, right, strict=True):
            np.testing.assert_allclose(target, reference, rtol=0, atol=1e-9)
