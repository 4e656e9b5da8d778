"""Picture of flight diversion: a box of air seen from above and from the side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from PIL import Image

from safetest_gym.envs.rendering.canvas import Canvas, Color, Palette, Point, mix
from safetest_gym.envs.rendering.scene import Scene, Values, bounds

__all__ = ["draw_flight_diversion"]

AXES = ("x", "y", "z")
Box = Sequence[Sequence[float]]
SIZE, TOP = 252.0, 78.0


def draw_flight_diversion(values: Values, scene: Scene) -> Image.Image:
    """Draw the aeroplane, its path, dangers and goals in two projections."""
    canvas = Canvas(scene)
    _draw_view(canvas, values, (24.0, TOP), (0, 1))
    _draw_view(canvas, values, (300.0, TOP), (0, 2))
    canvas.text((150, 61), "from above", size=15, color=Palette.SLATE)
    canvas.text((426, 61), "from the side", size=15, color=Palette.SLATE)
    _draw_fuel(canvas, float(values["fuel"]), bounds(scene, "fuel", (0, 7))[1])
    speeds = ", ".join(f"{float(values[f'vel_{axis}']):.2f}" for axis in AXES)
    places = ", ".join(f"{float(values[f'pos_{axis}']):.2f}" for axis in AXES)
    text = f"position {places}     velocity {speeds}"
    canvas.text((20, 378), text, color=Palette.SLATE, anchor="lm")
    return canvas.finish()


def _boxes(scene: Scene, name: str) -> tuple[Box, ...]:
    value = scene.parameters.get(name, ())
    return tuple(cast("Sequence[Box]", value)) if isinstance(value, Sequence) else ()


def _draw_view(canvas: Canvas, values: Values, corner: Point, axes: tuple[int, int]) -> None:
    """One projection; boxes the aeroplane could enter at its unseen coordinate are darker."""
    scene = canvas.scene
    spans = [bounds(scene, f"pos_{AXES[axis]}", (-5.0, 5.0)) for axis in axes]
    left, top = corner

    def at(first: float, second: float) -> Point:
        (a, b), (c, d) = spans
        return left + SIZE * (first - a) / (b - a), top + SIZE * (d - second) / (d - c)

    canvas.rect((left, top, left + SIZE, top + SIZE), Palette.PANEL, outline=Palette.RULE)
    _draw_grid(canvas, at, spans)
    unseen = 3 - sum(axes)
    depth = float(values[f"pos_{AXES[unseen]}"])
    for name, color in (("goals", Palette.GREEN), ("danger", Palette.RED)):
        for box in _boxes(scene, name):
            level = box[unseen][0] <= depth <= box[unseen][1]
            (x0, x1), (y0, y1) = box[axes[0]], box[axes[1]]
            (a, b), (c, d) = at(x0, y1), at(x1, y0)
            fill = mix(color, Palette.PANEL, 0.35 if level else 0.78)
            canvas.rect((a, b, c, d), fill, outline=color, width=1.5)
    names = [(f"pos_{AXES[axis]}", f"vel_{AXES[axis]}") for axis in axes]
    states = (*scene.trail, values)
    path = [at(float(s[names[0][0]]), float(s[names[1][0]])) for s in states]
    if len(path) > 1:
        canvas.line(path, Palette.ICE, 2)
    for point in path[:-1]:
        canvas.circle(point, 2.5, Palette.BLUE)
    heading = (float(values[names[0][1]]), -float(values[names[1][1]]))
    _draw_plane(canvas, path[-1], heading)
    canvas.text((left + SIZE - 8, top + SIZE - 9), AXES[axes[0]], size=14, color=Palette.MUTED)
    canvas.text((left + 8, top + 9), AXES[axes[1]], size=14, color=Palette.MUTED)


def _draw_grid(
    canvas: Canvas, at: Callable[[float, float], Point], spans: Sequence[tuple[float, float]]
) -> None:
    color: Color = mix(Palette.RULE, Palette.PANEL, 0.55)
    (a, b), (c, d) = spans
    for part in range(1, 10):
        x, y = a + (b - a) * part / 10, c + (d - c) * part / 10
        canvas.line([at(x, c), at(x, d)], color, 1)
        canvas.line([at(a, y), at(b, y)], color, 1)


def _draw_plane(canvas: Canvas, center: Point, heading: Point) -> None:
    """An arrowhead along its velocity, or a disc when it stands still in this view."""
    x, y = center
    color = Palette.RED if canvas.scene.outcome == "failing" else Palette.BLUE
    speed = (heading[0] ** 2 + heading[1] ** 2) ** 0.5
    if speed < 1e-9:
        canvas.circle(center, 7, color)
        return
    u, v = heading[0] / speed, heading[1] / speed
    tip = (x + 12 * u, y + 12 * v)
    wings = [(x - 8 * u - 9 * s * v, y - 8 * v + 9 * s * u) for s in (1, -1)]
    canvas.polygon([tip, wings[0], (x - 3 * u, y - 3 * v), wings[1]], color)


def _draw_fuel(canvas: Canvas, fuel: float, full: float) -> None:
    left, right, top, bottom = 580.0, 608.0, TOP, TOP + SIZE
    share = max(0.0, min(1.0, fuel / full)) if full > 0 else 0.0
    color = Palette.GREEN if share > 0.3 else Palette.ORANGE if share > 0 else Palette.RED
    canvas.text((594, 61), "fuel", size=15, color=Palette.SLATE)
    canvas.rect((left, top, right, bottom), Palette.PANEL, outline=Palette.RULE, radius=6)
    if share > 0.02:
        canvas.rect((left, bottom - (bottom - top) * share, right, bottom), color, radius=6)
    canvas.text((594, bottom + 14), f"{fuel:g}", size=16)
