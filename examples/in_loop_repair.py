"""Repair the last layer of a network while it trains, and keep only what is safer."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from sb3_contrib import MaskablePPO

from safetest_gym.callbacks import RepairCallback, SafetyTestCallback
from safetest_gym.envs import SB3VecEnv
from safetest_gym.envs.tasks.one_way_line import OneWayLine

STEPS = 5_000
TIMES = ("before", "after")


def main() -> None:
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp())
    env = SB3VecEnv(OneWayLine(packages=2, locations=6), num_envs=16, step_limit=60)
    model = MaskablePPO(
        "MlpPolicy", env, n_steps=16, seed=3, device="cpu", tensorboard_log=str(folder)
    )
    tests = SafetyTestCallback(every_steps=512, plan={"share": 0.3}, folder=folder / "tests")
    repairs = RepairCallback(tests=tests, every_steps=512)
    model.learn(STEPS, callback=[tests, repairs])
    print("  steps  faults  wrong  %unsafe before, after  %goal before, after  kept")
    for record in repairs.history:
        rates = [record.get(f"{name}_{when}") for name in ("unsafe", "goal") for when in TIMES]
        cells = "".join("          -" if rate is None else f"{100 * rate:11.1f}" for rate in rates)
        counts = f"{record['steps']:7}{record['faults']:8}{record['wrong_before']:7}"
        print(f"{counts}{cells}  {record['kept']}")
    final = tests.test_now()
    unsafe, goal = 100 * final.unsafe_start_rate, 100 * final.goal_rate
    print(f"at the end: %unsafe {unsafe:.1f}, %goal {goal:.1f}; TensorBoard: {folder}")


if __name__ == "__main__":
    main()
