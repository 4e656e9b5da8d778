"""Read the network out of a Stable-Baselines3 zip without unpickling anything.

The zip has the weights as a plain state dict (``policy.pth``), and in ``data`` next to
every pickled option also its text, which tells enough: policy class, spaces, activation.
The pickled bytes themselves are never loaded.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetest_gym.errors import PolicyError
from safetest_gym.policies.mlp import Activation, Layer
from safetest_gym.policies.sb3 import mean_of_quantiles
from safetest_gym.policies.torch_file import layers_of_state_dict, load_torch

__all__ = ["read_sb3_layers"]

_ADVICE = "; load it with its algorithm's own load() and use policy_from_sb3(model, ...)"
_ACTOR_CRITIC = ("stable_baselines3.common.policies", "sb3_contrib.common.maskable.policies")
_CLASSES = {
    "stable_baselines3.common.policies": "ActorCriticPolicy",
    "sb3_contrib.common.maskable.policies": "MaskableActorCriticPolicy",
    "stable_baselines3.dqn.policies": "DQNPolicy",
    "sb3_contrib.qrdqn.policies": "QRDQNPolicy",
}
_PREFIXES = {
    "stable_baselines3.dqn.policies": "q_net.q_net.",
    "sb3_contrib.qrdqn.policies": "quantile_net.quantile_net.",
}
_ACTIVATIONS: dict[str, Activation] = {
    "<class 'torch.nn.modules.activation.ReLU'>": "relu",
    "<class 'torch.nn.modules.activation.Tanh'>": "tanh",
}
_ENCODER = "<class 'safetest_gym.policies.encoder.GridEncoder'>"
_HARMLESS_OPTIONS = {
    "activation_fn",
    "features_extractor_class",
    "features_extractor_kwargs",
    "n_quantiles",
    "net_arch",
    "optimizer_class",
    "optimizer_kwargs",
    "ortho_init",
    "share_features_extractor",
    "log_std_init",
    "normalize_images",
}


def read_sb3_layers(path: Path) -> tuple[Layer, ...]:
    """The policy network of a PPO, MaskablePPO, A2C, DQN, QR-DQN or MaskableDQN zip.

    Raises:
        PolicyError: no SB3 zip, or one that needs more than a plain network.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            data = json.loads(archive.read("data"))
            weights = io.BytesIO(archive.read("policy.pth"))
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise PolicyError(f"{path} is no Stable-Baselines3 zip: {error}") from error
    try:
        return _read_layers(path, data, load_torch(path, weights))
    except PolicyError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PolicyError(f"{path} is no Stable-Baselines3 zip we know: {error!r}") from error


def _read_layers(path: Path, data: Any, tensors: Any) -> tuple[Layer, ...]:
    module = _checked_module(path, data)
    activation = _activation(path, module, data.get("policy_kwargs") or {})
    encoder, tensors = _split_encoder(tensors)
    if module in _ACTOR_CRITIC:
        layers = _actor_layers(path, tensors, activation)
    else:
        prefix = _PREFIXES[module]
        own = {key: value for key, value in tensors.items() if key.startswith(prefix)}
        layers = layers_of_state_dict(own, activation)
    if module.startswith("sb3_contrib.qrdqn"):
        actions = int(data["action_space"]["n"])
        layers = (*layers[:-1], mean_of_quantiles(layers[-1], actions))
    if not encoder:
        return layers
    from safetest_gym.policies.encoder import with_encoder

    return with_encoder(encoder, layers)


def _split_encoder(tensors: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tensors of a `GridEncoder`, by their own names, and all others.

    A network that shares its encoder with its critic has it several times.
    """
    encoder, others = {}, {}
    for key, tensor in tensors.items():
        owner, _, name = key.rpartition(".")
        if owner.endswith("features_extractor"):
            encoder[name] = tensor
        else:
            others[key] = tensor
    return encoder, others


def _checked_module(path: Path, data: Mapping[str, Any]) -> str:
    """The module of the policy class, after checking that all is what we can reproduce."""
    spaces = {name: str(data.get(name, {}).get(":type:", "")) for name in _SPACES}
    for name, wanted in _SPACES.items():
        if not spaces[name].endswith(f"{wanted}'>"):
            raise PolicyError(f"{path}: {name} is {spaces[name] or 'missing'}, not {wanted}")
    if len(data["observation_space"].get("_shape") or []) != 1:
        raise PolicyError(f"{path}: observations are no vectors")
    policy = data.get("policy_class", {})
    module = str(policy.get("__module__"))
    text = json.dumps({key: value for key, value in policy.items() if key != ":serialized:"})
    if module not in _CLASSES or f"<function {_CLASSES[module]}." not in text:
        raise PolicyError(f"{path}: policy class of {module} is not a plain MlpPolicy{_ADVICE}")
    options = data.get("policy_kwargs") or {}
    strange = sorted(set(options) - _HARMLESS_OPTIONS - {":type:", ":serialized:"})
    if strange:
        raise PolicyError(f"{path}: policy_kwargs {', '.join(strange)} not supported{_ADVICE}")
    extractor = str(options.get("features_extractor_class", _ENCODER))
    if extractor != _ENCODER:
        raise PolicyError(
            f"{path}: policy_kwargs features_extractor_class {extractor} not supported{_ADVICE}"
        )
    return module


_SPACES = {"observation_space": "Box", "action_space": "Discrete"}


def _activation(path: Path, module: str, options: Mapping[str, Any]) -> Activation:
    if "activation_fn" not in options:
        return "tanh" if module in _ACTOR_CRITIC else "relu"
    name = str(options["activation_fn"])
    if name not in _ACTIVATIONS:
        raise PolicyError(f"{path}: activation {name} has no kernel{_ADVICE}")
    return _ACTIVATIONS[name]


def _actor_layers(
    path: Path, tensors: Mapping[str, Any], activation: Activation
) -> tuple[Layer, ...]:
    body = {k: v for k, v in tensors.items() if k.startswith("mlp_extractor.policy_net.")}
    known = ("mlp_extractor.", "action_net.", "value_net.")
    strange = [key for key in tensors if not key.startswith(known)]
    if strange:
        raise PolicyError(f"{path}: {strange[0]} is no part of a plain MlpPolicy{_ADVICE}")
    last = {f"{len(body)}.{name}": tensors[f"action_net.{name}"] for name in ("weight", "bias")}
    numbered = {key.removeprefix("mlp_extractor.policy_net."): value for key, value in body.items()}
    return layers_of_state_dict({**numbered, **last}, activation)
