"""Networks to and from torch: modules, state dicts, and ``.pt`` files of state dicts."""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import PolicyError
from safetest_gym.policies.mlp import Activation, Layer, MlpPolicy
from safetest_gym.replacing import replace_file

if TYPE_CHECKING:
    import torch

__all__ = [
    "layers_of_modules",
    "layers_of_state_dict",
    "load_torch",
    "read_torch",
    "state_dict_of",
    "write_torch",
]


def layers_of_modules(modules: Iterable[torch.nn.Module]) -> tuple[Layer, ...]:
    """Read linear layers with ReLU, tanh or nothing between them.

    Raises:
        PolicyError: another module (dropout, normalisation, other activation) is among them.
    """
    from torch import nn

    names: dict[type[nn.Module], Activation] = {nn.ReLU: "relu", nn.Tanh: "tanh"}
    layers: list[Layer] = []
    for module in _flattened(modules):
        kind = type(module)
        if kind is nn.Linear:
            bias = np.zeros(module.out_features) if module.bias is None else _array(module.bias)
            layers.append(Layer(_array(module.weight), bias.astype(np.float32)))
        elif kind in names and layers and layers[-1].activation == "identity":
            layers[-1] = Layer(layers[-1].weight, layers[-1].bias, names[kind])
        elif kind not in (nn.Identity, nn.Flatten):
            raise PolicyError(
                f"cannot reproduce a network with {module} here; only linear layers, each "
                "with at most one ReLU or tanh after it, are supported"
            )
    return tuple(layers)


def layers_of_state_dict(
    tensors: Mapping[str, Any], activations: Activation | Sequence[Activation]
) -> tuple[Layer, ...]:
    """Read ``….N.weight`` and ``….N.bias`` entries, ordered by N.

    Args:
        activations: of all layers but the last, or one for each layer.
    """
    numbered: dict[int, dict[str, NDArray[np.float32]]] = {}
    for key, tensor in tensors.items():
        match = re.fullmatch(r"(?:.*\.)?(\d+)\.(weight|bias)", str(key))
        if not match or not hasattr(tensor, "detach"):
            raise PolicyError(f"state dict entry {key!r} is no part of a plain network")
        numbered.setdefault(int(match[1]), {})[match[2]] = _array(tensor)
    parts = [numbered[n] for n in sorted(numbered)]
    if not parts or any("weight" not in part or part["weight"].ndim != 2 for part in parts):
        raise PolicyError("the state dict is not that of a plain network of linear layers")
    if isinstance(activations, str):
        activations = [activations] * (len(parts) - 1) + ["identity"]
    if len(activations) != len(parts):
        raise PolicyError(f"{len(activations)} activations given for {len(parts)} layers")
    return tuple(
        Layer(part["weight"], part.get("bias", np.zeros(len(part["weight"]), np.float32)), name)
        for part, name in zip(parts, activations, strict=True)
    )


def read_torch(
    path: Path, activations: Activation | Sequence[Activation] | None, *, allow_pickle: bool
) -> tuple[Layer, ...]:
    """Read a ``.pt`` file; a whole pickled module only if ``allow_pickle``."""
    import torch

    content = load_torch(path, path, allow_pickle=allow_pickle)
    if isinstance(content, torch.nn.Module):
        return layers_of_modules([content])
    if not isinstance(content, Mapping):
        raise PolicyError(f"{path} holds a {type(content).__name__}, not a state dict")
    if activations is None:
        raise PolicyError(
            f"{path}: a state dict does not say what lies between its layers; pass activation="
        )
    return layers_of_state_dict(content, activations)


def load_torch(path: Path, file: Path | IO[bytes], *, allow_pickle: bool = False) -> Any:
    """What ``torch.load`` finds in ``file``; errors speak of ``path``."""
    import torch

    try:
        return torch.load(file, map_location="cpu", weights_only=not allow_pickle)
    except pickle.UnpicklingError as error:
        raise PolicyError(
            f"{path} holds more than tensors, and loading that could run foreign code; save "
            "module.state_dict() instead, or pass allow_pickle=True if you trust the file"
        ) from error
    except (EOFError, RuntimeError, LookupError, TypeError, ValueError) as error:
        raise PolicyError(f"{path} is no file of torch, or a damaged one: {error}") from error


def state_dict_of(policy: MlpPolicy) -> dict[str, torch.Tensor]:
    """State dict of the same network as an ``nn.Sequential`` with an activation per layer."""
    import torch

    return {
        f"{2 * i}.{name}": torch.tensor(np.asarray(getattr(layer, name)))
        for i, layer in enumerate(policy.layers)
        for name in ("weight", "bias")
    }


def write_torch(policy: MlpPolicy, path: Path) -> None:
    """Save `state_dict_of` the policy; scaling and names do not fit into it."""
    import torch

    # Through a buffer: given a path, torch would write the file's name into the content.
    buffer = io.BytesIO()
    torch.save(state_dict_of(policy), buffer)
    replace_file(path, lambda fresh: fresh.write_bytes(buffer.getvalue()))


def _flattened(modules: Iterable[torch.nn.Module]) -> Iterable[Any]:
    from torch import nn

    for module in modules:
        if type(module) is nn.Sequential:
            yield from _flattened(module)
        else:
            yield module


def _array(tensor: Any) -> NDArray[np.float32]:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float32)
