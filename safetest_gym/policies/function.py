"""Policies given by a Python function, and policies that choose by chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ActionError
from safetest_gym.policies.interface import Interface, TaskNames
from safetest_gym.policies.kernel_policy import KernelPolicy
from safetest_gym.policies.native import NativePolicy, pack
from safetest_gym.policies.policy import check_batch, no_action_error

__all__ = ["CallablePolicy", "RandomPolicy"]

ActionFunction = Callable[[dict[str, float], tuple[str, ...]], str]
"""From variable values by name and the applicable actions' names to one of these."""


@dataclass(frozen=True, eq=False)
class CallablePolicy:
    """A Python function from a state to an action, called once per state.

    The function must depend on its arguments only; analyses call it once per state and
    remember the answer. It gets plain Python numbers (bool variables as 0 and 1).
    """

    function: ActionFunction
    interface: Interface

    def actions(
        self, states: NDArray[np.generic], applicable: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Actions, shape (n,), of states (n, V) under masks (n, A)."""
        check_batch(self.interface, states, applicable)
        names, columns = self.interface.variables, list(self.interface.columns)
        numbers = dict(zip(self.interface.actions, self.interface.numbers, strict=True))
        by_number = sorted(numbers, key=numbers.__getitem__)
        out = np.empty(len(states), dtype=np.int64)
        for i, (row, mask) in enumerate(zip(states[:, columns], applicable, strict=True)):
            allowed = tuple(name for name, ok in zip(by_number, mask, strict=True) if ok)
            if not allowed:
                raise no_action_error(i, "no action is applicable")
            action = self.function(dict(zip(names, row.tolist(), strict=True)), allowed)
            if action not in allowed:
                raise ActionError(
                    f"row {i}: the function chose {action!r}, applicable: {', '.join(allowed)}"
                )
            out[i] = numbers[action]
        return out

    def bind(self, task: TaskNames) -> CallablePolicy:
        """The same policy with its names looked up in ``task``."""
        return replace(self, interface=self.interface.bind(task))

    def native(self) -> NativePolicy | None:
        """None: only Python can call it."""
        return None


@dataclass(frozen=True, eq=False)
class RandomPolicy(KernelPolicy):
    """An applicable action drawn once per state: a hash of seed and state decides.

    So it is a policy (the same state always gets the same action), unlike a random walk.
    """

    interface: Interface
    seed: int = 0

    def _pack(self) -> NativePolicy:
        seed = int(np.uint64(self.seed % 2**64).view(np.int64))
        return NativePolicy("random", pack(self.interface, (), 0, [seed]))
