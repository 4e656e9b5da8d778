"""Training that is killed with SIGKILL goes on without losing a fault."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

from safetest_gym.callbacks import SafetyTestCallback, ShieldCallback
from safetest_gym.faults import FaultStore
from safetest_gym.repair.shields import FaultShield
from safetest_gym.repair.shields_file import load_shield
from tests.callbacks.conftest import make_env, make_model

PLAN: dict[str, Any] = {"runs": 64, "held_out": 20, "runs_per_start": 2, "share": None}


class Checkpoint(BaseCallback):
    """Keeps the model after every test, complete at every moment."""

    def __init__(self, tests: SafetyTestCallback, path: Path) -> None:
        super().__init__()
        self._tests, self._path = tests, path

    def _on_step(self) -> bool:
        if self._tests.history and self._tests.history[-1]["steps"] == self._tests.steps:
            fresh = self._path.with_name("fresh.zip")
            self.model.save(fresh)
            fresh.replace(self._path)
        return True


def train(folder: Path, steps: int) -> tuple[ShieldCallback, Any]:
    """Train in a folder, or go on there."""
    env = make_env()
    path = folder / "model.zip"
    model: Any = make_model("MaskablePPO", env)
    if path.exists():
        model = MaskablePPO.load(path, env=env, device="cpu")
    tests = SafetyTestCallback(every_steps=32, plan=PLAN, folder=folder / "tests", resume=True)
    shield = ShieldCallback(tests=tests, save_path=folder / "shield.npz")
    model.learn(steps, [tests, shield, Checkpoint(tests, path)], reset_num_timesteps=False)
    return shield, env


@pytest.mark.slow
def test_a_training_killed_again_and_again_loses_no_fault(tmp_path: Path) -> None:
    known: set[tuple[bytes, int]] = set()
    task = make_env().get_attr("task")[0]
    lines = 0
    for attempt in range(3):
        command = [sys.executable, "-m", "tests.callbacks.test_killed", str(tmp_path)]
        with subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}) as process:
            records = tmp_path / "tests" / "safety.jsonl"
            deadline = time.monotonic() + 240
            while time.monotonic() < deadline and process.poll() is None:
                written = records.read_text().count("\n") if records.exists() else 0
                if written >= lines + 2 + attempt and (tmp_path / "shield.npz").exists():
                    break
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        lines = records.read_text().count("\n")
        stored = FaultStore(tmp_path / "tests" / "faults.sqlite").faults(task)
        now = {(entry.fault.state.tobytes(), entry.fault.action) for entry in stored}
        assert known <= now
        known = now
        load_shield(tmp_path / "shield.npz", task)
    assert known
    shield, env = train(tmp_path, 16)
    held = env.env_method("get_shield")[0]
    assert isinstance(held, FaultShield)
    faults = shield.tests.faults
    assert {(fault.state.tobytes(), fault.action) for fault in faults} >= known
    masks = held.mask_many(np.array([fault.state for fault in faults]))
    open_ = masks[np.arange(len(faults)), [fault.action for fault in faults]]
    assert open_.sum() == held.report()["stepped_aside"]
    steps = [entry["steps"] for entry in shield.tests.history]
    assert steps == sorted(set(steps))


if __name__ == "__main__":
    train(Path(sys.argv[1]), 1_000_000)
