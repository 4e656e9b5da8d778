"""Plain DQN, which knows no masks, learns from faults: penalties, starts and transitions."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from stable_baselines3 import DQN
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from safetest_gym.callbacks import FeedbackCallback, PriorityStarts
from safetest_gym.envs import JaniEnv
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.policies import evaluate, policy_from_sb3

STEPS = 6_000


def make_env() -> Monitor[object, object]:
    line = OneWayLine(packages=1, locations=5)
    # Without masks, inapplicable actions are tried: let them end the episode.
    env = JaniEnv(line, step_limit=60, observation="normalized", invalid_action="terminate")
    return Monitor(PriorityStarts(env))


def train(folder: Path, feedback: FeedbackCallback | None) -> DQN:
    """Train, with or without faults fed back."""
    model = DQN(
        "MlpPolicy",
        DummyVecEnv([make_env]),
        learning_starts=500,
        learning_rate=1e-3,
        target_update_interval=500,
        exploration_fraction=0.5,
        seed=1,
        device="cpu",
        tensorboard_log=str(folder),
    )
    return model.learn(STEPS, callback=feedback)


def main() -> None:
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp())
    feedback = FeedbackCallback(
        tests={"every_steps": 1_000}, penalty=1.0, start_share=0.3, transitions=2
    )
    plain, taught = train(folder, None), train(folder, feedback)
    task = feedback.tests.task
    print(f"{len(feedback.tests.faults)} faults: {feedback.penalties} steps punished,")
    print(f"{len(feedback.pool)} start states, {feedback.added} transitions added")
    print(f"{'DQN':28}%unsafe  %goal")
    for name, model in (("plain", plain), ("with faults fed back", taught)):
        found = evaluate(policy_from_sb3(model), task, runs_per_start=20)
        unsafe, goal = found.unsafe_rate.value, found.goal_rate.value
        print(f"{name:28}{100 * unsafe:7.1f}{100 * goal:7.1f}")
    print("TensorBoard:", folder)


if __name__ == "__main__":
    main()
