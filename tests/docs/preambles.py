"""What pages take for granted: files in the present directory, and names.

Everything is small, so that all pages together run in a minute.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sb3_contrib import MaskablePPO
from torch import nn

from safetest_gym.envs import SB3VecEnv
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.faults import find_faults
from safetest_gym.fuzzing import Fuzzer
from safetest_gym.policies import distil, policy_from_sb3, save_policy
from safetest_gym.task import Task, load_task

__all__ = ["PREAMBLES"]

Names = dict[str, Any]

_LINE = OneWayLine(packages=2, locations=6)


def _task() -> Task:
    return load_task(_LINE.model(), {"properties": _LINE.properties()})


def _write(name: str) -> None:
    Path(f"{name}.jani").write_text(json.dumps(_LINE.model()), encoding="utf-8")
    properties = {"properties": _LINE.properties()}
    Path(f"{name}.props.jani").write_text(json.dumps(properties), encoding="utf-8")


def _model() -> MaskablePPO:
    """Hardly trained, so it fails."""
    env = SB3VecEnv(_LINE, num_envs=8, step_limit=60)
    network = {"net_arch": [16], "activation_fn": nn.ReLU}
    return MaskablePPO("MlpPolicy", env, n_steps=32, policy_kwargs=network, seed=3, device="cpu")


def _tested() -> Names:
    task, policy = _task(), policy_from_sb3(_model())
    runs = Fuzzer(task, policy, strategy="greedy", seed=0).run(50)
    return {"task": task, "policy": policy, "runs": runs}


def _deciders() -> Names:
    _write("line")
    return {"states": _task().initial.enumerate(1000)[:20]}


def _environments() -> Names:
    return {"MaskablePPO": MaskablePPO, "OneWayLine": OneWayLine, "SB3VecEnv": SB3VecEnv}


def _policies() -> Names:
    _write("model")
    model = _model()
    policy = policy_from_sb3(model)
    save_policy(policy, "policy.nnet")
    env = model.get_env()
    assert isinstance(env, SB3VecEnv)
    return {"model": model, "env": env, "observation": env.reset(), "teacher": policy}


def _repair() -> Names:
    tested = _tested()
    task = tested["task"]
    trees = distil(tested["policy"], task, runs=50, trees=3, depth=3)
    runs = Fuzzer(task, trees, strategy="greedy", seed=0).run(50)
    faults = find_faults(task, trees, runs.unsafe()).faults
    return {**tested, "policy": trees, "analysis_faults": faults, "model": _model()}


def _report() -> Names:
    Path("run").mkdir()
    rows = [{"name": "trained", "unsafe_rate": 0.5, "goal_rate": 0.9, "faults": 3}]
    Path("run/results.json").write_text(json.dumps({"title": "", "rows": rows}), encoding="utf-8")
    return {}


PREAMBLES: dict[str, Callable[[], Names]] = {
    "docs/callbacks.md": lambda: {"model": _model()},
    "docs/deciders.md": _deciders,
    "docs/environments.md": _environments,
    "docs/faults.md": _tested,
    "docs/fuzzing.md": _tested,
    "docs/policies.md": _policies,
    "docs/repair.md": _repair,
    "docs/report.md": _report,
    "docs/shields.md": lambda: {"task": _task()},
    "docs/training.md": lambda: {"task": _task()},
    "docs/verify.md": _tested,
}
