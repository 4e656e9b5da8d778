"""A Gymnasium vector environment that steps all copies in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack, get_args

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from safetest_gym.engine.batch import Autoreset
from safetest_gym.envs.batch import Batch
from safetest_gym.envs.options import EnvArguments, ModelSource
from safetest_gym.envs.outcomes import FAILING, GOAL, OUTCOME_NAMES, TRUNCATED
from safetest_gym.envs.shielding import Shield
from safetest_gym.errors import ConfigError

__all__ = ["JaniVectorEnv"]

Observations = NDArray[np.floating[Any]]
Infos = dict[str, Any]
Step = tuple[Observations, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Infos]

_PRESENT = ("_state", "_action_mask", "_cost", "_cumulative_cost", "_is_success", "_outcome")


class JaniVectorEnv(VectorEnv[Observations, NDArray[np.int64], NDArray[Any]]):
    """``num_envs`` copies of a task; see `safetest_gym.envs.options` for the arguments.

    ``infos`` has what `JaniEnv` has, as arrays over the copies: ``state``,
    ``action_mask``, ``cost``, ``cumulative_cost``, ``is_success`` and ``outcome`` (an
    object array of names and None), each with its ``_name`` mask as Gymnasium has it. With
    autoreset ``SameStep`` the last state of an ended episode is in ``final_obs`` and
    ``final_info``. Seed s resets copy i like a single environment with seed s + i.
    """

    def __init__(
        self,
        model: ModelSource,
        num_envs: int = 1,
        *,
        autoreset_mode: Autoreset | AutoresetMode = "NextStep",
        **arguments: Unpack[EnvArguments],
    ) -> None:
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError:
            known = ", ".join(get_args(Autoreset))
            raise ConfigError(
                f"autoreset_mode must be one of {known}, got {autoreset_mode!r}"
            ) from None
        self._batch = Batch(model, num_envs, self.autoreset_mode.value, arguments)
        self.task, self.options = self._batch.task, self._batch.options
        self.num_envs = self._batch.num_envs
        self.render_mode = None
        self.metadata = {"render_modes": [], "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = self._batch.view.space
        self.single_action_space = self._batch.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observations, Infos]:
        """Start new episodes.

        ``options`` may have ``reset_mask`` (bool array: which copies) and, for all of
        them, ``state`` or ``index`` as `JaniEnv.reset` takes them.
        """
        remaining = dict(options or {})
        which = _selected(remaining.pop("reset_mask", None), self.num_envs)
        seeds = _seeds(seed, self.num_envs)
        self._batch.reset(which, [seeds[i] for i in which], [remaining or None] * len(which))
        present = np.zeros(self.num_envs, dtype=np.bool_)
        present[which] = True
        infos = self._infos(np.zeros(self.num_envs, dtype=np.int8), present)
        return self._batch.observations(), infos

    def step(self, actions: NDArray[np.int64]) -> Step:
        """One action per copy; a copy that is being reset ignores its action."""
        batch = self._batch
        batch.step(np.asarray(actions))
        stepper = batch.stepper
        outcomes = stepper.outcomes
        present = np.ones(self.num_envs, dtype=np.bool_)
        truncations = outcomes == TRUNCATED
        terminations = (outcomes > 0) ^ truncations
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            infos = self._infos(np.zeros_like(outcomes), present)
            ended = outcomes > 0
            if ended.any():
                self._add_final(infos, outcomes, ended)
        else:
            infos = self._infos(outcomes, present)
        observations = batch.observations()
        return observations, stepper.rewards.copy(), terminations, truncations, infos

    def _infos(self, outcomes: NDArray[np.int8], present: NDArray[np.bool_]) -> Infos:
        stepper = self._batch.stepper
        return _as_infos(outcomes, stepper.states.copy(), self._batch.masks(), present)

    def _add_final(
        self, infos: Infos, outcomes: NDArray[np.int8], ended: NDArray[np.bool_]
    ) -> None:
        """What the ended episodes came to, beside the start of the next ones."""
        stepper = self._batch.stepper
        final = np.full(self.num_envs, None, dtype=object)
        rows = np.flatnonzero(ended)
        for i in rows:
            final[i] = self._batch.view(stepper.final_observations[i])
        infos["final_obs"], infos["_final_obs"] = final, ended
        masks = np.ones_like(stepper.final_masks)
        masks[rows] = self._batch.final_masks(rows)
        infos["final_info"] = _as_infos(outcomes, stepper.final_states.copy(), masks, ended)
        infos["_final_info"] = ended

    def action_masks(self) -> NDArray[np.bool_]:
        """Applicable and permitted actions of every copy, (num_envs, num_actions)."""
        return self._batch.masks().astype(np.bool_)

    def set_shield(self, shield: Shield | None) -> None:
        """Let ``shield`` take actions out of all masks from now on; None removes it."""
        self._batch.set_shield(shield, range(self.num_envs))

    def get_shield(self) -> Shield | None:
        """The shield in force."""
        return self._batch.shields[0]

    @property
    def observed(self) -> tuple[str, ...]:
        """Names of the observed variables, in the order of observations."""
        return self._batch.view.observed

    @property
    def states(self) -> NDArray[Any]:
        """The exact states, a fresh array (num_envs, V)."""
        return self._batch.states()


def _as_infos(
    outcomes: NDArray[np.int8],
    states: NDArray[Any],
    masks: NDArray[np.int8],
    present: NDArray[np.bool_],
) -> Infos:
    """Gymnasium's layout: every array with a mask that says whose entries count."""
    cost = (outcomes == FAILING).astype(np.float64)
    infos: Infos = {
        "state": states,
        "action_mask": masks,
        "cost": cost,
        "cumulative_cost": cost.copy(),
        "is_success": outcomes == GOAL,
        "outcome": OUTCOME_NAMES.take(outcomes),
    }
    return infos | dict.fromkeys(_PRESENT, present)


def _selected(mask: object, count: int) -> list[int]:
    if mask is None:
        return list(range(count))
    array = np.asarray(mask)
    if array.shape != (count,) or array.dtype != np.bool_ or not array.any():
        raise ConfigError(
            f"reset_mask must be a bool array of shape ({count},) with at least one True"
        )
    return np.flatnonzero(array).tolist()


def _seeds(seed: int | Sequence[int | None] | None, count: int) -> list[int | None]:
    if seed is None:
        return [None] * count
    if isinstance(seed, int | np.integer):
        return [int(seed) + i for i in range(count)]
    seeds = [int(s) if isinstance(s, np.integer) else s for s in seed]
    if len(seeds) != count:
        raise ConfigError(f"{count} environments need as many seeds, got {len(seeds)}")
    return seeds
