"""Small pictures for TensorBoard: where the faults are, and rates over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from safetest_gym.errors import ConfigError
from safetest_gym.faults import Fault
from safetest_gym.task import Task

__all__ = ["fault_map", "rate_curve"]

Picture = NDArray[np.uint8]

_SIZE, _MARGIN = 320, 24
_LARGEST = 64


def fault_map(
    task: Task, faults: Sequence[Fault], variables: tuple[str, str] | None = None
) -> Picture:
    """How many faults there are per pair of values; the darker the more, (H, W, 3)."""
    states = np.array([fault.state for fault in faults], np.float64)
    names = [variable.name for variable in task.variables]
    chosen = _columns(names, variables, states)
    counts = np.zeros((1, 1))
    if len(states):
        sizes = [min(_LARGEST, len(np.unique(states[:, c]))) for c in chosen]
        counts = np.histogram2d(states[:, chosen[1]], states[:, chosen[0]], sizes[::-1])[0]
    shade = 1 - np.log1p(counts) / max(1e-9, np.log1p(counts.max()))
    cells = np.stack([np.full_like(shade, 1.0), shade, shade], axis=2)[::-1]
    image = Image.fromarray((cells * 255).astype(np.uint8))
    canvas = Image.new("RGB", (_SIZE + _MARGIN, _SIZE + _MARGIN), "white")
    canvas.paste(image.resize((_SIZE, _SIZE), Image.Resampling.NEAREST), (_MARGIN, 0))
    draw = ImageDraw.Draw(canvas)
    draw.text((_MARGIN, _SIZE + 6), f"{names[chosen[0]]} ({len(states)} faults)", fill="black")
    draw.text((2, 2), names[chosen[1]], fill="black")
    return np.array(canvas)


def _columns(names: list[str], wanted: tuple[str, str] | None, states: NDArray[Any]) -> list[int]:
    """Where the two variables are; by default those with most different values."""
    if wanted is not None:
        for name in wanted:
            if name not in names:
                raise ConfigError(f"fault_map: there is no variable {name!r}")
        return [names.index(name) for name in wanted]
    if not len(states):
        return [0, min(1, len(names) - 1)]
    different = [len(np.unique(column)) for column in states.T]
    order = np.argsort(different, kind="stable")[::-1]
    return [int(order[0]), int(order[min(1, len(order) - 1)])]


def rate_curve(steps: Sequence[float], rates: Sequence[float], title: str) -> Picture:
    """A rate between 0 and 1 over training steps, (H, W, 3)."""
    canvas = Image.new("RGB", (_SIZE + 2 * _MARGIN, _SIZE // 2 + 2 * _MARGIN), "white")
    draw = ImageDraw.Draw(canvas)
    height = _SIZE // 2
    draw.rectangle((_MARGIN, _MARGIN, _MARGIN + _SIZE, _MARGIN + height), outline="gray")
    span = max(1.0, float(steps[-1])) if len(steps) else 1.0
    points = [
        (_MARGIN + _SIZE * at / span, _MARGIN + height * (1 - rate))
        for at, rate in zip(steps, rates, strict=True)
    ]
    if len(points) > 1:
        draw.line(points, fill="red", width=2)
    for x, y in points:
        draw.ellipse((x - 2, y - 2, x + 2, y + 2), fill="red")
    draw.text((_MARGIN, 6), f"{title}, up to {span:.0f} steps", fill="black")
    draw.text((2, _MARGIN), "1", fill="black")
    draw.text((2, _MARGIN + height - 8), "0", fill="black")
    return np.array(canvas)
