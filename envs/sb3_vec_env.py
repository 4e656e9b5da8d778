"""A Stable-Baselines3 vector environment that steps all copies in one call."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Unpack

import gymnasium
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env.base_vec_env import (
    VecEnv,
    VecEnvIndices,
    VecEnvStepReturn,
)

from safetest_gym.envs.batch import Batch
from safetest_gym.envs.options import EnvArguments, ModelSource
from safetest_gym.envs.outcomes import FAILING, GOAL, OUTCOME_NAMES, TRUNCATED
from safetest_gym.envs.shielding import Shield
from safetest_gym.errors import ConfigError

__all__ = ["SB3VecEnv"]


class SB3VecEnv(VecEnv):
    """``num_envs`` copies of a task for Stable-Baselines3 and sb3-contrib.

    It brings what `Monitor` would: ``info["episode"]`` with return, length and time at
    the end of every episode. ``info["action_mask"]`` and ``info["state"]`` are there at
    the end of episodes only; `action_masks` and `states` have them for all copies.
    """

    def __init__(
        self,
        model: ModelSource,
        num_envs: int = 8,
        **arguments: Unpack[EnvArguments],
    ) -> None:
        self._batch = Batch(model, num_envs, "SameStep", arguments)
        self.task, self.options = self._batch.task, self._batch.options
        self._actions: NDArray[Any] | None = None
        copies = self._batch.num_envs
        self._returns = np.zeros(copies, dtype=np.float64)
        self._started = time.time()
        super().__init__(copies, self._batch.view.space, self._batch.action_space)

    def reset(self) -> NDArray[np.floating[Any]]:
        """Start new episodes everywhere, with the seeds and options set before."""
        options = [given or None for given in self._options]
        self._batch.reset(range(self.num_envs), self._seeds, options)
        self._returns[:] = 0
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [{} for _ in range(self.num_envs)]
        return self._batch.observations()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Remember the actions; the work is in `step_wait`."""
        self._actions = np.asarray(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Step all copies; ended episodes begin anew within the same step."""
        if self._actions is None:
            raise ConfigError("step_wait() without step_async()")
        actions, self._actions = self._actions, None
        stepper = self._batch.stepper
        lengths = stepper.steps + 1
        preferred = self._batch.preferred.copy()
        self._batch.step(actions)
        self._returns += stepper.rewards
        outcomes = stepper.outcomes
        dones = outcomes > 0
        infos: list[dict[str, Any]] = [
            {"TimeLimit.truncated": False, "cost": 0.0} for _ in range(self.num_envs)
        ]
        self._add_final_infos(infos, np.flatnonzero(dones), lengths)
        for i in np.flatnonzero(dones & preferred).tolist():
            infos[i]["start_source"] = "pool"
        self._returns[dones] = 0
        # SB3 keeps rewards in float32 everywhere.
        rewards = stepper.rewards.astype(np.float32)
        return self._batch.observations(), rewards, dones, infos

    def _add_final_infos(
        self, infos: list[dict[str, Any]], ended: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> None:
        if not ended.size:
            return
        stepper = self._batch.stepper
        elapsed = round(time.time() - self._started, 6)
        rows = zip(
            ended.tolist(),
            stepper.outcomes[ended].tolist(),
            lengths[ended].tolist(),
            self._returns[ended].tolist(),
            self._batch.view(stepper.final_observations[ended]),
            stepper.final_states[ended],
            self._batch.final_masks(ended),
            strict=True,
        )
        for i, outcome, length, total, observation, state, mask in rows:
            cost = float(outcome == FAILING)
            infos[i] = {
                "terminal_observation": observation,
                "TimeLimit.truncated": outcome == TRUNCATED,
                "state": state,
                "action_mask": mask,
                "cost": cost,
                "cumulative_cost": cost,
                "is_success": outcome == GOAL,
                "outcome": OUTCOME_NAMES[outcome],
                "start_source": "task",
                "episode": {"r": total, "l": length, "t": elapsed, "cost": cost},
            }

    def close(self) -> None:
        """Nothing is open."""

    def action_masks(self) -> NDArray[np.bool_]:
        """Applicable and permitted actions of every copy, (num_envs, num_actions)."""
        return self._batch.masks().astype(np.bool_)

    def set_shield(self, shield: Shield | None) -> None:
        """Let ``shield`` take actions out of all masks from now on; None removes it."""
        self._batch.set_shield(shield, range(self.num_envs))

    def set_starts(self, states: NDArray[Any], share: float) -> None:
        """Begin this share of the episodes in one of ``states`` (n, V) from now on.

        ``info["start_source"]`` at the end of an episode is ``"pool"`` then, else ``"task"``.
        """
        self._batch.set_starts(states, share)

    @property
    def states(self) -> NDArray[Any]:
        """The exact states, a fresh array (num_envs, V)."""
        return self._batch.states()

    @property
    def observed(self) -> tuple[str, ...]:
        """Names of the observed variables, in the order of observations."""
        return self._batch.view.observed

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """``action_masks``, ``set_shield``, ``get_shield`` of copies, ``set_starts`` of all."""
        if method_name == "action_masks" and indices is None:
            return list(self.action_masks())
        which = self._which(indices)
        if method_name == "action_masks":
            return list(self.action_masks()[which])
        if method_name == "set_shield":
            shield = method_args[0] if method_args else method_kwargs["shield"]
            self._batch.set_shield(shield, which)
            return [None] * len(which)
        if method_name == "set_starts" and indices is None:
            self.set_starts(*method_args, **method_kwargs)
            return [None] * len(which)
        if method_name == "get_shield":
            return [self._batch.shields[i] for i in which]
        raise AttributeError(
            f"SB3VecEnv has no method {method_name!r} per environment; it has action_masks, "
            "set_shield, get_shield and, for all at once, set_starts"
        )

    def has_attr(self, attr_name: str) -> bool:
        """Can `env_method` or `get_attr` be asked for it?"""
        if attr_name in ("action_masks", "set_shield", "get_shield", "set_starts"):
            return True
        return super().has_attr(attr_name)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Attributes of `JaniEnv` that make sense for one copy of many."""
        which = self._which(indices)
        if attr_name == "state":
            return list(self.states[which])
        if attr_name == "spec":
            return [None] * len(which)
        if attr_name in ("task", "options", "observation_space", "action_space", "observed"):
            return [getattr(self, attr_name)] * len(which)
        if attr_name == "render_mode":
            return [None] * len(which)
        raise AttributeError(f"SB3VecEnv has no attribute {attr_name!r} per environment")

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Refused: copies have no attributes of their own to set."""
        raise AttributeError(f"attribute {attr_name!r} of SB3VecEnv cannot be set")

    def env_is_wrapped(
        self,
        wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]],
        indices: VecEnvIndices = None,
    ) -> list[bool]:
        """True for `Monitor`, whose statistics this class keeps itself."""
        return [issubclass(wrapper_class, Monitor)] * len(self._which(indices))

    def _which(self, indices: VecEnvIndices) -> list[int]:
        selected: Iterable[int] = self._get_indices(indices)
        return list(selected)
