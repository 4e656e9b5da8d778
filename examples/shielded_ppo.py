"""Train MaskablePPO without a single failing episode, and compare it with plain training."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy

from safetest_gym.callbacks import SafetyTestCallback, ShieldCallback
from safetest_gym.envs import SB3VecEnv
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.policies import evaluate, policy_from_sb3
from safetest_gym.repair.shielded_policy import GuardedPolicy, ShieldedPolicy
from safetest_gym.repair.shields_file import load_shield

STEPS = 5_000


def make_env() -> SB3VecEnv:
    return SB3VecEnv(OneWayLine(packages=1, locations=5), num_envs=16, step_limit=60)


def train(folder: Path, *, shielded: bool) -> MaskablePPO:
    """Train, with tests of the policy on the way and perhaps a shield around it."""
    model = MaskablePPO(
        "MlpPolicy", make_env(), n_steps=64, seed=1, device="cpu", tensorboard_log=str(folder)
    )
    tests = SafetyTestCallback(every_steps=1_000, folder=folder / f"tests-{shielded}")
    callbacks: list[BaseCallback] = [tests]
    if shielded:
        save_path = folder / "shield.npz"
        callbacks.append(ShieldCallback(mode="decider", tests=tests, save_path=save_path))
    model.learn(STEPS, callback=callbacks)
    return model


def main() -> None:
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp())
    plain, shielded = train(folder, shielded=False), train(folder, shielded=True)

    task = make_env().task
    shield = load_shield(folder / "shield.npz", task)
    print(f"{'':28}%unsafe  %goal")
    for name, policy in (
        ("trained without shield", policy_from_sb3(plain)),
        ("the same, under the shield", GuardedPolicy(policy_from_sb3(plain), shield)),
        ("trained under the shield", policy_from_sb3(shielded)),
        ("the same, under the shield", GuardedPolicy(policy_from_sb3(shielded), shield)),
    ):
        found = evaluate(policy, task, runs_per_start=20)
        unsafe, goal = found.unsafe_rate.value, found.goal_rate.value
        print(f"{name:28}{100 * unsafe:7.1f}{100 * goal:7.1f}")

    # What is deployed looks like a model to Stable-Baselines3's own tools.
    deployed = ShieldedPolicy(shielded, shield)
    mean, _ = evaluate_policy(deployed, make_env(), n_eval_episodes=32)  # type: ignore[arg-type]  # has predict
    print(f"mean return as deployed: {mean:.2f}; TensorBoard: {folder}")


if __name__ == "__main__":
    main()
