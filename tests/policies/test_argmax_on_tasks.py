"""On every bundled task, policies choose what the library they come from chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from safetest_gym.envs.observing import make_view
from safetest_gym.envs.options import open_task
from safetest_gym.envs.tasks import TASKS, make_generator
from safetest_gym.policies import Interface, policy_from_booster, policy_from_sb3
from safetest_gym.task import Task
from tests.oracles.policies import random_masks

pytest.importorskip("sb3_contrib")
pytest.importorskip("xgboost")

import sb3_contrib
import stable_baselines3 as sb3
import torch
import xgboost

from safetest_gym.envs.sb3_vec_env import SB3VecEnv
from safetest_gym.policies.maskable_dqn import MaskableDQN

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

STATES = 20_000
MOST_DIFFERENT = 20
SMALL_BUFFER = {"buffer_size": 10}
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "PPO": (sb3.PPO, {}),
    "A2C": (sb3.A2C, {}),
    "MaskablePPO": (sb3_contrib.MaskablePPO, {}),
    "DQN": (sb3.DQN, SMALL_BUFFER),
    "QRDQN": (sb3_contrib.QRDQN, SMALL_BUFFER),
    "MaskableDQN": (MaskableDQN, SMALL_BUFFER),
}


def _task(name: str) -> Task:
    return open_task(make_generator(name, {}), {})[0]


def states_within_bounds(task: Task, count: int) -> NDArray[Any]:
    """Uniform per variable, reachable or not."""
    rng = np.random.default_rng(11)
    columns: list[NDArray[Any]] = []
    for variable in task.variables:
        assert variable.lower is not None
        assert variable.upper is not None
        if variable.kind == "real":
            columns.append(rng.uniform(float(variable.lower), float(variable.upper), count))
        else:
            columns.append(rng.integers(int(variable.lower), int(variable.upper) + 1, count))
    return np.column_stack(columns).astype(task.dtype)


def _masked(masks: NDArray[np.bool_], scores: NDArray[Any]) -> NDArray[Any]:
    return np.where(masks, scores, -np.inf)


def _scores(model: Any, observations: NDArray[np.float32]) -> NDArray[Any]:
    """What the model itself compares."""
    with torch.no_grad():
        batch = torch.as_tensor(observations)
        if hasattr(model, "q_net"):
            values = model.q_net(batch)
        elif hasattr(model, "quantile_net"):
            values = model.quantile_net(batch).mean(dim=1)
        else:
            values = model.policy.get_distribution(batch).distribution.logits
    return np.asarray(values.numpy())


def _ties(scores: NDArray[Any]) -> NDArray[np.bool_]:
    """Where the two best scores agree within float32 rounding."""
    if scores.shape[1] == 1:
        return np.zeros(len(scores), dtype=np.bool_)
    best = np.sort(scores, axis=1)[:, -2:]
    with np.errstate(invalid="ignore"):
        close = best[:, 1] - best[:, 0] <= 2e-6 * np.maximum(1e-3, np.abs(best).max(axis=1))
    return np.asarray(close & np.isfinite(best[:, 0]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TASKS)
def test_actions_of_sb3_models_are_predict_s_but_for_ties(name: str, kind: str) -> None:
    task = _task(name)
    algorithm, options = KINDS[kind]
    env = SB3VecEnv(task, 1, observation="normalized")
    model = algorithm("MlpPolicy", env, seed=1, device="cpu", **options)
    states = states_within_bounds(task, STATES)
    view = make_view(task, "normalized", None)
    observations = ((states - view.offset) * view.scale).astype(np.float32)
    masks, given = np.ones((STATES, task.num_actions), dtype=np.bool_), {}
    if kind.startswith("Maskable"):
        masks = random_masks(np.random.default_rng(5), STATES, task.num_actions)
        given = {"action_masks": masks}
    predicted, _ = model.predict(observations, deterministic=True, **given)
    chosen = policy_from_sb3(model).bind(task).actions(states, masks)
    ties = _ties(_masked(masks, _scores(model, observations)))
    different = chosen != predicted
    print(f"{name} {kind}: {different.sum()} of {STATES} differ, {ties.sum()} near ties")
    assert ties[different].all()
    assert different.sum() <= MOST_DIFFERENT


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
@pytest.mark.parametrize("name", TASKS)
def test_actions_of_tree_ensembles_are_xgboost_s_on_every_state(name: str, strategy: str) -> None:
    task = _task(name)
    if task.num_actions == 1:
        pytest.skip("XGBoost has no multi-class model of one class")
    states = states_within_bounds(task, STATES)
    rng = np.random.default_rng(6)
    weights = rng.normal(size=(task.num_variables, task.num_actions))
    spread = states.std(axis=0) + 1e-9
    labels = ((states - states.mean(axis=0)) / spread @ weights).argmax(axis=1)
    labels[: task.num_actions] = np.arange(task.num_actions)
    features = states.astype(np.float32)
    settings = {
        "objective": "multi:softprob",
        "num_class": task.num_actions,
        "multi_strategy": strategy,
        "tree_method": "hist",
        "max_depth": 5,
        "nthread": 1,
    }
    booster = xgboost.train(settings, xgboost.DMatrix(features[:2000], label=labels[:2000]), 8)
    policy = policy_from_booster(booster, Interface.of(task)).bind(task)
    margins = booster.predict(xgboost.DMatrix(features), output_margin=True)
    masks = random_masks(rng, STATES, task.num_actions)
    wanted = _masked(masks, margins).argmax(axis=1)
    assert (policy.actions(states, masks) == wanted).all()
