"""The form of a policy that kernels call: machine code by address, and one flat buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from safetest_gym.policies.interface import Interface
from safetest_gym.policies.scaling import Scaling

__all__ = ["NativePolicy", "pack"]

Kind = Literal["mlp", "random", "table", "trees"]

_ALIGNMENT = 64
_FIRST_OWN_WORD = 8
_HEADER_WORDS = 16


@dataclass(frozen=True, slots=True, eq=False)
class NativePolicy:
    """``choose(data_address, state, applicable)`` at ``address``, see `kernels.choose`.

    Keep the object as long as its addresses are used; it owns the buffer. The buffer is
    only read, so any number of threads may share it. Pickles: addresses are looked up anew.

    Attributes:
        data: the flat buffer, uint8.
    """

    kind: Kind
    data: NDArray[np.uint8]

    @property
    def address(self) -> int:
        """Where ``int64 choose(void*, const double*, const uint8*)`` is in this process."""
        return _address(self.kind, "choose")

    @property
    def score_address(self) -> int:
        """Where ``void score(void*, const double*, float*)`` is; 0 if it has no scores."""
        return _address(self.kind, "score") if self.kind in ("mlp", "trees") else 0

    @property
    def data_address(self) -> int:
        """Address of the buffer."""
        return int(self.data.ctypes.data)


def pack(
    interface: Interface,
    scalings: Sequence[Scaling],
    outputs: int,
    own: Sequence[int | NDArray[np.generic]],
) -> NDArray[np.uint8]:
    """Lay out a buffer: header, then arrays; an array's header word is its offset in bytes.

    Args:
        own: the kind's words from 8 on (see the kernels' modules), numbers or arrays.
    """
    stages = np.array(
        [[s.shift, s.factor, s.scale, s.low, s.high] for s in scalings], dtype=np.float64
    )
    words: list[int | NDArray[np.generic]] = [
        outputs,
        len(interface.variables),
        np.array(interface.columns, dtype=np.int64),
        len(scalings),
        stages,
        np.array(interface.order, dtype=np.int64),
        interface.num_actions,
        0,
        *own,
    ]
    assert len(words) <= _HEADER_WORDS
    header = np.zeros(_HEADER_WORDS, dtype=np.int64)
    size = header.nbytes
    for i, word in enumerate(words):
        if isinstance(word, np.ndarray):
            header[i] = size
            size += -(-word.nbytes // _ALIGNMENT) * _ALIGNMENT
        else:
            header[i] = word
    buffer = _aligned(size)
    buffer[: header.nbytes] = header.view(np.uint8)
    for i, word in enumerate(words):
        if isinstance(word, np.ndarray):
            flat = np.frombuffer(np.ascontiguousarray(word).tobytes(), dtype=np.uint8)
            buffer[header[i] : header[i] + len(flat)] = flat
    return buffer


def _address(kind: Kind, function: str) -> int:
    home = "table" if kind == "random" else kind
    module = import_module(f"safetest_gym.engine.kernels.{home}")
    return int(getattr(module, f"{kind}_{function}").address)


def _aligned(size: int) -> NDArray[np.uint8]:
    """``size`` zero bytes at a multiple of 64, so vector loads do not cross cache lines."""
    raw = np.zeros(size + _ALIGNMENT, dtype=np.uint8)
    skip = -raw.ctypes.data % _ALIGNMENT
    return raw[skip : skip + size]
