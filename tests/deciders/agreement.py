"""What the tests of every algorithm ask: does it agree with the definitions, always?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from safetest_gym.deciders import Budget, Verdict, make_decider
from safetest_gym.deciders.base import Decider
from safetest_gym.deciders.checking import check_certificate
from safetest_gym.envs.tasks.beluga import Beluga
from safetest_gym.envs.tasks.blocksworld import Blocksworld
from safetest_gym.envs.tasks.families import LayeredFamily, OuterLoop
from safetest_gym.envs.tasks.flappy_bird import FlappyBird
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.envs.tasks.transport import Transport
from safetest_gym.envs.tasks.two_way_line import TwoWayLine
from safetest_gym.errors import OutOfBoundsError
from safetest_gym.policies import Interface, MlpPolicy, TablePolicy
from safetest_gym.task import Task, load_task
from tests.oracles.fixpoint import System, radius_needed, safe_states
from tests.oracles.hashed_systems import hashed_task, states_of, systems_of
from tests.oracles.policies import layer

__all__ = [
    "BUNDLED",
    "KINDS",
    "agrees_after_broken_off_searches",
    "agrees_on_a_bundled_task",
    "agrees_on_random_systems",
    "agrees_with_brute_force",
    "bundled",
    "counting_task",
    "layers",
    "proves_its_verdicts",
    "scores",
    "survives_errors",
    "table_policy",
    "truth_of",
]

KINDS: Any = [("label", "mdp"), ("edge", "mdp"), ("label", "dtmc")]

BUNDLED: dict[str, Any] = {
    "one_way_line": OneWayLine(packages=3, locations=6),
    "two_way_line": TwoWayLine(packages=2, locations=5),
    "blocksworld": Blocksworld(blocks=3, table_limit=2, cost_bound=None),
    "beluga": Beluga(jigs=2),
    "flappy_bird": FlappyBird(width=9, height=5),
    "layered": LayeredFamily(layers=8),
    "outer_loop": OuterLoop(size=6),
    "transport": Transport(packages=2),
}


def bundled(name: str) -> Task:
    """One of the tasks that the package brings along, small."""
    generator = BUNDLED[name]
    failure = "layer < 0" if name == "layered" else None
    return load_task(generator.model(), {"properties": generator.properties()}, failure=failure)


def layers(count: int) -> Task:
    """The layered family with a given number of layers; its only start is safe."""
    family = LayeredFamily(layers=count)
    return load_task(family.model(), failure="layer < 0", start="layer = 0 and side = 0")


def scores(task: Task) -> MlpPolicy:
    """A network whose best action depends on the state."""
    rng = np.random.default_rng(5)
    inputs, size = task.num_variables, len(task.actions)
    scale = np.array([1e-3] + [1.0] * (inputs - 1))
    weight = rng.normal(size=(8, inputs)) * scale
    layers = (
        layer(weight, rng.normal(size=8), "relu"),
        layer(rng.normal(size=(size, 8)), [0] * size),
    )
    return MlpPolicy(layers, Interface.of(task))


def truth_of(task: Task, states: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Verdicts of random systems, by the fixpoint."""
    verdicts = []
    for system in systems_of(task, states):
        safe = safe_states(system)
        verdicts += [Verdict.SAFE if s in safe else Verdict.UNSAFE for s in system.states]
    return np.array(verdicts, np.uint8)


def agrees_on_random_systems(
    name: str, order: Any, mode: Any, kind: Any, *, systems: range, fresh: int
) -> None:
    """All states, in two orders with a shared cache, and the first ones with a fresh one."""
    task = hashed_task(mode=mode, kind=kind)
    states = states_of(systems)
    truth = truth_of(task, states)
    decider = make_decider(name, task, policy=scores(task), order=order)
    for seed in range(2):
        shuffled = np.random.default_rng(seed).permutation(len(states))
        decider.clear()
        assert np.array_equal(decider.decide_many(states[shuffled]), truth[shuffled])
        _holds_facts_only(decider, task)
    for state, verdict in zip(states[:fresh], truth.tolist(), strict=False):
        decider.clear()
        assert decider.decide(state) == verdict
        _holds_facts_only(decider, task)


def _holds_facts_only(decider: Decider, task: Task) -> None:
    """Everything that is kept is what otf says as well."""
    known = decider.space.known
    kept = decider.verdict[:known]
    vectors = task.engine.unpack(decider.space.words(np.arange(known)))
    right = _otf(task).decide_many(vectors)
    assert np.array_equal(kept[kept > 0], right[kept > 0])


_REFERENCES: dict[str, Decider] = {}


def _otf(task: Task) -> Decider:
    return _REFERENCES.setdefault(task.digest, make_decider("otf", task))


def proves_its_verdicts(name: str, *, radius: float = np.inf) -> None:
    """Certificates check, for safe and for unsafe states."""
    task = hashed_task(places=5)
    states = states_of(range(12), places=5)
    policy, _ = table_policy(task, states, systems_of(task, states), seed=3)
    decider = make_decider(name, task, policy=policy, radius=radius)
    found = decider.decide_many(states)
    assert {Verdict.SAFE, Verdict.UNSAFE} == set(found.tolist())
    for state, verdict in zip(states, found.tolist(), strict=True):
        certificate = decider.certificate(state)
        assert certificate.verdict == verdict
        check_certificate(task, certificate, policy=None if radius == np.inf else policy)


def agrees_after_broken_off_searches(name: str) -> None:
    """Budgets that end at any point leave nothing behind that is not true."""
    task = hashed_task()
    states = states_of(range(300))
    truth = _otf(task).decide_many(states)
    decider = make_decider(name, task)
    for round_ in range(30):
        decider.budget = Budget(states=1 + round_ * len(states) // 30)
        found = decider.decide_many(states[:: round_ + 1])
        known = found != Verdict.UNKNOWN
        assert np.array_equal(found[known], truth[:: round_ + 1][known])
    decider.budget = Budget()
    assert np.array_equal(decider.decide_many(states), truth)


def table_policy(
    task: Task, states: NDArray[np.int64], systems: list[System], seed: int
) -> tuple[TablePolicy, list[list[int]]]:
    """A random policy for all these systems, as a table and per system."""
    rng = np.random.default_rng(seed)
    rows, chosen, per_system = [], [], []
    remaining = iter(states)
    for system in systems:
        own = []
        for s in system.states:
            row = next(remaining)
            own.append(-1 if system.is_over(s) else int(rng.choice(sorted(system.actions[s]))))
            if own[-1] >= 0:
                rows.append(row)
                chosen.append(own[-1])
        per_system.append(own)
    return TablePolicy(np.array(rows), np.array(chosen), Interface.of(task)), per_system


def agrees_with_brute_force(
    name: str, radius: int, mode: Any, *, systems: range, orders: Any = ("app", "rand")
) -> None:
    """r-safety by trying all policies; also for states with fewer deviations left."""
    task = hashed_task(places=5, mode=mode)
    states = states_of(systems, places=5)
    explicit = systems_of(task, states)
    policy, own = table_policy(task, states, explicit, seed=radius)
    needed = np.concatenate(
        [radius_needed(system, actions) for system, actions in zip(explicit, own, strict=True)]
    )
    rng = np.random.default_rng(radius)
    for order in orders:
        decider = make_decider(name, task, policy=policy, radius=radius, order=order)
        for left in rng.permutation(radius + 1).tolist():
            rows = decider.space.packed(states, np.full(len(states), left))
            truth = np.where(needed <= left, Verdict.SAFE, Verdict.UNSAFE)
            shuffled = rng.permutation(len(states))
            assert np.array_equal(decider._decide_packed(rows[shuffled]), truth[shuffled])
        for state, r in zip(states[:100], needed.tolist(), strict=False):
            decider.clear()
            expected = Verdict.SAFE if r <= radius else Verdict.UNSAFE
            assert decider.decide(state) is expected


def agrees_on_a_bundled_task(
    name: str, task: Task, *, radius: float = np.inf, order: Any = "app", most: int = 400
) -> None:
    """As otf on some start states and what a few steps lead to, cached and fresh."""
    rng = np.random.default_rng(7)
    starts = task.initial.sample(min(most // 4, 50), rng)
    states = np.unique(np.concatenate([starts, _some_after(task, starts, most)]), axis=0)
    states = states[task.applicable_many(states).any(axis=1)]
    policy = scores(task)
    truth = make_decider("otf", task, policy=policy, radius=radius).decide_many(states)
    decider = make_decider(name, task, policy=policy, radius=radius, order=order)
    assert np.array_equal(decider.decide_many(states), truth)
    for state, verdict in zip(states[:20], truth.tolist(), strict=False):
        decider.clear()
        assert decider.decide(state) == verdict


def _some_after(task: Task, starts: NDArray[Any], most: int) -> NDArray[Any]:
    found = list(starts)
    for state in found:
        if len(found) > most:
            break
        if not task.is_failing(state) and not task.is_goal(state):
            found += [o for _, outcomes in task.successors(state) for _, o in outcomes]
    return np.array(found[: most + 1])


def counting_task(steps: int, failure: str = "n = 4") -> Task:
    """Counts up, out of its bounds at last; may go home instead from 2 on."""
    edge = {"location": "l", "guard": {"exp": True}}
    up = {"op": "+", "left": "n", "right": steps}
    edges = [
        edge | {"action": "up", "destinations": [_to(up)]},
        edge
        | {
            "action": "home",
            "guard": {"exp": {"op": "≥", "left": "n", "right": 2}},
            "destinations": [_to(0)],
        },
    ]
    kind = {"kind": "bounded", "base": "int", "lower-bound": 0, "upper-bound": 5}
    document = {
        "jani-version": 1,
        "name": "counter",
        "type": "mdp",
        "actions": [{"name": "up"}, {"name": "home"}],
        "variables": [{"name": "n", "type": kind, "initial-value": 0}],
        "automata": [
            {
                "name": "a",
                "locations": [{"name": "l"}],
                "initial-locations": ["l"],
                "edges": edges,
            }
        ],
        "system": {
            "elements": [{"automaton": "a"}],
            "syncs": [{"synchronise": [a], "result": a} for a in ("up", "home")],
        },
    }
    return load_task(document, failure=failure)


def _to(value: Any) -> Any:
    return {"location": "l", "assignments": [{"ref": "n", "value": value}]}


def survives_errors(name: str) -> None:
    """An error is explained every time, and what was known by then is true."""
    decider = make_decider(name, counting_task(1, "n = 0"))
    for _ in range(2):
        with pytest.raises(OutOfBoundsError, match="assigns 6 to 'n'"):
            decider.decide(np.array([3]))
    assert decider.decide(np.array([0])) is Verdict.UNSAFE
    broken = make_decider(name, counting_task(1, "1 / (n - 4) < 0 and n > 1000"))
    for _ in range(2):
        with pytest.raises(ArithmeticError):
            broken.decide(np.array([1]))
    assert broken.statistics.states <= 4  # the state without a value is forgotten
