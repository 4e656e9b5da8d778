"""Repair of 20-tree ensembles: seconds and bounds at 1000 and 15,000 faults.

Faults come from bundled tasks and their decider, with a clumsy policy or with one that was
trained and copied into trees, or from random states with a made-up notion of safety (many
alternatives, hardly structured). Run from the checkout as
``python -m tests.benchmarks.repair_scale``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.bench.policies import open_bundled
from safetest_gym.bench.policies import trained as trained_network
from safetest_gym.bench.timing import stopwatch
from safetest_gym.deciders import Verdict, make_decider
from safetest_gym.policies import Interface, TreeEnsemblePolicy, distil
from safetest_gym.policies.xgboost_file import policy_from_booster
from safetest_gym.repair.repairing import RepairOptions, repair
from safetest_gym.repair.requests import FaultSet
from safetest_gym.task import Task
from tests.benchmarks.harness import Facts, Report, Runner, main

VARIABLES, LEVELS = 11, 16
STARTS, STEPS, TRAINING_STEPS = 60_000, 60, 4096
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "line": ("TwoWayLine", {"packages": 9, "locations": 15}),
    "beluga-5": ("Beluga", {"jigs": 5}),
    "beluga-6": ("Beluga", {"jigs": 6}),
    "beluga-7": ("Beluga", {"jigs": 7}),
    "rover-2": ("RoversMarsMiniCap", {}),
    "rover": ("RoversMars", {}),
    "rover-4": ("RoversMars", {"width": 4, "height": 4}),
}


def trained(
    states: NDArray[Any], labels: NDArray[np.int64], names: Interface
) -> TreeEnsemblePolicy:
    """20 trees of depth 5 with vector leaves."""
    import xgboost

    settings = {
        "objective": "multi:softprob",
        "multi_strategy": "multi_output_tree",
        "tree_method": "hist",
        "num_class": names.num_actions,
        "max_depth": 5,
        "eta": 0.4,
        "nthread": 1,
    }
    data = xgboost.DMatrix(states.astype(np.float32), label=labels)
    return policy_from_booster(xgboost.train(settings, data, 20), names)


def made_up(count: int, actions: int, seed: int) -> tuple[TreeEnsemblePolicy, FaultSet]:
    """Random states; an action is safe where a random linear function says so."""
    rng = np.random.default_rng(seed)
    teacher, guard = rng.normal(size=(2, actions, VARIABLES))
    states = rng.integers(0, LEVELS, (6000, VARIABLES))
    labels = ((states - LEVELS / 2) @ teacher.T).argmax(axis=1)
    labels[:actions] = np.arange(actions)
    names = Interface(
        tuple(f"v{i}" for i in range(VARIABLES)), tuple(f"a{i}" for i in range(actions))
    )
    policy = trained(states, labels, names)
    states = np.unique(rng.integers(0, LEVELS, (4 * count, VARIABLES)), axis=0)
    applicable = rng.random((len(states), actions)) < 0.7
    applicable[:, 0] = True
    safe = applicable & ((states - LEVELS / 2) @ guard.T > -LEVELS / 8)
    return policy, _faults(policy, states, applicable, safe, (count, seed))


def on_task(name: str, count: int, seed: int) -> tuple[TreeEnsemblePolicy, FaultSet]:
    """Bad decisions of a clumsy policy in states on random runs of a task."""
    task, _, _ = open_bundled(*TASKS[name])
    rng = np.random.default_rng(seed)
    every, applicable = _visited(task, rng, None)
    weights = rng.normal(size=(every.shape[1], task.num_actions))
    labels = np.where(applicable, every @ weights, -np.inf).argmax(axis=1)
    labels[: task.num_actions] = np.arange(task.num_actions)
    policy = trained(every, labels, Interface.of(task))
    return policy, _faults(policy, every, applicable, _safe(task, every), (count, seed))


def after_training(name: str, count: int, seed: int) -> tuple[TreeEnsemblePolicy, FaultSet]:
    """Bad decisions of 20 trees that imitate a trained network, on runs that half follow them."""
    bundled, parameters = TASKS[name]
    with TemporaryDirectory() as folder:
        network = trained_network(bundled, parameters, (TRAINING_STEPS, seed), Path(folder))
    task, _, _ = open_bundled(bundled, parameters)
    policy = distil(network, task)
    every, applicable = _visited(task, np.random.default_rng(seed), policy)
    return policy, _faults(policy, every, applicable, _safe(task, every), (count, seed))


def _visited(
    task: Task, rng: np.random.Generator, policy: TreeEnsemblePolicy | None
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Where decisions are made on random runs; if there is a policy, it makes half of them."""
    states = task.initial.sample(STARTS, rng)
    seen = [states]
    for _ in range(STEPS):
        applicable = np.asarray(task.applicable_many(states), dtype=np.bool_)
        moving = applicable.any(axis=1) & (task.classify(states) == 0)
        states, applicable = states[moving], applicable[moving]
        if not len(states):
            break
        chosen = np.where(applicable, rng.random(applicable.shape), -1).argmax(axis=1)
        if policy is not None:
            own = policy.actions(states, applicable)
            chosen = np.where(rng.random(len(states)) < 0.5, own, chosen)
        states = task.step_many(states, chosen, rng)
        seen.append(states)
    every = np.unique(np.concatenate(seen), axis=0)
    every = every[(task.classify(every) == 0) & task.applicable_many(every).any(axis=1)]
    return every, np.asarray(task.applicable_many(every), dtype=np.bool_)


def _safe(task: Task, states: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(make_decider("otf", task).action_verdicts(states) == Verdict.SAFE)


def _faults(
    policy: TreeEnsemblePolicy,
    states: NDArray[Any],
    applicable: NDArray[np.bool_],
    safe: NDArray[np.bool_],
    drawn: tuple[int, int],
) -> FaultSet:
    count, seed = drawn
    actions = policy.actions(states, applicable)
    wrong = np.flatnonzero(safe.any(axis=1) & ~safe[np.arange(len(states)), actions])
    rows = np.random.default_rng(seed + 1).permutation(wrong)[:count]
    return FaultSet(
        states=states[rows], actions=actions[rows], applicable=applicable[rows], safe=safe[rows]
    )


def repaired(source: str, count: int, variant: Any, seed: int) -> Facts:
    """Seconds of processors and by the clock, size and gap of one repair with HiGHS."""
    kind, _, name = source.rpartition(" ")
    if kind == "trained":
        policy, faults = after_training(name, count, seed)
    elif name in TASKS:
        policy, faults = on_task(name, count, seed)
    else:
        policy, faults = made_up(count, int(name), seed)
    RepairOptions(method="leaves", variant=variant, work=1).run(policy, _first(faults, 150))
    begun = time.perf_counter()
    with stopwatch() as watch:
        _, report = repair(policy, faults, method="leaves", variant=variant, solver="highs")
    return {
        "faults": len(faults),
        "fixed": int(report.fixed.sum()),
        "seconds": watch.seconds,
        "wall": time.perf_counter() - begun,
        "objective": report.objective,
        "gap": report.gap,
        "new trees": report.trees_added,
    }


def _first(faults: FaultSet, count: int) -> FaultSet:
    return FaultSet(
        states=faults.states[:count],
        actions=faults.actions[:count],
        applicable=faults.applicable[:count],
        safe=faults.safe[:count],
    )


_MADE_UP = ("8", "12")
_SOURCES = (
    "line",
    "beluga-6",
    "rover-2",
    "rover",
    "rover-4",
    "trained beluga-5",
    "trained beluga-6",
    "trained beluga-7",
    "trained rover-2",
    "trained rover",
    "trained rover-4",
)
_LIMITS = {"weak": 5.0, "strong": 20.0}
_SEEDS = {"weak": 6, "strong": 2}
"""Of policies and faults; one would say little, as gaps differ much from seed to seed."""


def _cases() -> Iterator[tuple[str, int, str, float, int]]:
    """Where faults come from, how many, variant, seconds at most, and seed."""
    for variant, limit in _LIMITS.items():
        yield "10", 1000, variant, 2.0, 0
        for source in _MADE_UP:
            yield source, 15_000, variant, limit, 0
        for source in _SOURCES:
            for seed in range(_SEEDS[variant]):
                yield source, 15_000, variant, limit, seed


def _plan(runner: Runner, wanted: frozenset[str]) -> Report:
    report = Report("repair")
    for source, count, variant, limit, seed in _cases():
        name = f"{source}-{count}-{variant}-{seed}"
        if wanted and name not in wanted:
            continue
        facts = runner.run("repair", source=source, count=count, variant=variant, seed=seed)
        report.facts[name] = facts
        if facts is None:
            raise RuntimeError(f"{name} did not end within the cap")
        shown = (
            f"{facts['wall']:.2f} s by the clock, at most {limit}, {facts['seconds']:.2f} of "
            f"processors; {facts['fixed']} of {facts['faults']} "
            f"fixed, size {facts['objective']:.1f}, gap {100 * facts['gap']:.0f} %, "
            f"{facts['new trees']} new trees"
        )
        report.add(name, shown, ratio=limit / facts["wall"], target=1)
    return report


if __name__ == "__main__":
    main("tests.benchmarks.repair_scale", {"repair": repaired}, _plan)
