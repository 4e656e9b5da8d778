"""Plain networks as policies, in float32 like the library that trained them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import PolicyError
from safetest_gym.policies.interface import Interface
from safetest_gym.policies.kernel_policy import KernelPolicy, native_scores
from safetest_gym.policies.native import NativePolicy, pack
from safetest_gym.policies.policy import check_batch
from safetest_gym.policies.scaling import Scaling

__all__ = ["Activation", "Layer", "MlpPolicy"]

Activation = Literal["identity", "relu", "tanh"]

_CODES: dict[str, int] = {"identity": 0, "relu": 1, "tanh": 2}
_LANES = 16
_WIDEST = 16_384
"""Kernels keep two layers on the stack, and threads have small ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """``activation(weight @ x + bias)``.

    Attributes:
        weight: float32, shape (outputs, inputs).
        bias: float32, shape (outputs,).
    """

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]
    activation: Activation = "identity"

    def __post_init__(self) -> None:
        if self.activation not in _CODES:
            raise PolicyError(
                f"unknown activation {self.activation!r}, expected one of {', '.join(_CODES)}"
            )
        for name, dimensions in (("weight", 2), ("bias", 1)):
            value = np.array(getattr(self, name), dtype=np.float32)
            if value.ndim != dimensions or not np.isfinite(value).all():
                raise PolicyError(f"a layer's {name} must be finite and {dimensions}-dimensional")
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        if max(self.weight.shape) > _WIDEST:
            raise PolicyError(f"a layer has weights {self.weight.shape}, the limit is {_WIDEST}")
        if len(self.weight) != len(self.bias) or not self.weight.size:
            raise PolicyError(
                f"weight {self.weight.shape} does not fit bias {self.bias.shape} of one layer"
            )


@dataclass(frozen=True, eq=False)
class MlpPolicy(KernelPolicy):
    """A network whose outputs are the actions' scores.

    Sums are formed input by input with fused multiply-adds, so scores can differ from
    another library's by rounding, and actions only where its two best scores tie within it.
    """

    layers: tuple[Layer, ...]
    interface: Interface
    scalings: tuple[Scaling, ...] = ()

    def __post_init__(self) -> None:
        _check_shapes(self.layers, self.interface)
        for scaling in self.scalings:
            if len(scaling.shift) != len(self.interface.variables):
                raise PolicyError(
                    f"scaling has {len(scaling.shift)} entries for "
                    f"{len(self.interface.variables)} variables"
                )

    def scores(self, states: NDArray[np.generic]) -> NDArray[np.float32]:
        """Scores, shape (n, A), by the task's action numbers."""
        check_batch(self.interface, states)
        scores = native_scores(self.native(), states, self.interface.num_actions)
        return scores[:, list(self.interface.order)]

    def hidden(self, states: NDArray[np.generic]) -> NDArray[np.float32]:
        """What the last layer reads, shape (n, its inputs)."""
        check_batch(self.interface, states)
        if len(self.layers) == 1:
            weight = np.eye(len(self.interface.variables), dtype=np.float32)
            body: tuple[Layer, ...] = (Layer(weight, np.zeros(len(weight), np.float32)),)
        else:
            body = self.layers[:-1]
        native = self._packed(body)
        return native_scores(native, states, len(body[-1].bias))

    def _pack(self) -> NativePolicy:
        return self._packed(self.layers)

    def _packed(self, layers: Sequence[Layer]) -> NativePolicy:
        table, parts, size, width = [], [], 0, 0
        for layer in layers:
            outputs, inputs = layer.weight.shape
            rows, columns = _padded(inputs), _padded(outputs)
            weight = np.zeros((rows, columns), dtype=np.float32)
            weight[:inputs, :outputs] = layer.weight.T
            bias = np.zeros(columns, dtype=np.float32)
            bias[:outputs] = layer.bias
            code = _CODES[layer.activation]
            table.append((rows, columns, code, size, size + weight.size))
            parts += [weight.ravel(), bias]
            size += weight.size + bias.size
            width = max(width, rows, columns)
        own: list[int | NDArray[np.generic]] = [
            len(layers),
            width,
            np.array(table, dtype=np.int64),
            np.concatenate(parts),
        ]
        outputs = len(layers[-1].bias)
        return NativePolicy("mlp", pack(self.interface, self.scalings, outputs, own))


def _padded(size: int) -> int:
    return -(-size // _LANES) * _LANES


def _check_shapes(layers: Sequence[Layer], interface: Interface) -> None:
    if not layers:
        raise PolicyError("a network needs at least one layer")
    sizes = [layers[0].weight.shape[1], *(len(layer.bias) for layer in layers)]
    for i, layer in enumerate(layers):
        if layer.weight.shape[1] != sizes[i]:
            raise PolicyError(
                f"layer {i} reads {layer.weight.shape[1]} values, the one before has {sizes[i]}"
            )
    if sizes[0] != len(interface.variables):
        raise PolicyError(
            f"the network has {sizes[0]} inputs, the interface {len(interface.variables)} "
            f"variables: {', '.join(interface.variables)}"
        )
    if sizes[-1] != interface.num_actions:
        raise PolicyError(
            f"the network has {sizes[-1]} outputs, the interface {interface.num_actions} "
            f"actions: {', '.join(interface.actions)}"
        )
