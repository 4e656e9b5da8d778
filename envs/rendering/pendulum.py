"""Pictures of the balancing tasks: inverted pendulum and cart-pole."""

from __future__ import annotations

from math import cos, pi, sin

from PIL import Image

from safetest_gym.envs.rendering.canvas import Canvas, Color, Palette, Point, mix
from safetest_gym.envs.rendering.scene import Scene, Values

__all__ = ["draw_cart_pole", "draw_inverted_pendulum"]

_TORQUE = {"rotate_left": -1, "rotate_right": 1, "push_left": -1, "push_right": 1}


def draw_inverted_pendulum(values: Values, scene: Scene) -> Image.Image:
    """Draw the rod over its safe sector."""
    canvas = Canvas(scene)
    hinge, length = (320.0, 292.0), 196.0
    limit = scene.number("max_angle", 0.785)
    _draw_sector(canvas, hinge, length + 22, limit)
    for index, past in enumerate(scene.trail[-6:]):
        tint = mix(Palette.MINT, Palette.BLUE, 0.08 + 0.05 * index)
        canvas.line([hinge, _tip(hinge, length, float(past["angle"]))], tint, 5)
    angle = float(values["angle"])
    color = Palette.RED if abs(angle) >= limit else Palette.BLUE
    tip = _tip(hinge, length, angle)
    canvas.line([hinge, tip], color, 9)
    canvas.circle(tip, 13, color)
    canvas.circle(tip, 5, Palette.PANEL)
    canvas.rect(
        (hinge[0] - 44, hinge[1] + 12, hinge[0] + 44, hinge[1] + 24), Palette.SLATE, radius=4
    )
    canvas.circle(hinge, 14, Palette.SLATE)
    canvas.circle(hinge, 5, Palette.PANEL)
    _draw_push(canvas, (hinge[0], hinge[1] + 44), scene)
    _draw_facts(canvas, values, ("angle", "angular_velocity"))
    return canvas.finish()


def draw_cart_pole(values: Values, scene: Scene) -> Image.Image:
    """Draw cart and pole on the track."""
    canvas = Canvas(scene)
    track, limit = 318.0, scene.number("max_angle", 0.21)
    angle, position = float(values["angle"]), float(values["position"])
    x = 320 + max(-10.0, min(10.0, position)) * 27
    for mark in range(-10, 11, 2):
        canvas.line([(320 + mark * 27, track + 4), (320 + mark * 27, track + 11)], Palette.MUTED, 1)
        canvas.text((320 + mark * 27, track + 21), str(mark), size=14, color=Palette.MUTED)
    canvas.line([(34, track), (606, track)], Palette.RULE, 7)
    hinge, length = (x, track - 44), 176.0
    _draw_sector(canvas, hinge, length + 18, limit)
    color = Palette.RED if abs(angle) >= limit else Palette.ORANGE
    canvas.rect((x - 38, track - 44, x + 38, track - 12), Palette.BLUE, radius=6)
    for wheel in (-22, 22):
        canvas.circle((x + wheel, track - 11), 9, Palette.INK)
        canvas.circle((x + wheel, track - 11), 3, Palette.RULE)
    tip = _tip(hinge, length, angle)
    canvas.line([hinge, tip], color, 8)
    canvas.circle(tip, 4, color)
    canvas.circle(hinge, 6, Palette.PANEL, outline=Palette.INK, width=2)
    _draw_push(canvas, (x, track - 28), scene, reach=52)
    _draw_facts(canvas, values, ("position", "velocity", "angle", "angular_velocity"))
    return canvas.finish()


def _tip(hinge: Point, length: float, angle: float) -> Point:
    """End of a rod; angle 0 is upright, positive leans right."""
    return hinge[0] + length * sin(angle), hinge[1] - length * cos(angle)


def _arc(hinge: Point, radius: float, start: float, end: float) -> list[Point]:
    return [_tip(hinge, radius, start + (end - start) * part / 16) for part in range(17)]


def _draw_sector(canvas: Canvas, hinge: Point, radius: float, limit: float) -> None:
    """Where the rod may be, and a little of where it must not."""
    canvas.polygon([hinge, *_arc(hinge, radius, -limit, limit)], Palette.MINT)
    forbidden = min(pi / 2, limit + 0.5)
    for side in (-1, 1):
        arc = _arc(hinge, radius, side * limit, side * forbidden)
        canvas.polygon([hinge, *arc], Palette.ROSE)
        canvas.dashed(hinge, arc[0], Palette.RED, 1)
    canvas.dashed(hinge, _tip(hinge, radius, 0.0), Palette.GREEN, 1)


def _draw_push(canvas: Canvas, middle: Point, scene: Scene, reach: float = 0) -> None:
    """An arrow for the last action, from the side it pushes from."""
    side = _TORQUE.get(scene.action or "", 0)
    if side:
        start = (middle[0] - side * (reach + 44), middle[1])
        end = (middle[0] - side * reach, middle[1])
        if not reach:
            start, end = (middle[0] - side * 30, middle[1]), (middle[0] + side * 30, middle[1])
        canvas.arrow(start, end, Palette.VIOLET, 5)


def _draw_facts(canvas: Canvas, values: Values, names: tuple[str, ...]) -> None:
    text = "     ".join(f"{name.replace('_', ' ')} {float(values[name]):.3f}" for name in names)
    color: Color = Palette.SLATE
    canvas.text((20, 378), text, color=color, anchor="lm")
