"""Folders as trainings and loops leave them, made without training anything."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from safetest_gym.deciders import make_decider
from safetest_gym.envs.tasks.flappy_bird import FlappyBird
from safetest_gym.faults import Fault, FaultStore, find_faults
from safetest_gym.fuzzing import Fuzzer
from safetest_gym.policies import Interface, Layer, MlpPolicy, TablePolicy, save_policy
from safetest_gym.task import Task, load_task

RUNS = 60


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A task and two policies of it, the first with faults."""

    task: Task
    bad: MlpPolicy
    other: MlpPolicy
    faults: tuple[Fault, ...]


def make_case(generator: FlappyBird | None = None) -> Case:
    """The bird that always flies up, and the one that never does."""
    made = generator or FlappyBird()
    task = _load(made)
    bad, other = (_always(task, action) for action in (0, 1))
    runs = Fuzzer(task, bad, max_steps=200).run(RUNS)
    found = find_faults(task, bad, runs.unsafe(), make_decider("otf", task))
    assert len(found.faults) > 2
    return Case(task, bad, other, found.faults)


def _load(generator: FlappyBird) -> Task:
    document = {**generator.model(), "properties": generator.properties()}
    return load_task(document)


def _always(task: Task, action: int) -> MlpPolicy:
    names = Interface(tuple(v.name for v in task.variables), task.actions)
    bias = np.zeros(task.num_actions, np.float32)
    bias[action] = 1
    layer = Layer(np.zeros((task.num_actions, task.num_variables), np.float32), bias)
    return MlpPolicy((layer,), names)


def write_store(path: Path, case: Case) -> None:
    """A fault store with all faults, the first one fixed."""
    with FaultStore(path, clock=lambda: 0.0) as store:
        store.add(case.task, case.faults, policy="1000")


def record_of(case: Case, number: int, unsafe: float, faults: int) -> dict[str, Any]:
    """A line of ``safety.jsonl``."""
    return {
        "test": number,
        "steps": 1000 * (number + 1),
        "timesteps": 1000 * (number + 1),
        "unsafe_run_rate": unsafe / 2,
        "unsafe_start_rate": unsafe,
        "goal_rate": 1 - unsafe,
        "faults_total": 5,
        "faults_fixed": 5 - faults,
        "best": True,
        "task": case.task.digest,
    }


def write_tests(folder: Path, case: Case) -> None:
    """The folder of a safety-testing callback."""
    folder.mkdir(parents=True)
    records = [record_of(case, n, unsafe, n) for n, unsafe in enumerate((0.75, 0.5, 0.125))]
    lines = [json.dumps(record) + "\n" for record in records]
    (folder / "safety.jsonl").write_text("".join(lines), encoding="utf-8")
    write_store(folder / "faults.sqlite", case)


def write_repairs(folder: Path, case: Case) -> None:
    """The records of a `RepairCallback` beside those of the tests."""
    tried = {
        "method": "finetune",
        "rounds": 2,
        "fixed": 3,
        "given_up": 1,
        "objective": 1.5,
        "changed": 1200,
    }
    rates = {"unsafe_before": 0.75, "unsafe_after": 0.5, "goal_before": 0.25, "goal_after": 0.5}
    records: list[dict[str, Any]] = [
        {"steps": 1500, "kept": True, "why": "%Unsafe falls", **tried, **rates},
        {"steps": 2500, "kept": False, "why": "%Unsafe does not fall", **tried, **rates},
        {"steps": 3000, "kept": False, "why": "no method mends any of these faults"},
        {"steps": 3500, "kept": False, "why": "there is none", "wrong_before": 0},
    ]
    records = [
        {"faults": 4, "wrong_before": 4, **record, "task": case.task.digest} for record in records
    ]
    lines = [json.dumps(record) + "\n" for record in records]
    (folder / "repair.jsonl").write_text("".join(lines), encoding="utf-8")


def write_training(folder: Path, case: Case) -> None:
    """The folder of a finished ``safetest-gym train``."""
    folder.mkdir(parents=True)
    options = {
        "task": case.task.name,
        "digest": case.task.digest,
        "algo": "maskable-ppo",
        "steps": 2000,
        "net": [8, 8],
        "seed": 3,
    }
    rate = {"value": 0.25, "low": 0.2, "high": 0.3}
    evaluation = {"starts": 10, "runs": 100, "ends": {"goal": rate}, "unsafe": rate}
    history = [
        {"steps": 1000, "goal_rate": 0.0, "failure_rate": 1.0},
        {"steps": 2000, "goal_rate": 0.25, "failure_rate": 0.5},
    ]
    (folder / "run.json").write_text(json.dumps(options), encoding="utf-8")
    summary = {"history": history, "evaluation": evaluation}
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")


def safe_policy(case: Case) -> TablePolicy:
    """One that fails from no state that is safe."""
    task, decider = case.task, make_decider("otf", case.task)
    table: dict[tuple[float, ...], str] = {}
    for x, y in product(range(20), range(10)):
        state = task.state({"bird_x": x, "bird_y": y})
        allowed = decider.safe_actions(state)
        usable = allowed if allowed.any() else task.applicable(state)
        table[float(x), float(y)] = task.actions[int(usable.argmax())]
    return TablePolicy.from_dict(table, case.bad.interface)


def write_loop(folder: Path, case: Case) -> Path:
    """The folder of a debugging loop of one repair."""
    (folder / "policies").mkdir(parents=True)
    save_policy(case.bad, folder / "policies" / "000.nnet")
    save_policy(case.other, folder / "policies" / "001.nnet")
    write_store(folder / "faults.db", case)
    (folder / "loop.json").write_text(json.dumps(loop_data(case)), encoding="utf-8")
    return folder


def loop_data(case: Case) -> dict[str, Any]:
    """The contents of ``loop.json``."""
    repair = {
        "method": "last-layer",
        "algorithm": "exact",
        "fixed": 3,
        "faults": 4,
        "safe_now": 3,
        "changed": 2,
        "trees_added": 0,
        "objective": 0.5,
        "lower_bound": 0.375,
    }
    first = _iteration(0, 0.5, 4) | {"repair": repair}
    verification = {"verdict": "unknown", "reason": "the budget of states ran out"}
    last = _iteration(1, 0.0, 0) | {"verification": verification}
    return {
        "version": 1,
        "task": case.task.name,
        "digest": case.task.digest,
        "method": "last-layer",
        "variant": "strong",
        "seed": 0,
        "iterations": [first, last],
        "end": "no-fault",
        "reason": "no unsafe run among 60",
    }


def _iteration(number: int, unsafe: float, new: int) -> dict[str, Any]:
    return {
        "number": number,
        "unsafe_rate": unsafe,
        "goal_rate": 0.25,
        "exact": True,
        "faults_new": new,
        "faults_total": 4,
        "faults_open": 1,
        "repair": None,
        "verification": None,
        "comparison": None,
        "seconds": {},
    }


def write_demo(folder: Path, case: Case) -> Path:
    """A folder with one of each."""
    write_tests(folder / "tests", case)
    write_repairs(folder / "tests", case)
    write_training(folder / "training", case)
    write_loop(folder / "loop", case)
    return folder
