"""Picture of the rovers domain: a small map, the rover and its battery."""

from __future__ import annotations

import re

from PIL import Image

from safetest_gym.envs.rendering.canvas import Canvas, Color, Palette, Point, mix
from safetest_gym.envs.rendering.scene import Scene, Values, bounds

__all__ = ["draw_rovers"]

MAP_LEFT, MAP_TOP, MAP_SIZE = 108.0, 74.0, 252.0
_CELL = re.compile(r"rocks_on_cell_x(\d+)_y(\d+)$")
_OBJECTIVE = re.compile(r"image_of_objective_x(\d+)_y(\d+)$")


def draw_rovers(values: Values, scene: Scene) -> Image.Image:
    """Draw the map with samples and objectives, and the rover's state beside it."""
    canvas = Canvas(scene)
    cells = [tuple(map(int, m.groups())) for m in map(_CELL.match, values) if m]
    count = 1 + max((max(cell) for cell in cells), default=0)
    size = MAP_SIZE / count

    def middle(x: float, y: float) -> Point:
        return MAP_LEFT + (x + 0.5) * size, MAP_TOP + MAP_SIZE - (y + 0.5) * size

    for x, y in cells:
        _draw_cell(canvas, middle(x, y), size, values, (x, y))
    for name in values:
        if found := _OBJECTIVE.match(name):
            _draw_objective(canvas, middle(*map(int, found.groups())), size, bool(values[name]))
    _draw_lander(canvas, middle(0, 0), size)
    position = middle(float(values["rover_0_x"]), float(values["rover_0_y"]))
    _draw_rover(canvas, position, scene.outcome == "failing")
    _draw_state(canvas, values, scene)
    return canvas.finish()


def _draw_cell(
    canvas: Canvas, center: Point, size: float, values: Values, cell: tuple[int, ...]
) -> None:
    x, y, half = center[0], center[1], size / 2 - 2
    shade = mix(Palette.SAND, Palette.PAPER, 0.45 if sum(cell) % 2 else 0.3)
    canvas.rect((x - half, y - half, x + half, y + half), shade, radius=6)
    names = f"cell_x{cell[0]}_y{cell[1]}"
    rocks = int(values.get(f"rocks_on_{names}", 0))
    soil = int(values.get(f"soil_on_{names}", 0))
    for index in range(min(rocks, 6)):
        _draw_rock(canvas, (x - half + 13 + index * 15, y + half - 13))
    for index in range(min(soil, 6)):
        _draw_soil(canvas, (x - half + 13 + index * 15, y + half - 30))


def _draw_rock(canvas: Canvas, center: Point) -> None:
    x, y = center
    canvas.polygon(
        [(x - 6, y + 5), (x - 4, y - 4), (x + 2, y - 6), (x + 6, y + 1), (x + 4, y + 5)],
        Palette.SLATE,
    )


def _draw_soil(canvas: Canvas, center: Point) -> None:
    x, y = center
    canvas.polygon(
        [(x - 7, y + 5), (x, y - 5), (x + 7, y + 5)], mix(Palette.ORANGE, Palette.INK, 0.35)
    )


def _draw_objective(canvas: Canvas, center: Point, size: float, done: bool) -> None:
    x, y = center[0] + size / 2 - 20, center[1] - size / 2 + 18
    color = Palette.GREEN if done else Palette.MUTED
    canvas.rect((x - 12, y - 8, x + 12, y + 9), color, radius=3)
    canvas.rect((x - 5, y - 12, x + 5, y - 7), color, radius=2)
    canvas.circle((x, y), 5.5, Palette.PANEL)
    canvas.circle((x, y), 3, color)


def _draw_lander(canvas: Canvas, center: Point, size: float) -> None:
    x, y = center[0] - size / 2 + 22, center[1] - size / 2 + 22
    for side in (-1, 1):
        canvas.line([(x + side * 6, y + 4), (x + side * 13, y + 14)], Palette.SLATE, 2)
    canvas.polygon(
        [(x - 11, y + 5), (x - 7, y - 9), (x + 7, y - 9), (x + 11, y + 5)], Palette.VIOLET
    )
    canvas.polygon(
        [(x + 1, y - 7), (x - 4, y - 1), (x, y - 1), (x - 1, y + 4), (x + 4, y - 3), (x, y - 3)],
        Palette.PANEL,
    )


def _draw_rover(canvas: Canvas, position: Point, failing: bool) -> None:
    x, y = position
    color = Palette.RED if failing else Palette.BLUE
    canvas.line([(x + 8, y - 8), (x + 8, y - 24)], Palette.SLATE, 2)
    canvas.rect((x + 2, y - 29, x + 15, y - 22), Palette.INK, radius=2)
    canvas.polygon(
        [(x - 24, y - 16), (x + 2, y - 16), (x - 2, y - 10), (x - 28, y - 10)], Palette.SLATE
    )
    canvas.rect((x - 22, y - 10, x + 20, y + 6), color, radius=5)
    for wheel in (-16, -1, 14):
        canvas.circle((x + wheel, y + 8), 6.5, Palette.INK)
        canvas.circle((x + wheel, y + 8), 2, Palette.RULE)


def _draw_state(canvas: Canvas, values: Values, scene: Scene) -> None:
    left, right, y = 428.0, 612.0, 116.0
    battery = float(values["battery_rover_0"])
    full = scene.number("battery", bounds(scene, "battery_rover_0", (0, 31))[1] - 1)
    color: Color = Palette.GREEN if battery > full * 0.25 else Palette.ORANGE
    if not 0 <= battery <= full:
        color = Palette.RED
    canvas.text((left, y - 24), "battery", color=Palette.SLATE, anchor="lm")
    canvas.text((right, y - 24), f"{battery:g} of {full:g}", anchor="rm")
    canvas.rect((left, y - 11, right, y + 11), Palette.PANEL, outline=Palette.RULE, radius=5)
    share = max(0.0, min(1.0, battery / full))
    if share > 0.03:
        canvas.rect((left, y - 11, left + (right - left) * share, y + 11), color, radius=5)
    rocks, soil = int(values["rocks_on_rover_0"]), int(values["soil_on_rover_0"])
    canvas.text((left, y + 48), "on board", color=Palette.SLATE, anchor="lm")
    if not rocks + soil:
        canvas.text((left + 74, y + 48), "nothing", color=Palette.MUTED, anchor="lm")
    for index in range(rocks):
        _draw_rock(canvas, (left + 82 + 17 * index, y + 48))
    for index in range(soil):
        _draw_soil(canvas, (left + 82 + 17 * (rocks + index), y + 48))
    _draw_legend(canvas, (left, 244.0))


def _draw_legend(canvas: Canvas, corner: Point) -> None:
    x, y = corner
    _draw_rock(canvas, (x + 10, y))
    canvas.text((x + 32, y), "rock", size=15, color=Palette.SLATE, anchor="lm")
    _draw_soil(canvas, (x + 10, y + 26))
    canvas.text((x + 32, y + 26), "soil", size=15, color=Palette.SLATE, anchor="lm")
    canvas.rect((x, y + 46, x + 20, y + 60), Palette.VIOLET, radius=3)
    canvas.text((x + 32, y + 53), "lander and charger", size=15, color=Palette.SLATE, anchor="lm")
