"""A fixed first part of a network that shows it each input through a grid of values.

A network sees little of a number such as the cell of a tile, where every value means
something of its own, or of a real number that matters to a hundredth of its range. The
encoder turns an input into one feature per grid value: 1 there, 0 at the neighbours and
beyond, straight lines between. It is made of ReLU, so policies stay plain networks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from safetest_gym.errors import ConfigError
from safetest_gym.policies.mlp import Layer

__all__ = ["GridEncoder", "encoder_layers", "with_encoder"]

_NAMES = ("ramp_weight", "ramp_bias", "grid_weight", "grid_bias")


class GridEncoder(BaseFeaturesExtractor):
    """A features extractor for Stable-Baselines3; it learns nothing.

    Args:
        grids: per entry of the observation the values of its grid, ascending. Inputs
            below or above the grid count as its ends; a grid of two passes them on.
    """

    def __init__(self, observation_space: spaces.Box, grids: Sequence[Sequence[float]]) -> None:
        if len(grids) != observation_space.shape[0]:
            raise ConfigError(f"{len(grids)} grids for {observation_space.shape[0]} observations")
        ramps, features = encoder_layers(grids)
        super().__init__(observation_space, features_dim=len(features.bias))
        arrays = (ramps.weight, ramps.bias, features.weight, features.bias)
        for name, array in zip(_NAMES, arrays, strict=True):
            # No parameters: the policies of SB3 would initialise them anew.
            self.register_buffer(name, torch.tensor(np.asarray(array)))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Features of a batch."""
        linear = torch.nn.functional.linear
        ramps = linear(observations, self.ramp_weight, self.ramp_bias).relu()  # type: ignore[arg-type]  # buffers
        return linear(ramps, self.grid_weight, self.grid_bias)  # type: ignore[arg-type]  # buffers


def encoder_layers(grids: Sequence[Sequence[float]]) -> tuple[Layer, Layer]:
    """The two layers: one ramp that starts at every grid value, and what they add up to."""
    size = sum(len(grid) for grid in grids)
    starts, bias = np.zeros((size, len(grids))), np.zeros(size)
    sums, base = np.zeros((size, size)), np.zeros(size)
    row = 0
    for column, given in enumerate(grids):
        grid = np.array(given, dtype=np.float64)
        if not grid.size or not np.isfinite(grid).all() or (np.diff(grid) <= 0).any():
            raise ConfigError(f"grid {column} must be ascending finite numbers, got {given}")
        starts[row : row + len(grid), column] = 1
        bias[row : row + len(grid)] = -grid
        base[row] = 1
        for k, width in enumerate(np.diff(grid), start=row):
            # From 0 at this grid value to 1 at the next: out of one feature, into the other.
            step = np.zeros(size)
            step[k], step[k + 1] = 1 / width, -1 / width
            sums[k] -= step
            sums[k + 1] += step
        row += len(grid)
    ramps = Layer(starts.astype(np.float32), bias.astype(np.float32), "relu")
    return ramps, Layer(sums.astype(np.float32), base.astype(np.float32))


def with_encoder(tensors: Mapping[str, Any], layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """The network that reads an encoder's features, with the encoder's tensors before it.

    Two layers with nothing between are one, so this adds only the ramps.
    """
    arrays = [np.asarray(tensors[name].cpu().numpy(), dtype=np.float64) for name in _NAMES]
    ramp_weight, ramp_bias, grid_weight, grid_bias = arrays
    first, *others = layers
    weight = first.weight.astype(np.float64)
    merged = Layer(
        (weight @ grid_weight).astype(np.float32),
        (weight @ grid_bias + first.bias).astype(np.float32),
        first.activation,
    )
    ramps = Layer(ramp_weight.astype(np.float32), ramp_bias.astype(np.float32), "relu")
    return (ramps, merged, *others)
