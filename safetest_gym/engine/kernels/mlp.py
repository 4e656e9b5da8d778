"""Evaluate a plain network for one state: no allocation, inner loops over outputs.

Header words from 8 on: 8 number of layers, 9 widest padded layer, 10 offset of the layer
table int64 (layers, 5): padded inputs, padded outputs, activation (0 identity, 1 ReLU,
2 tanh), first weight (padded inputs, padded outputs), first bias (padded outputs,), both
counted in the float32 numbers at word 11's offset. Padding is zeros, to multiples of 16.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cfunc, njit

from safetest_gym.engine.kernels.choose import (
    CHOOSE,
    SCORE,
    best_kernel,
    features_kernel,
    float32_at,
    float32_scratch,
    int64_at,
)

__all__ = ["mlp_choose", "mlp_score"]

_TANH_END = 9.1


@njit(nogil=True, error_model="numpy", fastmath={"contract"})
def _affine_kernel(x: Any, inputs: int, weights: Any, bias: Any, y: Any, outputs: int) -> None:
    """Fill y = x W + b; shapes (inputs,), (inputs, outputs), (outputs,), (outputs,).

    Four inputs per pass over the outputs, which saves loads and stores of the sums.
    """
    for j in range(outputs):
        y[j] = bias[j]
    for i in range(0, inputs, 4):
        a, b, c, d = x[i], x[i + 1], x[i + 2], x[i + 3]
        row = i * outputs
        for j in range(outputs):
            k = row + j
            total = y[j] + a * weights[k]
            total += b * weights[k + outputs]
            total += c * weights[k + 2 * outputs]
            y[j] = total + d * weights[k + 3 * outputs]


@njit(nogil=True, error_model="numpy", fastmath={"contract"})
def _tanh_kernel(y: Any, size: int) -> None:
    """Replace y by tanh(y).

    A rational approximation in float64 (fitted by us, relative error 1.5e-9), so the
    float32 result is the rounded true value in all but a few cases in a hundred.
    """
    for j in range(size):
        x = min(max(np.float64(y[j]), -_TANH_END), _TANH_END)
        z = x * x
        top = 3.036002772861928e-08 + z * -1.2036729571183168e-11
        top = 2.79139072437829e-05 + z * top
        top = 0.0038636932394968985 + z * top
        top = 0.1367621735804011 + z * top
        top = 0.9999999985608838 + z * top
        bottom = 0.00039304582548045755 + z * 1.2808293216203094e-06
        bottom = 0.027228879984885764 + z * bottom
        bottom = 0.4700954930144742 + z * bottom
        bottom = 1.0 + z * bottom
        y[j] = np.float32(x * top / bottom)


@njit(nogil=True, error_model="numpy")
def _forward_kernel(data: int, x: Any, y: Any) -> bool:
    """Run all layers from x, with y as the other buffer; return whether y has the result."""
    header = int64_at(data)
    table = int64_at(data + header[10])
    numbers = data + header[11]
    in_y = False
    for layer in range(header[8]):
        row = layer * 5
        outputs = table[row + 1]
        weights = float32_at(numbers + 4 * table[row + 3])
        bias = float32_at(numbers + 4 * table[row + 4])
        source, target = (y, x) if in_y else (x, y)
        _affine_kernel(source, table[row], weights, bias, target, outputs)
        if table[row + 2] == 1:
            for j in range(outputs):
                target[j] = max(target[j], np.float32(0.0))
        elif table[row + 2] == 2:
            _tanh_kernel(target, outputs)
        in_y = not in_y
    return in_y


@njit(nogil=True, error_model="numpy")
def _input_kernel(data: int, state: int, x: Any, width: int) -> None:
    """Put the features into x and zeros behind them."""
    features_kernel(data, state, x)
    for f in range(int64_at(data)[1], width):
        x[f] = np.float32(0.0)


@cfunc(CHOOSE, cache=True, nopython=True)
def mlp_choose(data: int, state: int, applicable: int) -> int:
    """The ``choose`` of `safetest_gym.engine.kernels.choose` for networks."""
    width = int64_at(data)[9]
    x, y = float32_scratch(width), float32_scratch(width)
    _input_kernel(data, state, x, width)
    return best_kernel(data, applicable, y if _forward_kernel(data, x, y) else x)


@cfunc(SCORE, cache=True, nopython=True)
def mlp_score(data: int, state: int, out: int) -> None:
    """The ``score`` of `safetest_gym.engine.kernels.choose` for networks."""
    width = int64_at(data)[9]
    x, y = float32_scratch(width), float32_scratch(width)
    _input_kernel(data, state, x, width)
    scores = y if _forward_kernel(data, x, y) else x
    result = float32_at(out)
    for k in range(int64_at(data)[0]):
        result[k] = scores[k]
