"""Stable-Baselines3 models as policies: the same argmax as ``predict``, without torch."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import PolicyError
from safetest_gym.policies.interface import Interface, TaskNames
from safetest_gym.policies.mlp import Layer, MlpPolicy
from safetest_gym.policies.native import NativePolicy
from safetest_gym.policies.policy import best_actions, check_batch
from safetest_gym.policies.scaling import Scaling, scaled_features
from safetest_gym.policies.sidecar import Sidecar, write_sidecar
from safetest_gym.policies.torch_file import layers_of_modules

if TYPE_CHECKING:
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.vec_env import VecNormalize

__all__ = [
    "SB3Policy",
    "mean_of_quantiles",
    "policy_from_sb3",
    "save_sb3_interface",
    "vec_normalize_scaling",
]


def policy_from_sb3(
    model: BaseAlgorithm,
    interface: Interface | None = None,
    *,
    scalings: Sequence[Scaling] | None = None,
) -> MlpPolicy | SB3Policy:
    """A frozen copy of what the model does now.

    A plain ``MlpPolicy`` of PPO, MaskablePPO, A2C, DQN, QR-DQN and MaskableDQN becomes a
    native `MlpPolicy`; statistics of a VecNormalize around the model's environment become
    part of it. Custom networks of the same algorithms run through torch (`SB3Policy`).

    Args:
        interface: what the observation's entries and the actions stand for; by default
            the model's environment is asked for its ``task`` and ``observed`` variables.
        scalings: how the environment makes observations out of state values; by default
            the environment is asked, or they are the plain values if it is not ours.

    Raises:
        PolicyError: the model's decisions depend on more than the current state (recurrent
            policies, frame stacks), or its spaces are not a vector and a choice.
    """
    _check_memoryless(model)
    if interface is None:
        interface = _interface_of(model)
    _check_spaces(model, interface)
    steps = _scalings_of(model) if scalings is None else tuple(scalings)
    normalize = model.get_vec_normalize_env()
    if normalize is not None and normalize.norm_obs:
        if not steps and model.observation_space.dtype == np.float32:
            steps = (Scaling.rounding(len(interface.variables)),)
        steps += (vec_normalize_scaling(normalize),)
    try:
        return MlpPolicy(_layers(model.policy, interface.num_actions), interface, steps)
    except PolicyError as error:
        return SB3Policy(_frozen(model.policy), interface, steps, reason=str(error))


def save_sb3_interface(model: BaseAlgorithm, path: str | Path) -> None:
    """Write, beside the zip that ``model.save(path)`` wrote, what the zip does not say.

    With names and scaling (VecNormalize's too) there, `load_policy` gives the same policy.
    """
    policy = policy_from_sb3(model)
    write_sidecar(Path(path), Sidecar(interface=policy.interface, scalings=policy.scalings))


@dataclass(frozen=True, eq=False)
class SB3Policy:
    """A custom SB3 policy, called in batches through torch; analyses with it are slow.

    Attributes:
        reason: why it has no native form.
    """

    module: Any = field(repr=False)
    interface: Interface
    scalings: tuple[Scaling, ...] = ()
    reason: str = ""

    def scores(self, states: NDArray[np.generic]) -> NDArray[np.float32]:
        """Logits or Q-values, shape (n, A), by the task's action numbers."""
        import torch

        check_batch(self.interface, states)
        features = scaled_features(states[:, list(self.interface.columns)], self.scalings)
        with torch.no_grad():
            batch = torch.as_tensor(features, device=self.module.device)
            scores = _scores(self.module, batch).cpu().numpy()
        return np.asarray(scores[:, list(self.interface.order)], dtype=np.float32)

    def actions(
        self, states: NDArray[np.generic], applicable: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Actions, shape (n,), of states (n, V) under masks (n, A)."""
        check_batch(self.interface, states, applicable)
        return best_actions(self.scores(states), applicable)

    def bind(self, task: TaskNames) -> SB3Policy:
        """The same policy with its names looked up in ``task``."""
        return replace(self, interface=self.interface.bind(task))

    def native(self) -> NativePolicy | None:
        """None: only torch can run it."""
        return None


def vec_normalize_scaling(normalize: VecNormalize) -> Scaling:
    """The observation statistics of a VecNormalize, as they are now."""
    statistics: Any = normalize.obs_rms
    if isinstance(statistics, dict):
        raise PolicyError("VecNormalize over dictionary observations is not supported")
    scale = np.sqrt(statistics.var + normalize.epsilon)
    return Scaling.affine(statistics.mean, scale, normalize.clip_obs)


def mean_of_quantiles(layer: Layer, actions: int) -> Layer:
    """Turn a layer with (quantiles x actions) outputs into one with their means."""
    if len(layer.bias) % actions:
        raise PolicyError(
            f"{len(layer.bias)} quantile outputs do not divide into {actions} actions"
        )
    shape = (-1, actions, layer.weight.shape[1])
    weight = layer.weight.astype(np.float64).reshape(shape).mean(axis=0)
    bias = layer.bias.astype(np.float64).reshape(-1, actions).mean(axis=0)
    return Layer(weight.astype(np.float32), bias.astype(np.float32), layer.activation)


def _interface_of(model: BaseAlgorithm) -> Interface:
    task = _asked(model, "task")
    if task is None:
        raise PolicyError("the model has no environment with a task; pass an interface")
    return Interface.of(task, variables=_asked(model, "observed"))


def _scalings_of(model: BaseAlgorithm) -> tuple[Scaling, ...]:
    """How our environments make observations; () for others."""
    task, options = _asked(model, "task"), _asked(model, "options")
    if task is None or getattr(options, "observation", None) != "normalized":
        return ()
    variables = {variable.name: variable for variable in task.variables}
    observed = [variables[name] for name in _asked(model, "observed") or variables]
    bounds = np.array([(v.lower, v.upper) for v in observed], dtype=np.float64)
    return (Scaling.to_unit(bounds[:, 0], bounds[:, 1]),)


def _asked(model: BaseAlgorithm, name: str) -> Any:
    """An attribute of the model's first environment, or None."""
    env = model.get_env()
    if env is None or not env.has_attr(name):
        return None
    return env.get_attr(name)[0]


def _check_spaces(model: BaseAlgorithm, interface: Interface) -> None:
    from gymnasium import spaces

    space, actions = model.observation_space, model.action_space
    if not isinstance(actions, spaces.Discrete):
        raise PolicyError(f"the model chooses from {actions}; only Discrete actions can be tested")
    if actions.start != 0 or actions.n != interface.num_actions:
        raise PolicyError(
            f"the model chooses from {actions}, the interface has {interface.num_actions} "
            f"actions: {', '.join(interface.actions)}"
        )
    if not isinstance(space, spaces.Box) or len(space.shape) != 1:
        raise PolicyError(
            f"the model observes {space}; only a vector (1-D Box) can be reproduced: leave out "
            "frame stacks and other wrappers that change observations"
        )
    if space.shape != (len(interface.variables),):
        raise PolicyError(
            f"the model observes {space.shape[0]} numbers, the interface has "
            f"{len(interface.variables)} variables: {', '.join(interface.variables)} "
            "(a frame stack cannot be reproduced)"
        )


def _check_memoryless(model: BaseAlgorithm) -> None:
    from stable_baselines3.common.vec_env import VecFrameStack, is_vecenv_wrapped

    if hasattr(model.policy, "lstm_actor"):
        raise PolicyError("recurrent policies depend on more than the state; train without memory")
    env = model.get_env()
    if env is not None and is_vecenv_wrapped(env, VecFrameStack):
        raise PolicyError("a frame stack depends on more than the state; train without it")
    if getattr(model, "use_sde", False):
        raise PolicyError("state-dependent exploration (use_sde) is not for discrete actions")


def _layers(policy: Any, actions: int) -> tuple[Layer, ...]:
    """The plain network inside, or `PolicyError` saying what is not plain."""
    from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
    from sb3_contrib.qrdqn.policies import QRDQNPolicy
    from stable_baselines3.common.policies import ActorCriticPolicy
    from stable_baselines3.dqn.policies import DQNPolicy

    kind = type(policy)
    if kind in (ActorCriticPolicy, MaskableActorCriticPolicy):
        parts: Iterable[Any] = [policy.mlp_extractor.policy_net, policy.action_net]
        return _plain(policy.pi_features_extractor, policy.mlp_extractor, parts)
    if kind is DQNPolicy:
        return _plain(policy.q_net.features_extractor, None, [policy.q_net.q_net])
    if kind is QRDQNPolicy:
        net = policy.quantile_net
        layers = _plain(net.features_extractor, None, [net.quantile_net])
        return (*layers[:-1], mean_of_quantiles(layers[-1], actions))
    raise PolicyError(f"custom policy class {kind.__name__}")


def _plain(extractor: Any, body: Any, parts: Iterable[Any]) -> tuple[Layer, ...]:
    from stable_baselines3.common.torch_layers import FlattenExtractor, MlpExtractor

    from safetest_gym.policies.encoder import GridEncoder, with_encoder

    if type(extractor) not in (FlattenExtractor, GridEncoder):
        raise PolicyError(f"custom features extractor {type(extractor).__name__}")
    if body is not None and type(body) is not MlpExtractor:
        raise PolicyError(f"custom network {type(body).__name__}")
    layers = layers_of_modules(parts)
    return with_encoder(extractor.state_dict(), layers) if extractor.state_dict() else layers


def _frozen(policy: Any) -> Any:
    """A copy in evaluation mode, after checking that we know how to ask it for scores."""
    if not any(hasattr(policy, name) for name in ("get_distribution", "q_net", "quantile_net")):
        raise PolicyError(f"cannot read scores from a {type(policy).__name__}")
    memo: dict[int, Any] = {}
    if hasattr(policy, "action_dist"):
        # While it learns, this holds tensors of the last step, which cannot be copied.
        memo[id(policy.action_dist)] = fresh = copy.copy(policy.action_dist)
        fresh.distribution = None
    frozen = copy.deepcopy(policy, memo)
    frozen.set_training_mode(False)
    return frozen


def _scores(policy: Any, observations: torch.Tensor) -> torch.Tensor:
    if hasattr(policy, "q_net"):
        values: torch.Tensor = policy.q_net(observations)
    elif hasattr(policy, "quantile_net"):
        values = policy.quantile_net(observations).mean(dim=1)
    else:
        distribution = policy.get_distribution(observations).distribution
        if not hasattr(distribution, "logits"):
            raise PolicyError(f"cannot read scores from a {type(distribution).__name__}")
        values = distribution.logits
    return values
