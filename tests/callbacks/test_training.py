"""Training runs evaluate, keep the best policy, and survive being killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safetest_gym.errors import ConfigError
from safetest_gym.policies import (
    Evaluation,
    EvaluationConfig,
    MlpPolicy,
    evaluate,
    load_policy,
    save_policy,
)
from safetest_gym.task import Task

pytest.importorskip("stable_baselines3")

import torch

from safetest_gym.callbacks.presets import PRESETS, preset_for
from safetest_gym.callbacks.training import TrainConfig, train
from safetest_gym.envs.options import open_task
from safetest_gym.envs.sb3_vec_env import SB3VecEnv
from safetest_gym.envs.tasks import TASKS
from safetest_gym.envs.tasks.follow_car import FollowCar
from safetest_gym.envs.tasks.n_puzzle import NPuzzle
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.envs.tasks.transport import Transport

ALGOS = ("maskable-ppo", "maskable-dqn", "ppo", "dqn")


class Stop(Exception):
    """Stands for a kill: nothing of ours catches it."""


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small networks are slower with more, much so on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def task() -> Task:
    line = OneWayLine(packages=2, locations=4)
    return open_task(line, {})[0]


def _config(**changes: Any) -> TrainConfig:
    settings: dict[str, Any] = {
        "steps": 400,
        "net": (8,),
        "num_envs": 4,
        "env": {"observation": "normalized", "step_limit": 30},
        "starts": 10,
        "runs": 1,
        "step_limit": 50,
    }
    if "dqn" in changes.get("algo", ""):
        settings["learner"] = {"learning_starts": 50}
    return TrainConfig(**{**settings, **changes})


@pytest.mark.parametrize("algo", ALGOS)
def test_a_run_leaves_a_policy_that_loads_without_pickles(
    task: Task, tmp_path: Path, algo: Any
) -> None:
    summary = train(task, _config(algo=algo), tmp_path)
    assert summary["steps"] >= 400
    assert summary == {**json.loads((tmp_path / "summary.json").read_text("utf-8"))}
    for name in ("model", "best_model"):
        policy = load_policy(summary[name], task)
        assert len(policy.scalings) == 1  # type: ignore[union-attr]  # a network
        found = evaluate(policy, task, 10, 1, config=EvaluationConfig(step_limit=50))
        assert found.counts.sum() == 10


def test_the_final_evaluation_is_the_saved_policy_s(task: Task, tmp_path: Path) -> None:
    summary = train(task, _config(), tmp_path)
    options = EvaluationConfig(step_limit=50, max_states=200_000)
    found = evaluate(load_policy(summary["model"], task), task, 1000, 10, config=options)
    assert found.as_json() == summary["evaluation"]


def test_a_trained_policy_evaluates_alike_after_export_to_nnet_and_back(
    task: Task, tmp_path: Path
) -> None:
    summary = train(task, _config(steps=1200), tmp_path / "run")
    trained = load_policy(summary["best_model"], task)
    save_policy(trained, tmp_path / "policy.nnet")
    again = load_policy(tmp_path / "policy.nnet", task)
    states = task.initial.sample(500, np.random.default_rng(0))
    assert (trained.scores(states) == again.scores(states)).all()  # type: ignore[union-attr]
    one, other = evaluate(trained, task, 100, 10), evaluate(again, task, 100, 10)
    assert (one.counts == other.counts).all()
    assert one.as_json() == other.as_json()


def test_evaluations_come_at_every_interval_and_at_the_end(task: Task, tmp_path: Path) -> None:
    seen: list[int] = []

    def watch(steps: int, evaluation: Evaluation | None, /) -> None:
        if evaluation is not None:
            seen.append(steps)

    summary = train(task, _config(algo="maskable-dqn", every=100), tmp_path, watch=watch)
    assert seen == [100, 200, 300, 400]
    assert [entry["steps"] for entry in summary["history"]] == seen
    assert summary["best"] in summary["history"]


@pytest.mark.parametrize("algo", ALGOS)
def test_a_killed_run_goes_on_at_its_newest_checkpoint(
    task: Task, tmp_path: Path, algo: Any
) -> None:
    config = _config(algo=algo, every=100)

    def kill(steps: int, evaluation: Evaluation | None, /) -> None:
        if steps >= 272:
            raise Stop

    with pytest.raises(Stop):
        train(task, config, tmp_path, watch=kill)
    assert not (tmp_path / "summary.json").exists()
    summary = train(task, config, tmp_path)
    assert summary["resumed_at"] == 200
    assert summary["steps"] == 400
    assert [entry["steps"] for entry in summary["history"]] == [100, 200, 300, 400]


def test_killed_between_checkpoint_and_best_policy_it_still_keeps_the_best(
    task: Task, tmp_path: Path
) -> None:
    config = _config(algo="maskable-dqn", every=100)

    def kill(steps: int, evaluation: Evaluation | None, /) -> None:
        if steps > 100:
            raise Stop

    with pytest.raises(Stop):
        train(task, config, tmp_path, watch=kill)
    (tmp_path / "best.zip").unlink()
    with pytest.raises(Stop):
        train(task, config, tmp_path, watch=kill)
    assert (tmp_path / "best.zip").exists()


def test_a_finished_run_is_not_trained_again(task: Task, tmp_path: Path) -> None:
    first = train(task, _config(), tmp_path)
    before = (tmp_path / "model.zip").read_bytes()
    again = train(task, _config(), tmp_path)
    assert again == {**first, "resumed_at": first["steps"]}
    assert (tmp_path / "model.zip").read_bytes() == before


def test_a_resumed_learner_keeps_its_replay_buffer(task: Task, tmp_path: Path) -> None:
    config = _config(algo="maskable-dqn", every=200)

    def kill(steps: int, evaluation: Evaluation | None, /) -> None:
        if steps > 200:
            raise Stop

    with pytest.raises(Stop):
        train(task, config, tmp_path, watch=kill)
    assert (tmp_path / "checkpoints" / "200" / "buffer.pkl").stat().st_size > 1000


def test_logs_hold_the_rates(task: Task, tmp_path: Path) -> None:
    train(task, _config(), tmp_path)
    logged = b"".join(path.read_bytes() for path in (tmp_path / "logs").iterdir())
    assert b"safety/goal_rate" in logged
    assert b"safety/failure_rate" in logged


def test_a_learner_without_masks_is_punished_for_inapplicable_actions(
    task: Task, tmp_path: Path
) -> None:
    # In an environment that raises, the first random action would end the run.
    train(task, _config(algo="ppo", env={"step_limit": 30}), tmp_path)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"algo": "sarsa"}, "sarsa"),
        ({"steps": 0}, "steps"),
        ({"net": (0,)}, "widths"),
        ({"every": 0}, "interval"),
        ({"learner": {"momentum": 1}}, "momentum"),
        ({"learner": {"batch_size": 0}}, "batch_size"),
        ({"learner": {"n_steps": 1.5}}, "n_steps"),
        ({"grids": {"truck_0": "abc"}}, "grids must list numbers for 'truck_0'"),
        ({"env": {"step_limt": 3}}, "step_limit"),
    ],
)
def test_bad_options_are_named(
    task: Task, tmp_path: Path, changes: dict[str, Any], part: str
) -> None:
    with pytest.raises(ConfigError, match=part):
        train(task, _config(**changes), tmp_path)


def test_after_a_refused_option_the_folder_is_free_for_the_right_ones(
    task: Task, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="takes no gama"):
        train(task, _config(learner={"gama": 0.9}), tmp_path)
    assert train(task, _config(learner={"gamma": 0.9}), tmp_path)["steps"] > 0


def test_every_bundled_task_but_the_families_has_a_preset() -> None:
    assert set(TASKS) - set(PRESETS) == {"LayeredFamily", "OuterLoop"}


@pytest.mark.parametrize(
    "generator",
    [Transport(packages=2, locations=3), NPuzzle(width=2, height=2), FollowCar(timestep=0.1)],
)
def test_a_preset_trains_other_sizes_than_the_default(generator: Any, tmp_path: Path) -> None:
    task = open_task(generator, {})[0]
    preset = preset_for(task, generator)
    env = preset.arguments(generator)
    config = _config(steps=300, env=env, grids=preset.grids)
    summary = train(task, config, tmp_path)
    assert isinstance(load_policy(summary["model"], task), MlpPolicy)


def test_transport_s_preset_rewards_deliveries_and_not_an_overloaded_bridge() -> None:
    transport = Transport(packages=3, locations=3)
    task = open_task(transport, {})[0]
    env = SB3VecEnv(task, 1, **PRESETS["Transport"].arguments(transport))
    forward, drop = task.actions.index("drive_forward"), task.actions.index("drop_truck_0")
    rewards = {}
    for loaded in (1, 2):
        start = {f"location_load_{i}": 0 for i in range(3)} | {
            "location_load_1": 3 - loaded,
            "truck_0": 1,
            "truck_load_0": loaded,
            "last_capacity_diff": 0,
        }
        env.set_options({"state": start})
        env.reset()
        rewards[loaded] = float(env.step(np.array([forward]))[1][0])
    assert rewards[1] > 0 > rewards[2]
    env.set_options({"state": {**start, "truck_load_0": 1, "location_load_1": 2}})
    env.reset()
    env.step(np.array([forward]))
    assert env.step(np.array([drop]))[1][0] > 0
