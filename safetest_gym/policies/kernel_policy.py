"""What policies with a native form share: batches run through the same code as kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import PolicyError
from safetest_gym.policies.interface import Interface, TaskNames
from safetest_gym.policies.native import NativePolicy
from safetest_gym.policies.policy import check_batch, no_action_error

__all__ = ["KernelPolicy", "native_scores", "policy_action_batch"]


class KernelPolicy:
    """Base of frozen dataclasses with an ``interface`` field that say how to `_pack`."""

    interface: Interface

    def _pack(self) -> NativePolicy:
        raise NotImplementedError

    def native(self) -> NativePolicy:
        """Its form for kernels, packed at the first call and then kept."""
        if "_native" not in self.__dict__:
            self.__dict__["_native"] = self._pack()
        kept: NativePolicy = self.__dict__["_native"]
        return kept

    def bind(self, task: TaskNames) -> Self:
        """The same policy with its names looked up in ``task``."""
        bound: Self = replace(self, interface=self.interface.bind(task))  # type: ignore[type-var]  # subclasses are dataclasses
        return bound

    def actions(
        self, states: NDArray[np.generic], applicable: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Actions, shape (n,), of states (n, V) under masks (n, A)."""
        check_batch(self.interface, states, applicable)
        return policy_action_batch(self.native(), states, applicable)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_native"}


def policy_action_batch(
    native: NativePolicy, states: NDArray[np.generic], applicable: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Actions of a batch, one kernel call; states (n, V), masks (n, A)."""
    from safetest_gym.engine.kernels.choose import choose_many_kernel

    values = np.ascontiguousarray(states, dtype=np.float64)
    mask = np.ascontiguousarray(applicable, dtype=np.bool_).view(np.uint8)
    out = np.empty(len(values), dtype=np.int64)
    first = choose_many_kernel(native.address, native.data_address, values, mask, out)
    if first >= 0:
        if mask[first].any():
            raise no_action_error(first, f"the {native.kind} has no applicable action for it")
        raise no_action_error(first, "no action is applicable")
    return out


def native_scores(
    native: NativePolicy, states: NDArray[np.generic], outputs: int
) -> NDArray[np.float32]:
    """Scores, shape (n, outputs), in output order."""
    from safetest_gym.engine.kernels.choose import score_many_kernel

    if not native.score_address:
        raise PolicyError(f"a {native.kind} policy has no scores")
    values = np.ascontiguousarray(states, dtype=np.float64)
    out = np.empty((len(values), outputs), dtype=np.float32)
    score_many_kernel(native.score_address, native.data_address, values, out)
    return out
