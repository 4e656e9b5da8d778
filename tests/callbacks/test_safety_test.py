from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3.common.callbacks import (
    BaseCallback,
    CallbackList,
    EvalCallback,
    EveryNTimesteps,
)
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import VecFrameStack, VecNormalize

from safetest_gym.callbacks.safety_test import SafetyTestCallback
from safetest_gym.errors import ConfigError, PolicyError, StoreError
from safetest_gym.faults import FaultStore
from safetest_gym.policies import load_policy
from tests.callbacks.conftest import ALGORITHMS, make_env, make_model

Plan = dict[str, Any]


class _Count(BaseCallback):
    """How often it was triggered."""

    calls = 0

    def _on_step(self) -> bool:
        self.calls += 1
        return True


def _parameters(model: Any) -> list[torch.Tensor]:
    return [value.clone() for value in model.policy.state_dict().values()]


@pytest.mark.parametrize(
    ("algorithm", "kind"),
    [
        ("PPO", "SB3VecEnv"),
        ("DQN", "SB3VecEnv"),
        ("MaskablePPO", "SB3VecEnv"),
        ("MaskablePPO", "VecNormalize"),
    ],
)
def test_training_is_bit_for_bit_what_it_is_without_the_callback(
    algorithm: str, kind: str, plan: Plan, tmp_path: Path
) -> None:
    plain = make_model(algorithm, make_env(kind)).learn(200)
    tested = make_model(algorithm, make_env(kind))
    callback = SafetyTestCallback(every_steps=40, plan=plan, folder=tmp_path)
    tested.learn(200, callback)
    assert len(callback.history) == 5
    for first, second in zip(_parameters(plain), _parameters(tested), strict=True):
        assert torch.equal(first, second)


def test_global_random_state_is_not_touched(plan: Plan) -> None:
    model = make_model("MaskablePPO").learn(32)
    callback = SafetyTestCallback(every_steps=1000, plan=plan)
    model.learn(32, callback)
    before = np.random.get_state()[1].tolist(), torch.get_rng_state()  # type: ignore[index]
    callback.test_now()
    assert np.random.get_state()[1].tolist() == before[0]  # type: ignore[index]
    assert torch.equal(torch.get_rng_state(), before[1])


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_it_works_with_every_algorithm(algorithm: str, plan: Plan) -> None:
    callback = SafetyTestCallback(every_steps=48, plan=plan)
    make_model(algorithm).learn(96, callback)
    assert len(callback.history) == 2
    assert callback.history[0]["runs"] == 64
    assert callback.faults


@pytest.mark.parametrize("kind", ["DummyVecEnv", "SubprocVecEnv", "SB3VecEnv", "VecNormalize"])
def test_it_works_with_every_vector_environment(kind: str, plan: Plan) -> None:
    env = make_env(kind)
    callback = SafetyTestCallback(every_steps=32, plan=plan)
    make_model("MaskablePPO", env).learn(64, callback)
    env.close()
    assert len(callback.history) == 2


def test_timesteps_are_counted_over_several_calls_of_learn(plan: Plan) -> None:
    callback = SafetyTestCallback(every_steps=100, plan=plan)
    model = make_model("A2C")
    for _ in range(4):
        model.learn(64, callback)  # counts its own timesteps from 0 every time
    assert [entry["steps"] for entry in callback.history] == [100, 200]


def test_results_repeat_from_the_same_seeds(plan: Plan) -> None:
    def history() -> list[dict[str, Any]]:
        callback = SafetyTestCallback(every_steps=32, plan=plan)
        make_model("MaskablePPO").learn(64, callback)
        ignored = ("seconds", "share")
        return [
            {name: value for name, value in entry.items() if name not in ignored}
            for entry in callback.history
        ]

    assert history() == history()


def test_records_faults_and_the_best_model_are_written(plan: Plan, tmp_path: Path) -> None:
    callback = SafetyTestCallback(every_steps=32, plan=plan, folder=tmp_path)
    make_model("MaskablePPO", make_env("VecNormalize")).learn(96, callback)
    lines = [json.loads(line) for line in (tmp_path / "safety.jsonl").read_text().splitlines()]
    arrays = np.load(tmp_path / "safety.npz")
    assert [line["steps"] for line in lines] == arrays["steps"].tolist() == [32, 64, 96]
    assert (arrays["faults_total"] > 0).all()
    task = callback.task
    assert FaultStore(tmp_path / "faults.sqlite").count(task) == len(callback.faults)
    policy = load_policy(tmp_path / "best_safe_model.zip", task)
    states = np.array([fault.state for fault in callback.faults])
    assert policy.actions(states, task.applicable_many(states)).shape == (len(states),)
    assert (tmp_path / "best_safe_model_vecnormalize.pkl").exists()


def test_every_fault_gives_safety_away(plan: Plan) -> None:
    from safetest_gym.deciders import Verdict, make_decider

    callback = SafetyTestCallback(every_steps=32, plan=plan)
    make_model("MaskablePPO").learn(64, callback)
    decider = make_decider("tarjan", callback.task)
    for fault in callback.faults:
        assert decider.decide(fault.state) is Verdict.SAFE
        assert decider.decide(fault.outcome) is Verdict.UNSAFE


def test_training_resumed_from_the_folder_loses_no_fault(plan: Plan, tmp_path: Path) -> None:
    first = SafetyTestCallback(every_steps=32, plan=plan, folder=tmp_path / "tests")
    model: Any = make_model("MaskablePPO")
    model.learn(64, first)
    model.save(tmp_path / "model.zip")
    with (tmp_path / "tests" / "safety.jsonl").open("a") as file:
        file.write('{"test": 2, "cut sh')  # killed while writing
    again = type(model).load(tmp_path / "model.zip", env=make_env())
    second = SafetyTestCallback(every_steps=32, plan=plan, folder=tmp_path / "tests", resume=True)
    again.learn(64, second, reset_num_timesteps=False)
    assert [entry["steps"] for entry in second.history] == [32, 64, 96, 128]
    assert [entry["test"] for entry in second.history] == [0, 1, 2, 3]
    known = {(fault.state.tobytes(), fault.action) for fault in second.faults}
    assert {(fault.state.tobytes(), fault.action) for fault in first.faults} <= known


def test_old_records_are_not_continued_by_accident(plan: Plan, tmp_path: Path) -> None:
    make_model("A2C").learn(64, SafetyTestCallback(every_steps=32, plan=plan, folder=tmp_path))
    with pytest.raises(StoreError, match="resume=True"):
        make_model("A2C").learn(64, SafetyTestCallback(every_steps=32, plan=plan, folder=tmp_path))


def test_children_are_triggered_by_new_faults_and_by_a_new_best(plan: Plan) -> None:
    faults, best = _Count(), _Count()
    callback = SafetyTestCallback(
        every_steps=32, plan=plan, callback_on_new_faults=faults, callback_on_new_best=best
    )
    make_model("MaskablePPO").learn(96, callback)
    assert faults.calls == sum(entry["faults_new"] > 0 for entry in callback.history) > 0
    assert best.calls == sum(entry["best"] for entry in callback.history) > 0
    assert faults.parent is callback


def test_training_stops_when_the_threshold_is_met(plan: Plan) -> None:
    callback = SafetyTestCallback(every_steps=32, plan={**plan, "stop_unsafe": 1.0})
    model = make_model("MaskablePPO").learn(320, callback)
    assert model.num_timesteps == 32


def test_a_test_that_is_due_waits_for_its_share_of_the_time(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1.0
        return now

    stub = SimpleNamespace(monotonic=clock)
    monkeypatch.setattr("safetest_gym.callbacks.safety_test.time", stub)
    callback = SafetyTestCallback(every_steps=2, plan={**plan, "share": 0.1})
    make_model("A2C").learn(400, callback)
    assert 2 <= len(callback.history) < 100
    assert all(entry["share"] < 0.2 for entry in callback.history[1:])


def test_it_shares_a_callback_list_with_eval_callback(plan: Plan) -> None:
    callback = SafetyTestCallback(every_steps=32, plan=plan)
    evaluation = EvalCallback(make_env(num_envs=1), eval_freq=16, verbose=0, n_eval_episodes=2)
    make_model("PPO").learn(64, CallbackList([evaluation, callback]))
    assert len(callback.history) == 2


def test_it_shares_a_callback_list_with_maskable_eval_callback(plan: Plan) -> None:
    from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback

    callback = SafetyTestCallback(every_steps=32, plan=plan)
    evaluation = MaskableEvalCallback(
        make_env(num_envs=1), eval_freq=16, verbose=0, n_eval_episodes=2
    )
    make_model("MaskablePPO").learn(64, CallbackList([evaluation, callback]))
    assert len(callback.history) == 2


def test_numbers_and_pictures_go_to_the_logger(plan: Plan, tmp_path: Path) -> None:
    model = make_model("MaskablePPO")
    model.set_logger(configure(str(tmp_path), ["csv", "tensorboard"]))
    model.learn(64, SafetyTestCallback(every_steps=32, plan=plan))
    model.logger.close()
    header = (tmp_path / "progress.csv").read_text().splitlines()[0].split(",")
    for name in ("unsafe_run_rate", "unsafe_start_rate", "goal_rate", "faults_new", "seconds"):
        assert f"safety/{name}" in header
    events = next(tmp_path.glob("events*")).read_bytes()
    assert b"safety/fault_map" in events
    assert b"safety/unsafe_rate_over_time" in events


def test_an_environment_that_is_not_ours_is_refused(plan: Plan) -> None:
    from stable_baselines3 import PPO

    with pytest.raises(ConfigError, match="not a JaniEnv"):
        PPO("MlpPolicy", "CartPole-v1", n_steps=16, batch_size=16).learn(
            16, SafetyTestCallback(plan=plan)
        )


def test_a_frame_stack_is_refused(plan: Plan) -> None:
    model = make_model("PPO", VecFrameStack(make_env(), 2))
    with pytest.raises(PolicyError, match="frame stack"):
        model.learn(16, SafetyTestCallback(plan=plan))


def test_a_recurrent_policy_is_refused(plan: Plan) -> None:
    from sb3_contrib import RecurrentPPO

    model = RecurrentPPO("MlpLstmPolicy", make_env(), n_steps=16, batch_size=16, device="cpu")
    with pytest.raises(PolicyError, match="recurrent"):
        model.learn(16, SafetyTestCallback(plan=plan))


def test_a_wrapper_that_changes_observations_is_noticed(plan: Plan) -> None:
    class Shifted(VecNormalize):
        def reset(self) -> Any:
            return np.asarray(super().reset()) + 5.0

    model = make_model("PPO", Shifted(make_env(), norm_obs=False))
    with pytest.raises(PolicyError, match="a wrapper changes them"):
        model.learn(16, SafetyTestCallback(plan=plan))


def test_a_plan_with_an_unknown_entry_is_refused() -> None:
    with pytest.raises(ConfigError, match="has no run;"):
        SafetyTestCallback(plan={"run": 3})


def test_called_now_and_then_it_still_counts_every_timestep(plan: Plan) -> None:
    tests = SafetyTestCallback(every_steps=64, plan=plan)
    make_model("MaskablePPO").learn(320, EveryNTimesteps(n_steps=32, callback=tests))
    assert [entry["steps"] for entry in tests.history] == [64, 128, 192, 256, 320]


def test_the_store_is_complete_without_its_journal_after_every_test(
    plan: Plan, tmp_path: Path
) -> None:
    copies = []

    class Copier(BaseCallback):
        def _on_step(self) -> bool:
            copies.append(shutil.copy(tmp_path / "a" / "faults.sqlite", tmp_path / "copy.sqlite"))
            return True

    tests = SafetyTestCallback(every_steps=32, plan=plan, folder=tmp_path / "a")
    make_model("MaskablePPO").learn(64, [tests, Copier()])
    with FaultStore(copies[-1]) as store:
        assert len(store.faults(tests.task)) == len(tests.faults) > 0
