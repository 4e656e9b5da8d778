"""Train a policy so that being killed costs at most one interval between checkpoints.

A run lives in a folder (see `RunFolder`). Every interval the policy is evaluated on the
task itself, not on the environment's shaped rewards; the best one so far is kept.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure

from safetest_gym.callbacks.grids import observed_grids
from safetest_gym.callbacks.learner_options import check_learner_options
from safetest_gym.callbacks.run_folder import RunFolder
from safetest_gym.envs.sb3_vec_env import SB3VecEnv
from safetest_gym.errors import ConfigError
from safetest_gym.policies import (
    Evaluation,
    EvaluationConfig,
    MaskableDQN,
    evaluate,
    policy_from_sb3,
    save_sb3_interface,
)
from safetest_gym.policies.encoder import GridEncoder
from safetest_gym.task import Task

__all__ = ["Algo", "TrainConfig", "Watch", "train"]

Algo = Literal["maskable-ppo", "maskable-dqn", "ppo", "dqn"]

_CLASSES: dict[str, type[BaseAlgorithm]] = {
    "maskable-ppo": MaskablePPO,
    "maskable-dqn": MaskableDQN,
    "ppo": PPO,
    "dqn": DQN,
}
_PPO = {
    "n_steps": 128,
    "batch_size": 512,
    "n_epochs": 5,
    "learning_rate": 1e-3,
    "ent_coef": 0.01,
}
_DQN = {
    "buffer_size": 100_000,
    "learning_starts": 2000,
    "batch_size": 128,
    "train_freq": 1,
    "gradient_steps": 1,
    "target_update_interval": 1000,
    "exploration_fraction": 0.3,
    "learning_rate": 1e-3,
}
_MODEL, _BUFFER, _PROGRESS = "model.zip", "buffer.pkl", "progress.json"
_FINAL_STARTS, _FINAL_RUNS, _FINAL_STATES = 1000, 10, 200_000


class Watch(Protocol):
    """Told of progress: after every step, and with an evaluation after every interval."""

    def __call__(self, steps: int, evaluation: Evaluation | None, /) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig:
    """What to train how long; all plain data, so that a run can be recognised.

    Attributes:
        steps: environment steps, over all copies; PPO ends with the rollout it is in.
        net: widths of the hidden layers (ReLU, so that the policy can become an NNet file).
        num_envs: copies of the task stepped together.
        every: steps between evaluations, each followed by a checkpoint; None for a tenth
            of ``steps``. PPO waits for the end of its rollout.
        env: arguments of the training environment; those of a loaded task.
        learner: arguments of the algorithm beside our defaults.
        grids: values through which the network sees variables (see
            `safetest_gym.policies.encoder`), by name; of integers not named here all
            their values, if they are few. None for a network without encoder.
        starts: start states of the evaluations on the way, each of ``runs`` runs.
        step_limit: of runs in evaluations.
    """

    algo: Algo = "maskable-ppo"
    steps: int = 100_000
    net: tuple[int, ...] = (64, 64)
    seed: int = 0
    num_envs: int = 32
    every: int | None = None
    env: Mapping[str, Any] = field(default_factory=dict)
    learner: Mapping[str, Any] = field(default_factory=dict)
    grids: Mapping[str, Sequence[float]] | None = None
    starts: int = 200
    runs: int = 5
    step_limit: int = 1000

    def __post_init__(self) -> None:
        if self.algo not in get_args(Algo):
            raise ConfigError(f"algo must be one of {', '.join(_CLASSES)}, got {self.algo!r}")
        for name in ("steps", "num_envs", "starts", "runs", "step_limit", "interval"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        if any(width < 1 for width in self.net):
            raise ConfigError(f"widths of the network must be at least 1, got {self.net}")

    @property
    def interval(self) -> int:
        """Steps between checkpoints."""
        return max(1, self.steps // 10) if self.every is None else self.every

    @property
    def masked(self) -> bool:
        """Does the algorithm know action masks?"""
        return self.algo.startswith("maskable")


def train(
    task: Task, config: TrainConfig, out: Path, *, watch: Watch | None = None
) -> dict[str, Any]:
    """Train in the folder ``out``, or go on where a run with the same options stopped.

    Learners that know no masks train in an environment where an inapplicable action ends
    the episode with the reward of failing, unless ``env`` says otherwise.

    Resuming loads the pickles of the checkpoint: resume runs of your own only.

    Returns:
        The summary, which is also in ``summary.json``; that of a finished run at once.
    """
    arguments: dict[str, Any] = dict(config.env)
    if not config.masked:
        arguments.setdefault("invalid_action", "terminate")
    env = SB3VecEnv(task, config.num_envs, **arguments)
    folder = RunFolder(out)
    with folder.locked():
        folder.claim({"task": task.name, "digest": task.digest, **asdict(config)})
        return _trained(task, config, folder, env, watch)


def _trained(
    task: Task, config: TrainConfig, folder: RunFolder, env: SB3VecEnv, watch: Watch | None
) -> dict[str, Any]:
    """Train in a folder that is ours alone, and return the summary."""
    finished = folder.summary()
    if finished is not None:
        return {**finished, "resumed_at": finished["steps"]}
    run = _Run(folder, config, task)
    model = run.start(env)
    formats = ["tensorboard" if find_spec("tensorboard") else "csv"]
    model.set_logger(configure(str(folder.path / "logs"), formats))
    missing = config.steps - model.num_timesteps
    if missing > 0:
        keeper = _Keeper(run, watch)
        log_interval = 1 if isinstance(model, PPO | MaskablePPO) else 100
        model.learn(missing, keeper, log_interval=log_interval, reset_num_timesteps=False)
        if not run.evaluated_at(model.num_timesteps):
            keeper.keep()
    return run.finish(model)


class _Run:
    """What is known of a run beside the model, and how it is put into its folder."""

    def __init__(self, folder: RunFolder, config: TrainConfig, task: Task) -> None:
        self.folder = folder
        self.config = config
        self.task = task
        self.resumed_at = 0
        self.history: list[dict[str, Any]] = []
        self._seconds = 0.0
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time spent, over all attempts that left a checkpoint."""
        return self._seconds + time.perf_counter() - self._began

    def start(self, env: SB3VecEnv) -> BaseAlgorithm:
        """The model of the newest checkpoint, or a new one."""
        found = self.folder.checkpoint()
        if found is None:
            return _new_model(self.config, env)
        known = json.loads((found / _PROGRESS).read_text(encoding="utf-8"))
        self.history, self._seconds = known["history"], known["seconds"]
        model = _CLASSES[self.config.algo].load(found / _MODEL, env=env, device="cpu")
        if isinstance(model, DQN):
            model.load_replay_buffer(found / _BUFFER)
        self.resumed_at = model.num_timesteps
        # Not the episodes of the beginning once more.
        model.set_random_seed(self.config.seed + model.num_timesteps)
        self.keep_if_best(model)  # in case it was killed just before that
        return model

    def evaluated_at(self, steps: int) -> bool:
        """Does the newest evaluation belong to this many steps?"""
        return bool(self.history) and self.history[-1]["steps"] == steps

    def evaluate(self, model: BaseAlgorithm) -> Evaluation:
        """Rate the policy by sampled runs."""
        options = EvaluationConfig(
            seed=self.config.seed, max_states=0, step_limit=self.config.step_limit
        )
        found = evaluate(
            policy_from_sb3(model), self.task, self.config.starts, self.config.runs, config=options
        )
        entry = {
            "steps": model.num_timesteps,
            "goal_rate": found.goal_rate.value,
            "failure_rate": found.failure_rate.value,
        }
        self.history.append(entry)
        return found

    def keep_if_best(self, model: BaseAlgorithm) -> None:
        """Save the policy if the newest evaluation is the best so far."""
        if self.history[-1] is self.best():
            self._save(model, "best")

    def best(self) -> dict[str, Any]:
        """The best evaluation so far, the newest of several."""
        return max(reversed(self.history), key=_score)

    def save_checkpoint(self, model: BaseAlgorithm) -> None:
        """Make this the state to go on from."""

        def write(folder: Path) -> None:
            model.save(folder / _MODEL)
            if isinstance(model, DQN):
                model.save_replay_buffer(folder / _BUFFER)
            progress = {"history": self.history, "seconds": self.seconds}
            (folder / _PROGRESS).write_text(json.dumps(progress), encoding="utf-8")

        self.folder.save_checkpoint(model.num_timesteps, write)

    def finish(self, model: BaseAlgorithm) -> dict[str, Any]:
        """Save the final policy and the summary."""
        path = self._save(model, "model")
        options = EvaluationConfig(
            seed=self.config.seed, max_states=_FINAL_STATES, step_limit=self.config.step_limit
        )
        final = evaluate(
            policy_from_sb3(model), self.task, _FINAL_STARTS, _FINAL_RUNS, config=options
        )
        summary = {
            "task": self.task.name,
            "algo": self.config.algo,
            "steps": model.num_timesteps,
            "seconds": round(self.seconds, 3),
            "resumed_at": self.resumed_at,
            "model": str(path),
            "best_model": str(self.folder.path / "best.zip"),
            "best": self.best(),
            "history": self.history,
            "evaluation": final.as_json(),
        }
        self.folder.finish(summary)
        return summary

    def _save(self, model: BaseAlgorithm, name: str) -> Path:
        path = self.folder.path / f"{name}.zip"
        # The names and the scaling are the same for all policies of a run.
        save_sb3_interface(model, path)
        return self.folder.write(path.name, lambda fresh: _save_zip(model, fresh))


class _Keeper(BaseCallback):
    """Evaluates and saves between rollouts, when a model is in no half-done step."""

    def __init__(self, run: _Run, watch: Watch | None) -> None:
        super().__init__()
        self._run = run
        self._watch = watch

    def _on_training_start(self) -> None:
        interval = self._run.config.interval
        self._due = (self.model.num_timesteps // interval + 1) * interval

    def _on_step(self) -> bool:
        if self._watch is not None:
            self._watch(self.model.num_timesteps, None)
        return True

    def _on_rollout_start(self) -> None:
        if self.model.num_timesteps >= self._due:
            self.keep()

    def keep(self) -> None:
        """Evaluate, log, save a checkpoint."""
        steps, interval = self.model.num_timesteps, self._run.config.interval
        self._due = (steps // interval + 1) * interval
        found = self._run.evaluate(self.model)
        self.logger.record("safety/goal_rate", found.goal_rate.value)
        self.logger.record("safety/failure_rate", found.failure_rate.value)
        self.logger.record("safety/mean_steps", found.mean_steps)
        self.logger.dump(steps)
        self._run.save_checkpoint(self.model)
        self._run.keep_if_best(self.model)
        if self._watch is not None:
            self._watch(steps, found)


def _score(entry: Mapping[str, Any]) -> float:
    """What makes a policy the best of a run: goals reached less failures."""
    return float(entry["goal_rate"] - entry["failure_rate"])


def _new_model(config: TrainConfig, env: SB3VecEnv) -> BaseAlgorithm:
    kind = _CLASSES[config.algo]
    check_learner_options(kind, config.learner)
    options: dict[str, Any] = {**(_PPO if "ppo" in config.algo else _DQN), **config.learner}
    if "n_steps" in options and "n_steps" not in config.learner:
        rollout = -(-min(config.steps, config.interval) // config.num_envs)
        options["n_steps"] = max(2, min(options["n_steps"], rollout))
        whole = options["n_steps"] * config.num_envs
        options["batch_size"] = min(options["batch_size"], whole)
    network: dict[str, Any] = {"net_arch": list(config.net), "activation_fn": torch.nn.ReLU}
    if config.grids is not None:
        network["features_extractor_class"] = GridEncoder
        network["features_extractor_kwargs"] = {"grids": observed_grids(env, config.grids)}
    given = {"policy_kwargs": network, "seed": config.seed, "device": "cpu", **options}
    try:
        return kind("MlpPolicy", env, **given)
    except (TypeError, ValueError, AssertionError) as error:
        raise ConfigError(f"{config.algo} refuses its options {dict(options)}: {error}") from error


def _save_zip(model: BaseAlgorithm, path: Path) -> None:
    with path.open("wb") as file:
        model.save(file)
