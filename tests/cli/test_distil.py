from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from safetest_gym.policies import MlpPolicy, load_policy, save_policy
from safetest_gym.task import Task, load_task
from tests.cli.conftest import Run
from tests.oracles.policies import random_network

pytest.importorskip("xgboost")


@pytest.fixture(scope="module")
def task(data: Path) -> Task:
    return load_task(data / "ferry.jani", data / "ferry.props.jani")


@pytest.fixture
def files(task: Task, data: Path, tmp_path: Path) -> list[Path | str]:
    """Model, properties and a random network that was made for it."""
    from safetest_gym.policies import Interface

    sizes = [task.num_variables, 8, task.num_actions]
    layers = random_network(np.random.default_rng(0), sizes).layers
    save_policy(MlpPolicy(layers, Interface.of(task)), tmp_path / "teacher.nnet")
    return [
        data / "ferry.jani",
        "--properties",
        data / "ferry.props.jani",
        "--policy",
        tmp_path / "teacher.nnet",
    ]


def test_the_student_is_written_and_compared(
    run: Run, task: Task, files: list[Path | str], tmp_path: Path
) -> None:
    out = tmp_path / "student.ubj"
    options = ("--trees", 3, "--depth", 3, "--teacher-runs", 50, "--dagger-rounds", 1)
    ended = run("distil", *files, "--out", out, *options, "--runs", 2, "--json")
    assert ended.code == 0, ended.err
    result = json.loads(ended.out)
    assert 0 <= result["agreement"] <= 1
    assert 0 <= result["agreement_on_student_runs"] <= 1
    for who in ("teacher", "student"):
        assert sum(rate["value"] for rate in result[who]["ends"].values()) == pytest.approx(1)
    assert len(load_policy(out, task).trees) == 3  # type: ignore[union-attr]  # an ensemble


def test_people_get_both_side_by_side(run: Run, files: list[Path | str], tmp_path: Path) -> None:
    ended = run("distil", *files, "--out", tmp_path / "s.json", "--runs", 2)
    assert ended.code == 0, ended.err
    for part in ("teacher", "student", "goal", "failing", "dead end", "cycle", "step limit"):
        assert part in ended.out


def test_the_same_seed_gives_the_same_student(
    run: Run, files: list[Path | str], tmp_path: Path
) -> None:
    for name in ("a.json", "b.json"):
        run("distil", *files, "--out", tmp_path / name, "--runs", 1, "--seed", 7)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_a_format_for_other_kinds_is_refused_before_any_work(
    run: Run, files: list[Path | str], tmp_path: Path
) -> None:
    ended = run("distil", *files, "--out", tmp_path / "s.nnet")
    assert ended.code == 2
    assert ".json or .ubj" in ended.err
