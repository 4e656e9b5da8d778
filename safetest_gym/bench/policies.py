"""Bundled tasks by name, and policies for them from trainings that a folder keeps."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from safetest_gym.bench.experiment import Row

if TYPE_CHECKING:
    from safetest_gym.envs.options import Generator
    from safetest_gym.fuzzing import Runs
    from safetest_gym.policies import Policy
    from safetest_gym.task import Task

__all__ = [
    "Subject",
    "failing_subject",
    "first_failing",
    "note_policies",
    "open_bundled",
    "trained",
]

_RUNS = 200
"""Test cases per policy."""

Plan = TypeVar("Plan", bound=tuple[int, ...])


@dataclass(frozen=True, slots=True)
class Subject:
    """A task, a policy under test, how long it was trained, and its test cases."""

    task: Task
    policy: Policy
    steps: int
    runs: Runs


def open_bundled(name: str, parameters: Mapping[str, Any]) -> tuple[Task, Generator, int]:
    """A bundled task, its generator, and the step limit of its episodes."""
    from safetest_gym.envs.bundled import split_arguments
    from safetest_gym.envs.options import open_task

    generator, arguments = split_arguments(name, dict(parameters))
    task, options = open_task(generator, arguments)
    return task, generator, options.step_limit or 1000


def trained(
    name: str, parameters: Mapping[str, Any], plan: tuple[int, int], folder: Path
) -> Policy:
    """A policy trained with the task's preset.

    Args:
        plan: timesteps and seed.
        folder: keeps the policy, and the training if it is interrupted, under ``policies``.
    """
    import torch

    from safetest_gym.callbacks.presets import preset_for
    from safetest_gym.callbacks.training import TrainConfig, train
    from safetest_gym.policies import load_policy

    torch.set_num_threads(1)  # small networks are slower with more
    steps, seed = plan
    task, generator, step_limit = open_bundled(name, parameters)
    preset = preset_for(task, generator)
    config = TrainConfig(
        algo=preset.algo,
        steps=steps,
        net=preset.net,
        seed=seed,
        num_envs=preset.num_envs,
        every=steps,
        env=preset.arguments(generator),
        learner=preset.learner,
        grids=preset.grids,
        starts=50,
        runs=2,
        step_limit=min(step_limit, 200),
    )
    known = json.dumps([name, dict(parameters), steps, seed], sort_keys=True)
    mark = hashlib.sha256(known.encode()).hexdigest()[:8]
    out = folder / "policies" / f"{name}-{mark}"
    train(task, config, out)
    return load_policy(out / "model.zip", task)


def failing_subject(
    name: str, parameters: Mapping[str, Any], plan: tuple[Sequence[int], int], folder: Path
) -> Subject:
    """The policy trained longest of those that can still be seen to fail, as [J] takes them.

    Test cases are from the best fuzzing there is: greedy, with unlimited lookahead. Where
    none of the policies fails, it is the one trained longest.

    Args:
        plan: timesteps to choose from, the most first, and seed.
        folder: as in `trained`.
    """
    lengths, seed = plan
    task, _, _ = open_bundled(name, parameters)
    best: Subject | None = None
    for steps in lengths:
        policy = trained(name, parameters, (steps, seed), folder)
        found = Subject(task, policy, steps, _test_cases(task, policy, seed))
        if len(found.runs.unsafe()):
            return found
        best = best or found
    assert best is not None, "there is a number of steps"
    return best


def _test_cases(task: Task, policy: Policy, seed: int) -> Runs:
    from safetest_gym.fuzzing import FuzzBudget, Fuzzer

    fuzzer = Fuzzer(
        task,
        policy,
        strategy="greedy",
        lookahead=math.inf,
        max_steps=200,
        budget=FuzzBudget(search=10_000),
        seed=seed,
    )
    return fuzzer.run(_RUNS)


def first_failing(
    task: Task, plans: Iterable[Plan], make: Callable[[Plan], Policy], seed: int
) -> Plan:
    """The first plan whose policy fails in a test case, and in a sampled run reaches the goal.

    If there is none it is the first that fails, and if none fails the first of all.
    """
    from safetest_gym.policies import EvaluationConfig, evaluate

    sampled = EvaluationConfig(max_states=0, seed=seed)
    first: Plan | None = None
    failing: Plan | None = None
    for plan in plans:
        first = first or plan
        policy = make(plan)
        if not len(_test_cases(task, policy, seed).unsafe()):
            continue
        if evaluate(policy, task, _RUNS, 10, config=sampled).goal_rate.value:
            return plan
        failing = failing or plan
    chosen = failing or first
    assert chosen is not None, "there is a plan"
    return chosen


def note_policies(rows: Sequence[Row]) -> str:
    """How policies were chosen, and how long those of each task were trained."""
    lengths = sorted(rows[0].cell["steps"])
    chosen: dict[str, dict[int, int]] = {}
    for row in rows:
        if row.facts:
            chosen.setdefault(row.cell["task"], {})[row.cell["seed"]] = row.facts["steps"]
    listed = "; ".join(
        f"{task} {', '.join(f'{steps:,}' for steps in dict.fromkeys(found.values()))}"
        for task, found in chosen.items()
    )
    among = " or ".join(f"{steps:,}" for steps in lengths)
    return (
        f"policies: the task's preset, {among} steps, the longest training after which one of "
        f"{_RUNS} greedy runs with unlimited lookahead still failed, or the longest ({listed})"
    )
