"""How kernels call a policy: one C signature by raw address, and what lies in its buffer.

``int64 choose(void* data, const double* state, const uint8* applicable)`` returns the
task's number of the action, or -1 where the policy has none (nothing applicable, a state
missing in a table). ``void score(void* data, const double* state, float* out)`` fills one
score per output. ``data`` is position-independent and only read, so threads share it;
scratch space lives on the stack.

The buffer starts with int64 words (`safetest_gym.policies.native` writes them):
0 outputs K, 1 features F, 2 offset of columns int64 (F,), 3 number of scaling stages,
4 offset of stages double (stages, 5, F) as shift, factor, scale, low, high, 5 offset of the output
per task action int64 (A,), 6 number of task actions A; from 8 on what the kind needs.
Offsets are in bytes from the start.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

__all__ = [
    "CHOOSE",
    "SCORE",
    "best_kernel",
    "call_choose",
    "call_score",
    "choose_many_kernel",
    "features_kernel",
    "float32_at",
    "float32_scratch",
    "float64_at",
    "int32_at",
    "int64_at",
    "score_many_kernel",
    "uint8_at",
]

CHOOSE = types.int64(types.int64, types.int64, types.int64)
"""Numba's signature of ``choose``; addresses travel as integers, which the ABI allows."""

SCORE = types.void(types.int64, types.int64, types.int64)

_WORD = ir.IntType(64)


def _pointer_intrinsic(element: Any) -> Any:
    """An intrinsic that reads an integer address as a pointer to ``element``."""

    @intrinsic
    def at(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(element)(types.int64), codegen

    return at


int64_at = _pointer_intrinsic(types.int64)
int32_at = _pointer_intrinsic(types.int32)
uint8_at = _pointer_intrinsic(types.uint8)
float32_at = _pointer_intrinsic(types.float32)
float64_at = _pointer_intrinsic(types.float64)


@intrinsic
def float32_scratch(typingctx: Any, length: Any) -> Any:
    """Room for ``length`` floats on the stack, gone when the calling function returns."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        memory = builder.alloca(ir.FloatType(), args[0])
        memory.align = 64
        return memory

    return types.CPointer(types.float32)(types.int64), codegen


def _call_intrinsic(signature: Any, result: Any) -> Any:
    """An intrinsic that calls the function at its first argument with the other three."""

    @intrinsic
    def call(typingctx: Any, address: Any, data: Any, state: Any, last: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            kind = ir.FunctionType(result, [_WORD, _WORD, _WORD])
            value = builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
            return context.get_dummy_value() if isinstance(result, ir.VoidType) else value

        return signature.return_type(types.int64, *signature.args), codegen

    return call


call_choose = _call_intrinsic(CHOOSE, _WORD)
call_score = _call_intrinsic(SCORE, ir.VoidType())


@njit(nogil=True, error_model="numpy")
def features_kernel(data: int, state: int, out: Any) -> None:
    """Fill out[f] with the float32 features that the policy reads from a state."""
    header = int64_at(data)
    values = float64_at(state)
    size = header[1]
    columns = int64_at(data + header[2])
    stages = header[3]
    if stages == 0:
        for f in range(size):
            out[f] = np.float32(values[columns[f]])
        return
    for s in range(stages):
        table = float64_at(data + header[4] + s * 40 * size)
        for f in range(size):
            value = values[columns[f]] if s == 0 else np.float64(out[f])
            value = (value - table[f]) * table[size + f] / table[2 * size + f]
            value = min(max(value, table[3 * size + f]), table[4 * size + f])
            out[f] = np.float32(value)


@njit(nogil=True, error_model="numpy")
def best_kernel(data: int, applicable: int, scores: Any) -> int:
    """The applicable action with the highest score, ties to the lowest number, or -1."""
    header = int64_at(data)
    mask = uint8_at(applicable)
    order = int64_at(data + header[5])
    best, highest = -1, np.float32(0.0)
    for a in range(header[6]):
        if mask[a] != 0:
            score = scores[order[a]]
            if best < 0 or score > highest:
                best, highest = a, score
    return best


@njit(cache=True, nogil=True)
def choose_many_kernel(address: int, data: int, states: Any, applicable: Any, out: Any) -> int:
    """Fill out[i] with the action in states[i]; return the first i without one, or -1.

    Shapes (n, V) float64, (n, A) uint8 and (n,) int64, all contiguous.
    """
    first = -1
    state, mask = states.ctypes.data, applicable.ctypes.data
    for i in range(out.shape[0]):
        row = call_choose(
            address, data, state + i * 8 * states.shape[1], mask + i * applicable.shape[1]
        )
        out[i] = row
        if row < 0 and first < 0:
            first = i
    return first


@njit(cache=True, nogil=True)
def score_many_kernel(address: int, data: int, states: Any, out: Any) -> None:
    """Fill out[i] with the scores of states[i]; shapes (n, V) float64 and (n, K) float32."""
    state, scores = states.ctypes.data, out.ctypes.data
    for i in range(out.shape[0]):
        call_score(address, data, state + i * 8 * states.shape[1], scores + i * 4 * out.shape[1])
