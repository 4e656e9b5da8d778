"""Repair of 20-tree ensembles: seconds and bounds at 1000 and 15,000 faults.

Faults come either from random states with a made-up notion of safety (many alternatives,
hardly structured) or from bundled tasks and their decider. Run from the checkout as
``python -m tests.benchmarks.repair_scale``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.bench.policies import open_bundled
from safetest_gym.bench.timing import stopwatch
from safetest_gym.deciders import Verdict, make_decider
from safetest_gym.policies import Interface, TreeEnsemblePolicy
from safetest_gym.policies.xgboost_file import policy_from_booster
from safetest_gym.repair.repairing import RepairOptions, repair
from safetest_gym.repair.requests import FaultSet
from tests.benchmarks.harness import Facts, Report, Runner, main

VARIABLES, LEVELS = 11, 16
STARTS, STEPS = 60_000, 60
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "line": ("TwoWayLine", {"packages": 9, "locations": 15}),
    "beluga-6": ("Beluga", {"jigs": 6}),
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


def made_up(count: int, actions: int) -> tuple[TreeEnsemblePolicy, FaultSet]:
    """Random states; an action is safe where a random linear function says so."""
    rng = np.random.default_rng(0)
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
    return policy, _faults(policy, states, applicable, safe, count)


def on_task(name: str, count: int) -> tuple[TreeEnsemblePolicy, FaultSet]:
    """Bad decisions of a clumsy policy in states on random runs of a task."""
    task, _, _ = open_bundled(*TASKS[name])
    rng = np.random.default_rng(0)
    states = task.initial.sample(STARTS, rng)
    seen = [states]
    for _ in range(STEPS):
        applicable = task.applicable_many(states)
        moving = applicable.any(axis=1) & (task.classify(states) == 0)
        states, applicable = states[moving], applicable[moving]
        if not len(states):
            break
        chosen = np.where(applicable, rng.random(applicable.shape), -1).argmax(axis=1)
        states = task.step_many(states, chosen, rng)
        seen.append(states)
    every = np.unique(np.concatenate(seen), axis=0)
    every = every[(task.classify(every) == 0) & task.applicable_many(every).any(axis=1)]
    applicable = np.asarray(task.applicable_many(every), dtype=np.bool_)
    verdicts = make_decider("otf", task).action_verdicts(every)
    weights = rng.normal(size=(every.shape[1], task.num_actions))
    labels = np.where(applicable, every @ weights, -np.inf).argmax(axis=1)
    labels[: task.num_actions] = np.arange(task.num_actions)
    policy = trained(every, labels, Interface.of(task))
    return policy, _faults(policy, every, applicable, verdicts == Verdict.SAFE, count)


def _faults(
    policy: TreeEnsemblePolicy,
    states: NDArray[Any],
    applicable: NDArray[np.bool_],
    safe: NDArray[np.bool_],
    count: int,
) -> FaultSet:
    actions = policy.actions(states, applicable)
    wrong = np.flatnonzero(safe.any(axis=1) & ~safe[np.arange(len(states)), actions])
    rows = np.random.default_rng(1).permutation(wrong)[:count]
    return FaultSet(
        states=states[rows], actions=actions[rows], applicable=applicable[rows], safe=safe[rows]
    )


def repaired(source: str, count: int, variant: Any) -> Facts:
    """Seconds, size and gap of one repair with HiGHS."""
    policy, faults = on_task(source, count) if source in TASKS else made_up(count, int(source))
    RepairOptions(method="leaves", variant=variant, work=0.1).run(policy, _first(faults, 150))
    with stopwatch() as watch:
        _, report = repair(policy, faults, method="leaves", variant=variant, solver="highs")
    return {
        "faults": len(faults),
        "fixed": int(report.fixed.sum()),
        "seconds": watch.seconds,
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


_CASES = (
    ("10", 1000, "weak", 2.0),
    ("10", 1000, "strong", 2.0),
    ("8", 15_000, "weak", 5.0),
    ("12", 15_000, "weak", 5.0),
    ("8", 15_000, "strong", 20.0),
    ("12", 15_000, "strong", 20.0),
    ("line", 15_000, "weak", 5.0),
    ("line", 15_000, "strong", 20.0),
    ("beluga-6", 15_000, "weak", 5.0),
    ("beluga-6", 15_000, "strong", 20.0),
    ("rover", 15_000, "weak", 5.0),
    ("rover", 15_000, "strong", 20.0),
    ("rover-4", 15_000, "weak", 5.0),
    ("rover-4", 15_000, "strong", 20.0),
)


def _plan(runner: Runner, wanted: frozenset[str]) -> Report:
    report = Report("repair")
    for source, count, variant, limit in _CASES:
        name = f"{source}-{count}-{variant}"
        if wanted and name not in wanted:
            continue
        facts = runner.run("repair", source=source, count=count, variant=variant)
        report.facts[name] = facts
        if facts is None:
            raise RuntimeError(f"{name} did not end within the cap")
        shown = (
            f"{facts['seconds']:.2f} s, at most {limit}; {facts['fixed']} of {facts['faults']} "
            f"fixed, gap {100 * facts['gap']:.0f} %, {facts['new trees']} new trees"
        )
        report.add(name, shown, ratio=limit / facts["seconds"], target=1)
    return report


if __name__ == "__main__":
    main("tests.benchmarks.repair_scale", {"repair": repaired}, _plan)
