from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safetest_gym.envs.options import open_task
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.policies import (
    EvaluationConfig,
    Interface,
    MlpPolicy,
    evaluate,
    load_policy,
    save_policy,
)
from safetest_gym.task import Task, load_task
from tests.cli.conftest import Run
from tests.oracles.policies import random_network


@pytest.fixture(scope="module")
def task(data: Path) -> Task:
    return load_task(data / "ferry.jani", data / "ferry.props.jani")


@pytest.fixture
def files(task: Task, data: Path, tmp_path: Path) -> list[Any]:
    """Model, properties and a random network that was made for it."""
    sizes = [task.num_variables, 8, task.num_actions]
    layers = random_network(np.random.default_rng(3), sizes).layers
    policy = tmp_path / "policy.nnet"
    save_policy(MlpPolicy(layers, Interface.of(task)), policy)
    properties = ("--properties", data / "ferry.props.jani")
    return [data / "ferry.jani", *properties, "--policy", policy]


def test_json_holds_what_evaluate_found(run: Run, task: Task, files: list[Any]) -> None:
    ended = run("evaluate", *files, "--runs", 7, "--seed", 5, "--json")
    assert ended.code == 0, ended.err
    found = evaluate(load_policy(files[-1], task), task, 1000, 7, config=EvaluationConfig(seed=5))
    assert json.loads(ended.out) == {"task": task.name, **found.as_json()}


def test_the_table_tells_all_ends_apart(run: Run, files: list[Any]) -> None:
    ended = run("evaluate", *files)
    assert ended.code == 0
    for part in ("goal", "failing", "dead end", "cycle", "step limit", "starts that can fail"):
        assert part in ended.out


def test_what_was_only_sampled_says_so(run: Run, files: list[Any]) -> None:
    assert "sampled, at least" in run("evaluate", *files, "--max-states", 0).out


def test_a_bundled_task_is_evaluated_by_name(run: Run, tmp_path: Path) -> None:
    line = OneWayLine(packages=2, locations=4)
    task = open_task(line, {})[0]
    sizes = [task.num_variables, 8, task.num_actions]
    layers = random_network(np.random.default_rng(0), sizes).layers
    save_policy(MlpPolicy(layers, Interface.of(task)), tmp_path / "p.nnet")
    named = ("safetest/OneWayLine-v0", "--const", "packages=2", "locations=4")
    ended = run("evaluate", *named, "--policy", tmp_path / "p.nnet", "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["task"] == task.name


def test_a_policy_for_another_task_ends_with_2_and_the_difference(
    run: Run, files: list[Any], data: Path
) -> None:
    ended = run("evaluate", data / "die.jani", "--policy", files[-1])
    assert ended.code == 2
    assert "variable 'guests' is not in the task" in ended.err
    assert "Traceback" not in ended.err
