"""A trained model under a shield, for evaluation and deployment."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import PolicyError
from safetest_gym.policies import Policy
from safetest_gym.policies.interface import Interface, TaskNames
from safetest_gym.policies.sb3 import SB3Policy, policy_from_sb3
from safetest_gym.policies.scaling import Scaling, scaled_features
from safetest_gym.repair.shields import Shield, require_same_task
from safetest_gym.task import Task

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

__all__ = ["GuardedPolicy", "ShieldedPolicy"]


class ShieldedPolicy:
    """``model`` with its choice restricted to what the shield permits, like a model of SB3.

    States are read back from observations, so these must show every variable exactly:
    integers in any observation, reals in ``observation="float64"`` only. It always takes the
    best permitted action, and follows the model's weights if they change.

    Args:
        model: of PPO, A2C, DQN, QR-DQN, MaskablePPO or MaskableDQN, with an environment of
            ours.
        shield: made for the same task.

    Raises:
        PolicyError: the model's observations do not show the state; give the shield to the
            environment instead (``env.set_shield``, `ShieldWrapper`).
        ShieldError: the shield was made for another task than the model's environment.
    """

    def __init__(self, model: BaseAlgorithm, shield: Shield) -> None:
        task, env = shield.task, model.get_env()
        if env is not None and env.has_attr("task"):
            require_same_task(shield, env.get_attr("task", [0])[0])
        policy = policy_from_sb3(model).bind(task)
        self.model, self.shield = model, shield
        self._interface = policy.interface
        self._scalings = policy.scalings
        self._check_complete(model)
        size = len(self._interface.variables)
        inputs = Interface(tuple(map(str, range(size))), task.actions)
        inputs = replace(inputs, numbers=self._interface.numbers)
        self._live = SB3Policy(model.policy, inputs, (), reason="read as it is now")
        self._integer = np.array([variable.kind != "real" for variable in task.variables])

    def _check_complete(self, model: BaseAlgorithm) -> None:
        task, seen = self.shield.task, set(self._interface.columns)
        hidden = [v.name for i, v in enumerate(task.variables) if i not in seen]
        if hidden:
            raise PolicyError(
                f"observations hide {', '.join(hidden)}, so the state cannot be read back; "
                "give the shield to the environment: env.set_shield(shield) or ShieldWrapper"
            )
        dtype = model.observation_space.dtype
        reals = [v.name for v in task.variables if v.kind == "real"]
        if reals and (dtype != np.float64 or self._scalings):
            raise PolicyError(
                f"observations round {', '.join(reals)}, so the state cannot be read back; use "
                'observation="float64", or give the shield to the environment (ShieldWrapper)'
            )

    def predict(
        self,
        observation: NDArray[Any],
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
        action_masks: NDArray[Any] | None = None,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Best permitted actions of one observation (F,) or several (n, F).

        Args:
            state: of recurrent policies; handed back.
            episode_start: as above.
            deterministic: makes no difference.
            action_masks: further restrictions, dropped where they leave nothing.
        """
        observations = np.asarray(observation)
        batch = observations.reshape(-1, len(self._interface.variables))
        masks = self.shield.allowed(self.states(batch))
        masks[~masks.any(axis=1)] = True
        if action_masks is not None:
            asked = masks & np.asarray(action_masks, np.bool_).reshape(masks.shape)
            masks = np.where(asked.any(axis=1, keepdims=True), asked, masks)
        actions = self._live.actions(batch, masks)
        return (actions if observations.ndim == 2 else actions[0]), state

    def states(self, observations: NDArray[Any]) -> NDArray[Any]:
        """The exact states (n, V) that observations (n, F) show.

        Raises:
            PolicyError: no state looks like this, for instance as VecNormalize clipped it.
        """
        values = np.asarray(observations, np.float64)
        for scaling in reversed(self._scalings):
            values = _unscaled(scaling, values)
        states = np.empty((len(values), self.shield.task.num_variables))
        states[:, list(self._interface.columns)] = values
        states[:, self._integer] = np.rint(states[:, self._integer])
        features = scaled_features(states[:, list(self._interface.columns)], self._scalings)
        close = np.isclose(features, observations, rtol=1e-4, atol=1e-4).all(axis=1)
        if not close.all():
            shown = observations[np.flatnonzero(~close)[0]]
            raise PolicyError(
                f"no state looks like the observation {shown}: it was clipped or made by another "
                "environment; give the shield to the environment instead (ShieldWrapper)"
            )
        return states.astype(self.shield.task.dtype)


def _unscaled(scaling: Scaling, values: NDArray[np.float64]) -> NDArray[np.float64]:
    unscaled: NDArray[np.float64] = values * scaling.scale / scaling.factor + scaling.shift
    return unscaled


class GuardedPolicy:
    """Any policy under a shield, as a policy: what is deployed, for analyses of it."""

    def __init__(self, policy: Policy, shield: Shield) -> None:
        self._policy = policy.bind(shield.task)
        self.shield = shield

    @property
    def interface(self) -> Interface:
        """That of the policy."""
        return self._policy.interface

    def actions(
        self, states: NDArray[np.generic], applicable: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """The policy's best actions among those applicable and permitted."""
        masks = applicable & self.shield.mask_many(states)
        masks = np.where(masks.any(axis=1, keepdims=True), masks, applicable)
        return self._policy.actions(states, masks)

    def bind(self, task: TaskNames) -> GuardedPolicy:
        """Itself: a shield belongs to one task, and another one is refused."""
        if isinstance(task, Task):
            require_same_task(self.shield, task)
        return self

    def native(self) -> None:
        """None: the shield is asked in Python."""
        return
