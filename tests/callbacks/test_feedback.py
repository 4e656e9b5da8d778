from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecNormalize

from safetest_gym.callbacks.feedback import FeedbackCallback
from safetest_gym.callbacks.priority_starts import PriorityStarts
from safetest_gym.callbacks.safety_test import SafetyTestCallback
from safetest_gym.envs import JaniEnv
from safetest_gym.errors import ConfigError
from tests.callbacks.conftest import LINE, make_env, make_model

Plan = dict[str, Any]


def _starting_env(kind: type[VecEnv] = DummyVecEnv) -> VecEnv:
    def make() -> Any:
        return Monitor(PriorityStarts(JaniEnv(LINE, step_limit=30, invalid_action="terminate")))

    if kind is SubprocVecEnv:
        return SubprocVecEnv([make, make], start_method="fork")
    return DummyVecEnv([make, make])


class _Rewards(BaseCallback):
    """Rewards that the learner takes, and the steps they belong to."""

    def __init__(self, feedback: FeedbackCallback) -> None:
        super().__init__()
        self.feedback = feedback
        self.penalised = 0

    def _on_step(self) -> bool:
        self.penalised += int((self.locals["rewards"] < -50).sum())
        return True


@pytest.mark.parametrize("algorithm", ["PPO", "A2C", "MaskablePPO", "DQN", "QRDQN"])
def test_a_step_that_repeats_a_fault_is_punished(algorithm: str, plan: Plan) -> None:
    tests = {"every_steps": 32, "plan": plan}
    feedback = FeedbackCallback(tests=tests, penalty=100.0, lessons=0)
    seen = _Rewards(feedback)
    # What explores all the time meets faults again soon.
    options = {"exploration_final_eps": 1.0} if "DQN" in algorithm else {}
    env = make_env(invalid_action="noop")
    make_model(algorithm, env, **options).learn(400, [feedback, seen])
    assert seen.penalised == feedback.penalties > 0


def test_punished_rewards_reach_the_replay_buffer(plan: Plan) -> None:
    feedback = FeedbackCallback(tests={"every_steps": 32, "plan": plan}, penalty=100.0)
    env = make_env(invalid_action="noop")
    model: Any = make_model("DQN", env, exploration_final_eps=1.0)
    model.learn(400, feedback)
    assert (model.replay_buffer.rewards < -50).sum() == feedback.penalties > 0


def test_with_vec_normalize_the_buffer_gets_the_penalty_once(plan: Plan) -> None:
    feedback = FeedbackCallback(tests={"every_steps": 32, "plan": plan}, penalty=100.0)
    env = VecNormalize(make_env(invalid_action="noop"), norm_reward=False)
    model: Any = make_model("DQN", env, exploration_final_eps=1.0)
    model.learn(400, feedback)
    low = model.replay_buffer.rewards[model.replay_buffer.rewards < -50]
    assert len(low) == feedback.penalties > 0
    assert (low > -150).all()


@pytest.mark.parametrize("kind", [DummyVecEnv, SubprocVecEnv])
def test_episodes_begin_in_states_shortly_before_failures(kind: Any, plan: Plan) -> None:
    env = _starting_env(kind)
    feedback = FeedbackCallback(tests={"every_steps": 32, "plan": plan}, start_share=0.5)
    sources: list[str] = []

    class Watch(BaseCallback):
        def _on_step(self) -> bool:
            sources.extend(info["start_source"] for info in self.locals["infos"])
            return True

    make_model("PPO", env).learn(400, [feedback, Watch()])
    env.close()
    assert set(sources) == {"pool", "task"}
    assert set(sources[:32]) == {"task"}
    faults = {fault.state.tobytes() for fault in feedback.tests.faults}
    assert faults & {state.tobytes() for state in feedback.pool}


def test_a_batch_of_environments_begins_there_too(plan: Plan) -> None:
    feedback = FeedbackCallback(tests={"every_steps": 32, "plan": plan}, start_share=0.5)
    begun: list[tuple[str, bool]] = []

    class Watch(BaseCallback):
        def _on_step(self) -> bool:
            states = self.training_env.get_attr("state")
            pool = {state.tobytes() for state in feedback.pool}
            for info, state in zip(self.locals["infos"], states, strict=True):
                if "start_source" in info:
                    begun.append((info["start_source"], state.tobytes() in pool))
            return True

    make_model("PPO").learn(600, [feedback, Watch()])
    # What an ended episode says of itself is where the one before it had begun.
    sources = [source for source, _ in begun]
    assert set(sources) == {"pool", "task"}
    share = sources.count("pool") / len(sources)
    assert 0.2 < share < 0.8
    assert sum(inside for _, inside in begun) >= sources.count("pool") - 2


@pytest.mark.parametrize("algorithm", ["PPO", "A2C", "MaskablePPO"])
def test_lessons_teach_learners_without_masks_too(algorithm: str, plan: Plan) -> None:
    def chance(lessons: int) -> float:
        feedback = FeedbackCallback(
            tests={"every_steps": 32, "plan": plan}, lessons=lessons, penalty=0.01
        )
        model: Any = make_model(algorithm)
        model.learn(200, feedback)
        faults = feedback.tests.faults[:20]
        states = torch.as_tensor(np.array([fault.state for fault in faults]), dtype=torch.float32)
        chances = model.policy.get_distribution(states).distribution.probs
        actions = [fault.action for fault in faults]
        return float(chances[torch.arange(len(faults)), actions].mean().detach())

    assert chance(30) < 0.2 < chance(0)


def test_resumed_training_begins_with_the_old_faults(plan: Plan, tmp_path: Path) -> None:
    tests = {"every_steps": 32, "plan": plan, "folder": str(tmp_path), "resume": True}
    make_model("PPO").learn(64, first := FeedbackCallback(tests=tests, start_share=0.5))
    second = FeedbackCallback(tests={**tests, "every_steps": 10_000}, start_share=0.5)
    make_model("PPO").learn(16, second)
    known = {fault.state.tobytes() for fault in first.tests.faults}
    assert {state.tobytes() for state in second.pool} == known


def test_the_pool_is_bounded_and_keeps_the_newest(plan: Plan) -> None:
    tests = {"every_steps": 32, "plan": plan}
    feedback = FeedbackCallback(tests=tests, start_share=0.5, pool_size=5, lessons=0)
    make_model("PPO", _starting_env()).learn(96, feedback)
    assert len(feedback.pool) == 5
    assert feedback.tests.latest is not None
    newest = feedback.tests.latest.before_failures[-1].tobytes()
    assert feedback.pool[-1].tobytes() == newest


@pytest.mark.parametrize("algorithm", ["DQN", "QRDQN", "MaskableDQN"])
def test_real_transitions_of_faults_enter_the_replay_buffer(algorithm: str, plan: Plan) -> None:
    feedback = FeedbackCallback(
        tests={"every_steps": 32, "plan": plan}, transitions=2, penalty=100.0
    )
    model: Any = make_model(algorithm)
    model.learn(64, feedback)
    buffer = model.replay_buffer
    assert feedback.added > 0
    assert buffer.size() * buffer.n_envs == 64 + feedback.added
    assert (buffer.rewards[: buffer.pos] < -50).sum() >= 2 * len(feedback.tests.faults) - 2


def test_transitions_go_to_the_model_that_trains_now(plan: Plan) -> None:
    feedback = FeedbackCallback(tests={"every_steps": 32, "plan": plan}, transitions=1)
    make_model("DQN").learn(32, feedback)
    before = feedback.added
    later: Any = make_model("DQN", learning_rate=0.1)
    later.learn(192, feedback)
    assert feedback.added > before
    assert later.replay_buffer.size() * 2 == 192 + feedback.added - before


def test_one_test_can_serve_several_followers(plan: Plan) -> None:
    tests = SafetyTestCallback(every_steps=32, plan=plan)
    first = FeedbackCallback(tests=tests, penalty=1.0)
    second = FeedbackCallback(tests=tests, transitions=1)
    make_model("DQN").learn(96, [tests, first, second])
    assert len(tests.history) == 3
    assert second.added > 0


def test_what_cannot_work_is_refused_with_what_to_do(plan: Plan) -> None:
    tests = {"plan": plan}
    env = make_env("DummyVecEnv")
    with pytest.raises(ConfigError, match="PriorityStarts"):
        make_model("PPO", env).learn(16, FeedbackCallback(tests=tests, start_share=0.5))
    with pytest.raises(ConfigError, match="no replay buffer"):
        make_model("PPO").learn(16, FeedbackCallback(tests=tests, transitions=1))
    with pytest.raises(ConfigError, match="give a penalty"):
        FeedbackCallback(tests=tests, penalty=0, lessons=0)
    for penalty in (-1, math.nan, math.inf):
        with pytest.raises(ConfigError, match="not be negative"):
            FeedbackCallback(tests=tests, penalty=penalty)


def test_a_start_that_is_asked_for_is_obeyed() -> None:
    env = PriorityStarts(JaniEnv(LINE))
    inner: Any = env.unwrapped
    states = inner.task.initial.enumerate(100)
    env.set_starts(states[:1], 1.0)
    assert env.reset(seed=0)[1]["start_source"] == "pool"
    _, info = env.reset(options={"state": states[2]})
    assert info["start_source"] == "task"
    assert (info["state"] == states[2]).all()
    env.set_starts(np.empty((0, states.shape[1])), 1.0)
    assert env.reset()[1]["start_source"] == "task"
