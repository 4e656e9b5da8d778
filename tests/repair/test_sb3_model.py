"""Stable-Baselines3 models are repaired on a copy that predicts, trains and saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from safetest_gym.policies import MlpPolicy, policy_from_sb3
from safetest_gym.repair.repairing import RepairOptions, repair
from safetest_gym.repair.requests import FaultSet
from safetest_gym.repair.sb3_model import repair_sb3, write_repaired_zip
from tests.oracles.policies import interface
from tests.repair.faulty import faults_of

stable_baselines3 = pytest.importorskip("stable_baselines3")
sb3_contrib = pytest.importorskip("sb3_contrib")

NAMES = interface(3, 4)


class _Masked(gymnasium.Env[Any, Any]):
    observation_space = gymnasium.spaces.Box(-5, 5, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(4)

    def reset(self, **_: Any) -> Any:
        return np.zeros(3, np.float32), {}

    def step(self, action: int) -> Any:
        return np.zeros(3, np.float32), 0.0, True, False, {}

    def action_masks(self) -> Any:
        return np.ones(4, bool)


def _model(name: str) -> Any:
    home = sb3_contrib if name in ("MaskablePPO", "QRDQN") else stable_baselines3
    return getattr(home, name)("MlpPolicy", _Masked(), seed=1, device="cpu")


def _faults(model: Any) -> FaultSet:
    policy = policy_from_sb3(model, NAMES)
    states = np.random.default_rng(0).integers(-5, 6, (12, 3))
    applicable = np.ones((len(states), 4), dtype=bool)
    actions = policy.actions(states, applicable)
    safe = np.zeros_like(applicable)
    safe[np.arange(len(states)), (actions + 1) % 4] = True
    return FaultSet(states=states, actions=actions, applicable=applicable, safe=safe)


def _options(method: Any = "last-layer", variant: Any = "strong") -> RepairOptions:
    # Solvers improve as long as they may; gradient steps end when they are done.
    return RepairOptions(method=method, variant=variant, work=60 if method == "finetune" else 0.3)


@pytest.mark.parametrize("method", ["last-layer", "finetune"])
@pytest.mark.parametrize("name", ["PPO", "MaskablePPO", "DQN", "QRDQN"])
def test_predict_takes_a_safe_action_in_every_fault_after_the_repair(
    name: str, method: str
) -> None:
    model = _model(name)
    faults = _faults(model)
    copy, report = repair_sb3(model, faults, NAMES, options=_options(method=method))
    assert report.all_fixed
    states = faults.states.astype(np.float32)
    actions, _ = copy.predict(states, deterministic=True)
    assert faults.safe[np.arange(len(states)), actions].all()
    before, _ = model.predict(states, deterministic=True)
    assert (before == faults.actions).all()


def test_a_masked_model_obeys_the_masks_of_the_faults() -> None:
    model = _model("MaskablePPO")
    full = _faults(model)
    applicable = full.safe.copy()
    applicable[np.arange(len(full)), full.actions] = True
    faults = FaultSet(
        states=full.states, actions=full.actions, applicable=applicable, safe=full.safe
    )
    copy, _ = repair_sb3(model, faults, NAMES, options=_options(variant="weak"))
    actions, _ = copy.predict(
        faults.states.astype(np.float32), deterministic=True, action_masks=applicable
    )
    assert (actions != faults.actions).all()


def test_the_repaired_copy_can_be_trained_further() -> None:
    model = stable_baselines3.PPO(
        "MlpPolicy", _Masked(), seed=1, n_steps=8, batch_size=8, device="cpu"
    )
    copy, _ = repair_sb3(model, _faults(model), NAMES, options=_options())
    copy.set_env(_Masked())
    copy.learn(16)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["last-layer", "finetune"])
@pytest.mark.parametrize("name", ["PPO", "MaskablePPO", "DQN", "QRDQN"])
def test_predict_takes_a_safe_action_in_every_fault_of_many_fault_sets(
    name: str, method: str
) -> None:
    model = _model(name)
    policy = policy_from_sb3(model, NAMES)
    states = np.random.default_rng(1).integers(-5, 6, (60, 3))
    for seed in range(50):
        # The model knows no masks: all actions are applicable.
        faults = faults_of(policy, seed, 12, states=states[seed % 40 : seed % 40 + 12])
        full = FaultSet(
            states=faults.states,
            actions=faults.actions,
            applicable=np.ones_like(faults.applicable),
            safe=faults.safe,
        )
        copy, report = repair_sb3(model, full, NAMES, options=_options(method=method))
        assert report.all_fixed
        actions, _ = copy.predict(full.states.astype(np.float32), deterministic=True)
        assert full.safe[np.arange(len(full)), actions].all()


@pytest.mark.parametrize("name", ["MaskablePPO", "DQN", "QRDQN"])
def test_a_saved_model_is_repaired_in_its_zip(name: str, tmp_path: Path) -> None:
    model = _model(name)
    faults = _faults(model)
    before = policy_from_sb3(model, NAMES)
    assert isinstance(before, MlpPolicy)
    after, _ = repair(before, faults, method="finetune")
    model.save(tmp_path / "old.zip")
    write_repaired_zip(tmp_path / "old.zip", tmp_path / "new.zip", before, after)
    loaded = type(model).load(tmp_path / "new.zip", device="cpu")
    actions, _ = loaded.predict(faults.states.astype(np.float32), deterministic=True)
    assert faults.safe[np.arange(len(actions)), actions].all()
