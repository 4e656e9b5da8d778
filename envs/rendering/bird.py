"""Picture of flappy bird: walls with openings, and a world that goes round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from PIL import Image

from safetest_gym.envs.rendering.canvas import Canvas, Color, Palette, mix
from safetest_gym.envs.rendering.scene import Scene, Values, bounds

__all__ = ["draw_flappy_bird"]

LEFT, RIGHT, TOP, BOTTOM = 24.0, 616.0, 62.0, 354.0
FEATHER: Color = (240, 190, 66)


def draw_flappy_bird(values: Values, scene: Scene) -> Image.Image:
    """Draw the air, the walls and the bird with its trail."""
    canvas = Canvas(scene)
    columns = int(bounds(scene, "bird_x", (0, scene.number("width", 20) - 1))[1]) + 1
    rows = int(bounds(scene, "bird_y", (0, scene.number("height", 10) - 1))[1]) + 1
    size = min((RIGHT - LEFT) / columns, (BOTTOM - TOP) / rows)
    left = 320 - size * columns / 2
    top = (TOP + BOTTOM) / 2 - size * rows / 2
    bottom = top + size * rows
    canvas.rect((left, top, left + size * columns, bottom), Palette.SKY)
    if size >= 8:
        _draw_grid(canvas, (left, top, left + size * columns, bottom), size)
    for column, lowest, free in _walls(scene):
        x = left + column * size
        _draw_pipe(canvas, (x, bottom - lowest * size, x + size, bottom), lip_below=False)
        _draw_pipe(canvas, (x, top, x + size, bottom - (lowest + free) * size), lip_below=True)
    canvas.line([(left, bottom + 2), (left + size * columns, bottom + 2)], Palette.SAND, 4)
    for past in scene.trail[-12:]:
        x = left + (int(past["bird_x"]) + 0.5) * size
        y = bottom - (int(past["bird_y"]) + 0.5) * size
        canvas.circle((x, y), max(1.5, size * 0.1), Palette.PANEL)
    x = left + (int(values["bird_x"]) + 0.5) * size
    y = bottom - (int(values["bird_y"]) + 0.5) * size
    _draw_bird(canvas, x, y, max(5.0, size * 0.44))
    text = f"column {int(values['bird_x'])} of {columns}     row {int(values['bird_y'])} of {rows}"
    canvas.text((20, 378), text, color=Palette.SLATE, anchor="lm")
    return canvas.finish()


def _walls(scene: Scene) -> list[tuple[int, int, int]]:
    """(column, lowest free row, free rows) of every wall."""
    value = scene.parameters.get("walls", ())
    if not isinstance(value, Sequence):
        return []
    return [(wall[0], wall[1], wall[2]) for wall in cast("Sequence[Sequence[int]]", value)]


def _draw_grid(canvas: Canvas, box: tuple[float, float, float, float], size: float) -> None:
    left, top, right, bottom = box
    color = mix(Palette.SKY, Palette.PANEL, 0.4)
    for part in range(1, round((right - left) / size)):
        canvas.line([(left + part * size, top), (left + part * size, bottom)], color, 1)
    for part in range(1, round((bottom - top) / size)):
        canvas.line([(left, top + part * size), (right, top + part * size)], color, 1)


def _draw_pipe(canvas: Canvas, box: tuple[float, float, float, float], *, lip_below: bool) -> None:
    """One half of a wall, with a lip towards the opening."""
    left, top, right, bottom = box
    if bottom - top < 0.5:
        return
    dark = mix(Palette.GREEN, Palette.INK, 0.3)
    canvas.rect((left + 1, top, right - 1, bottom), Palette.GREEN, outline=dark)
    light = mix(Palette.GREEN, Palette.PANEL, 0.4)
    width = right - left
    canvas.rect((left + width * 0.2, top + 1, left + width * 0.34, bottom - 1), light)
    lip = min(8.0, bottom - top)
    span = (bottom - lip, bottom) if lip_below else (top, top + lip)
    canvas.rect((left - 2, span[0], right + 2, span[1]), Palette.GREEN, outline=dark, radius=2)


def _draw_bird(canvas: Canvas, x: float, y: float, r: float) -> None:
    failing = canvas.scene.outcome == "failing"
    color = Palette.RED if failing else FEATHER
    edge = mix(color, Palette.INK, 0.4)
    canvas.polygon(
        [(x + r * 0.8, y - r * 0.15), (x + r * 1.5, y + r * 0.15), (x + r * 0.8, y + r * 0.4)],
        Palette.ORANGE,
    )
    canvas.circle((x, y), r, color, outline=edge, width=1)
    canvas.circle((x + r * 0.38, y - r * 0.32), r * 0.34, Palette.PANEL)
    canvas.circle((x + r * 0.48, y - r * 0.3), r * 0.15, Palette.INK)
    lift = {"up": -0.65, "down": 0.75}.get(canvas.scene.action or "", 0.1)
    wing = [(x - r * 0.2, y), (x - r * 1.05, y + r * lift), (x - r * 0.7, y + r * 0.35)]
    canvas.polygon(wing, edge)
