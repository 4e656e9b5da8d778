"""Policies that list their states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import PolicyError
from safetest_gym.policies.interface import Interface
from safetest_gym.policies.kernel_policy import KernelPolicy
from safetest_gym.policies.native import NativePolicy, pack

__all__ = ["TablePolicy"]

_LARGEST_EXACT = 2**53


@dataclass(frozen=True, eq=False)
class TablePolicy(KernelPolicy):
    """One action per listed state; asked for another state it raises `ActionError`.

    Attributes:
        rows: int64 or float64, shape (n, F), values of the interface's variables.
        chosen: int64, shape (n,), the output (index into the interface's actions) per row.
    """

    rows: NDArray[np.int64] | NDArray[np.float64]
    chosen: NDArray[np.int64]
    interface: Interface

    def __post_init__(self) -> None:
        rows, chosen = np.array(self.rows), np.array(self.chosen, dtype=np.int64)
        features = len(self.interface.variables)
        if rows.ndim != 2 or rows.shape[1] != features or chosen.shape != (len(rows),):
            raise PolicyError(
                f"rows must have shape (n, {features}) and chosen (n,), "
                f"got {rows.shape} and {chosen.shape}"
            )
        if rows.dtype.kind not in "biuf" or not np.isfinite(rows).all():
            raise PolicyError("rows must be finite numbers")
        exact = (rows <= _LARGEST_EXACT) & (rows >= -_LARGEST_EXACT)
        if rows.dtype.kind != "f" and not exact.all():
            raise PolicyError("rows hold integers beyond 2**53, which no float64 can tell apart")
        rows = rows.astype(np.float64 if rows.dtype.kind == "f" else np.int64)
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < self.interface.num_actions:
            raise PolicyError(f"chosen must be output indices below {self.interface.num_actions}")
        for name, value in (("rows", rows), ("chosen", chosen)):
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        self.native()

    @classmethod
    def from_dict(cls, table: Mapping[tuple[float, ...], str], interface: Interface) -> TablePolicy:
        """From state values (in the interface's variable order) to action names."""
        unknown = sorted(set(table.values()) - set(interface.actions))
        if unknown:
            raise PolicyError(f"the table has unknown actions: {', '.join(unknown)}")
        rows = np.array(list(table), dtype=None if table else np.int64)
        chosen = [interface.actions.index(name) for name in table.values()]
        shape = (len(table), len(interface.variables))
        return cls(
            rows.reshape(shape) if not table else rows, np.array(chosen, np.int64), interface
        )

    def __len__(self) -> int:
        return len(self.chosen)

    def items(self) -> Iterator[tuple[tuple[float, ...], str]]:
        """State values and action name per row."""
        for row, output in zip(self.rows.tolist(), self.chosen.tolist(), strict=True):
            yield tuple(row), self.interface.actions[output]

    def _pack(self) -> NativePolicy:
        from safetest_gym.engine.kernels.table import fill_table_kernel

        slots = 1 << max(4, (2 * len(self.rows)).bit_length())
        actions = np.full(slots, -1, dtype=np.int64)
        keys = np.zeros((slots, self.rows.shape[1]), dtype=np.float64)
        data = pack(self.interface, (), 0, [slots, actions, keys])
        states = np.zeros((len(self.rows), self.interface.num_columns))
        states[:, list(self.interface.columns)] = self.rows
        numbers = np.array(self.interface.numbers, dtype=np.int64)[self.chosen]
        twice = fill_table_kernel(data.ctypes.data, states, numbers)
        if twice >= 0:
            raise PolicyError(f"row {twice}: the state {self.rows[twice].tolist()} has two actions")
        return NativePolicy("table", data)
