"""How fast policies choose and are evaluated, beside one ``predict`` of their library.

Run from the checkout: ``python -m tests.benchmarks.speed_policies [kernels|evaluate]...``
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from safetest_gym.bench.timing import stopwatch
from tests.benchmarks.harness import Facts, Report, Runner, main

STATES = 20_000
NETWORK_NS, TREES_NS = 1000, 1500
"""Most nanoseconds per state: a 64-64 network, 100 trees of depth 5."""
LEAST_RATIO = 30
EVALUATE_SECONDS = 60


def _best_seconds(work: Callable[[], object], rounds: int = 10) -> float:
    """CPU seconds of the quickest round."""
    taken = []
    for _ in range(rounds):
        before = time.process_time()
        work()
        taken.append(time.process_time() - before)
    return min(taken)


def network(*, depth: int = 2) -> Facts:
    """A network of 64 neurons per layer of OneWayLine, in kernels and through SB3."""
    import torch
    from sb3_contrib import MaskablePPO

    from safetest_gym.envs.sb3_vec_env import SB3VecEnv
    from safetest_gym.envs.tasks.one_way_line import OneWayLine
    from safetest_gym.policies import policy_from_sb3

    torch.set_num_threads(1)
    env = SB3VecEnv(OneWayLine(), 1)
    options = {"net_arch": [64] * depth, "activation_fn": torch.nn.ReLU}
    model = MaskablePPO("MlpPolicy", env, policy_kwargs=options, seed=0, device="cpu")
    policy = policy_from_sb3(model).bind(env.task)
    states = env.task.initial.sample(STATES, np.random.default_rng(0))
    masks = np.ones((STATES, env.task.num_actions), dtype=np.bool_)
    one: Any = states[0].astype(np.float32)
    policy.actions(states, masks)
    ours = _best_seconds(lambda: policy.actions(states, masks)) / STATES

    def predict() -> None:
        for _ in range(200):
            model.predict(one, deterministic=True, action_masks=masks[0])

    predict()
    return {"ns": 1e9 * ours, "predict_ns": 1e9 * _best_seconds(predict, 5) / 200}


def trees(*, count: int = 100, depth: int = 5) -> Facts:
    """An ensemble of OneWayLine with vector leaves, in kernels and through XGBoost."""
    import xgboost

    from safetest_gym.envs.sb3_vec_env import SB3VecEnv
    from safetest_gym.envs.tasks.one_way_line import OneWayLine
    from safetest_gym.policies import Interface, policy_from_booster

    task = SB3VecEnv(OneWayLine(), 1).task
    states = task.initial.sample(STATES, np.random.default_rng(0))
    features = states.astype(np.float32)
    labels = np.random.default_rng(1).integers(task.num_actions, size=STATES)
    settings = {
        "objective": "multi:softprob",
        "num_class": task.num_actions,
        "multi_strategy": "multi_output_tree",
        "tree_method": "hist",
        "max_depth": depth,
        "nthread": 1,
    }
    booster = xgboost.train(settings, xgboost.DMatrix(features, label=labels), count)
    policy = policy_from_booster(booster, Interface.of(task)).bind(task)
    masks = np.ones((STATES, task.num_actions), dtype=np.bool_)
    policy.actions(states, masks)
    ours = _best_seconds(lambda: policy.actions(states, masks)) / STATES

    def predict() -> None:
        for _ in range(200):
            booster.inplace_predict(features[:1], predict_type="margin")

    predict()
    return {"ns": 1e9 * ours, "predict_ns": 1e9 * _best_seconds(predict, 5) / 200}


def evaluate_line(*, starts: int = 10_000, runs: int = 100) -> Facts:
    """Evaluate a 64-64 network on OneWayLine."""
    from safetest_gym.envs.sb3_vec_env import SB3VecEnv
    from safetest_gym.envs.tasks.one_way_line import OneWayLine
    from safetest_gym.policies import Interface, MlpPolicy, evaluate
    from tests.oracles.policies import random_network

    task = SB3VecEnv(OneWayLine(variant="icy"), 1).task
    sizes = [task.num_variables, 64, 64, task.num_actions]
    policy = MlpPolicy(random_network(np.random.default_rng(2), sizes).layers, Interface.of(task))
    evaluate(policy, task, 10, 1)
    with stopwatch() as watch:
        found = evaluate(policy, task, starts, runs)
    return {
        "cpu_seconds": watch.seconds,
        "runs": int(found.counts.sum()),
        "steps": int(found.steps.sum()),
        "states": found.num_states,
        "goal": found.goal_rate.value,
        "unsafe": found.unsafe_rate.value,
    }


def measure_kernels(runner: Runner, report: Report) -> None:
    """Nanoseconds per state, and how many times that is below the library."""
    for name, limit in (("network", NETWORK_NS), ("trees", TREES_NS)):
        facts = runner.run(name)
        assert facts is not None
        report.facts[name] = facts
        measured = f"{facts['ns']:.0f} ns a state"
        report.add(f"{name}: limit {limit} ns", measured, ratio=limit / facts["ns"], target=1)
        ratio = facts["predict_ns"] / facts["ns"]
        one = f"library {facts['predict_ns'] / 1000:.1f} us"
        report.add(f"{name}: beside one predict", one, ratio=ratio, target=LEAST_RATIO)


def measure_evaluate(runner: Runner, report: Report) -> None:
    """CPU seconds of a whole evaluation."""
    facts = runner.run("evaluate")
    assert facts is not None
    report.facts["evaluate"] = facts
    seconds = facts["cpu_seconds"]
    measured = f"{seconds:.1f} s CPU, {facts['steps']:,} steps, {facts['states']:,} states"
    report.add("10,000 starts x 100 runs", measured, ratio=EVALUATE_SECONDS / seconds, target=1)


_PARTS = {"kernels": measure_kernels, "evaluate": measure_evaluate}


def _plan(runner: Runner, wanted: frozenset[str]) -> Report:
    report = Report("policies")
    for name, measure in _PARTS.items():
        if not wanted or name in wanted:
            measure(runner, report)
    return report


if __name__ == "__main__":
    main(
        "tests.benchmarks.speed_policies",
        {"network": network, "trees": trees, "evaluate": evaluate_line},
        _plan,
    )
