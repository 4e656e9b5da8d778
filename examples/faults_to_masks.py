"""Turn the faults found in training into masks, and into a shield for states never tested."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from sb3_contrib import MaskablePPO

from safetest_gym.callbacks import ShieldCallback
from safetest_gym.envs import SB3VecEnv
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.policies import evaluate, policy_from_sb3
from safetest_gym.repair.learned_shield import LearnedShield, walked_states
from safetest_gym.repair.shielded_policy import GuardedPolicy
from safetest_gym.repair.shields import CombinedShield, FaultShield


def main() -> None:
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp())
    env = SB3VecEnv(OneWayLine(packages=2, locations=6), num_envs=16, step_limit=60)
    model = MaskablePPO(
        "MlpPolicy", env, n_steps=64, seed=1, device="cpu", tensorboard_log=str(folder)
    )
    # No limit of time (`share`), so that the tests find the same on any machine.
    tests = {"every_steps": 1_000, "plan": {"share": None}, "folder": folder / "tests"}
    callback = ShieldCallback(mode="faults", tests=tests)
    model.learn(5_000, callback=callback)
    report = callback.report()
    print(f"the shield acted in {100 * report['restricted_rate']:.1f} % of the states of training,")
    print(f"it was needed in {100 * report['needed_rate']:.1f} %; variables: {report['variables']}")

    faults = callback.tests.faults
    print(faults[0].describe(env.task))
    known = FaultShield(env.task, faults)
    seen = np.array([fault.state for fault in faults])
    learned = LearnedShield.learn(env.task, np.concatenate([seen, walked_states(env.task, 3_000)]))
    print("learned shield:", learned.quality.describe())

    policy = policy_from_sb3(model)
    print(f"{'policy':28}%unsafe  %goal")
    for name, tested in (
        ("without a shield", policy),
        (f"with {len(known)} faults masked", GuardedPolicy(policy, known)),
        ("with a learned shield", GuardedPolicy(policy, CombinedShield(known, learned))),
    ):
        found = evaluate(tested, env.task, runs_per_start=20)
        unsafe, goal = found.unsafe_rate.value, found.goal_rate.value
        print(f"{name:28}{100 * unsafe:7.1f}{100 * goal:7.1f}")
    print("TensorBoard:", folder)


if __name__ == "__main__":
    main()
