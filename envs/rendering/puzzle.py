"""Picture of the sliding puzzle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from PIL import Image

from safetest_gym.envs.rendering.canvas import Canvas, Palette, mix
from safetest_gym.envs.rendering.scene import Scene, Values

__all__ = ["draw_n_puzzle"]

TOP, SIZE = 62.0, 294.0
Box = tuple[float, float, float, float]


def draw_n_puzzle(values: Values, scene: Scene) -> Image.Image:
    """Draw the board; a tile on a cell forbidden to it is red."""
    canvas = Canvas(scene)
    tiles: dict[int, int] = {}
    while f"tile_{len(tiles) + 1}" in values:
        tiles[len(tiles) + 1] = int(values[f"tile_{len(tiles) + 1}"])
    cells = len(tiles) + 1
    width = int(scene.number("width", round(cells**0.5)))
    height = -(-cells // width)
    size = min(SIZE / height, 560 / width)
    left, top = 320 - size * width / 2, TOP + (SIZE - size * height) / 2
    frame = (left - 8, top - 8, left + size * width + 8, top + size * height + 8)
    canvas.rect(frame, Palette.RULE, radius=10)
    forbidden = _forbidden(scene)
    for cell in range(cells):
        row, column = divmod(cell, width)
        x, y = left + column * size, top + row * size
        box = (x + 3, y + 3, x + size - 3, y + size - 3)
        canvas.rect(box, mix(Palette.RULE, Palette.SLATE, 0.12), radius=6)
        _draw_note(canvas, box, [tile for tile, bad in forbidden if bad == cell])
    for tile, cell in tiles.items():
        row, column = divmod(cell, width)
        x, y = left + column * size, top + row * size
        box = (x + 3, y + 3, x + size - 3, y + size - 3)
        _draw_tile(canvas, box, tile, (tile, cell) in forbidden)
        if f"cost_tile_{tile}" in values:
            color = mix(Palette.BLUE, Palette.PANEL, 0.75)
            note = f"cost {int(values[f'cost_tile_{tile}'])}"
            canvas.text((x + size / 2, y + size * 0.8), note, size=14, color=color)
        _draw_note(canvas, box, [other for other, bad in forbidden if bad == cell], light=True)
    home = sum(cell == tile - 1 for tile, cell in tiles.items())
    text = f"at home {home} of {len(tiles)}"
    if "step_cost" in values:
        text += f"     last cost {int(values['step_cost'])}"
    canvas.text((20, 378), text, color=Palette.SLATE, anchor="lm")
    return canvas.finish()


def _forbidden(scene: Scene) -> list[tuple[int, int]]:
    """Pairs of a tile and a cell it must not be on."""
    value = scene.parameters.get("forbidden") or ()
    return [(pair[0], pair[1]) for pair in cast("Sequence[Sequence[int]]", value)]


def _draw_tile(canvas: Canvas, box: Box, tile: int, wrong: bool) -> None:
    size = box[2] - box[0]
    color = Palette.RED if wrong else Palette.BLUE
    canvas.rect(box, color, outline=mix(color, Palette.INK, 0.35), radius=6)
    middle = ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2 - 2)
    canvas.text(middle, str(tile), size=max(12, int(size * 0.4)), color=Palette.PANEL)


def _draw_note(canvas: Canvas, box: Box, tiles: Sequence[int], *, light: bool = False) -> None:
    """Which tiles must not come here, in the cell's corner."""
    if tiles:
        color = mix(Palette.RED, Palette.PANEL, 0.75) if light else Palette.RED
        note = "not " + ", ".join(map(str, tiles))
        canvas.text((box[0] + 7, box[1] + 10), note, size=14, color=color, anchor="lm")
