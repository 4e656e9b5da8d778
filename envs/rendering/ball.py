"""Picture of the bouncing ball, with its recent heights and speeds."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image

from safetest_gym.envs.rendering.canvas import Canvas, Palette, mix
from safetest_gym.envs.rendering.scene import Scene, Values

__all__ = ["draw_bouncing_ball"]

FLOOR, TOP, BALL_X = 350.0, 66.0, 132.0
CHART_LEFT, CHART_RIGHT = 262.0, 616.0
BARS = 48


def draw_bouncing_ball(values: Values, scene: Scene) -> Image.Image:
    """Draw the ball between floor and paddle, and charts of the trail."""
    canvas = Canvas(scene)
    heights = [float(past["height"]) for past in (*scene.trail, values)]
    speeds = [float(past["velocity"]) for past in (*scene.trail, values)]
    peak = max(12.0, *heights[-BARS:])
    _draw_court(canvas, scene, peak)
    _draw_ball(canvas, heights, speeds[-1], peak)
    _draw_bars(canvas, heights[-BARS:], (62.0, 200.0), ("height", peak))
    fastest = max(10.0, *(abs(speed) for speed in speeds[-BARS:]))
    _draw_bars(canvas, speeds[-BARS:], (216.0, 354.0), ("velocity", fastest))
    text = f"height {heights[-1]:.2f}     velocity {speeds[-1]:.2f}"
    canvas.text((20, 378), text, color=Palette.SLATE, anchor="lm")
    return canvas.finish()


def _y(height: float, peak: float) -> float:
    return FLOOR - 16 - (FLOOR - 16 - TOP) * max(0.0, min(1.0, height / peak))


def _draw_court(canvas: Canvas, scene: Scene, peak: float) -> None:
    canvas.rect((24, TOP - 8, 240, FLOOR), Palette.PANEL, outline=Palette.RULE, radius=6)
    lower, upper = scene.number("push_lower", 5.0), scene.number("push_upper", 9.0)
    canvas.rect((26, _y(upper, peak), 238, _y(lower, peak)), Palette.SKY)
    for height in (lower, upper):
        y = _y(height, peak)
        canvas.dashed((26, y), (238, y), Palette.BLUE, 1)
        canvas.text((232, y - 8), f"{height:g}", size=14, color=Palette.BLUE, anchor="rm")
    canvas.line([(24, FLOOR), (240, FLOOR)], Palette.SLATE, 4)


def _draw_ball(canvas: Canvas, heights: Sequence[float], speed: float, peak: float) -> None:
    past = heights[-9:-1]
    for index, height in enumerate(past):
        tint = mix(Palette.PANEL, Palette.ORANGE, 0.12 + 0.5 * index / max(1, len(past)))
        canvas.circle((BALL_X, _y(height, peak)), 5 + 0.9 * index, outline=tint, width=1)
    center = (BALL_X, _y(heights[-1], peak))
    edge = mix(Palette.ORANGE, Palette.INK, 0.35)
    canvas.circle(center, 16, Palette.ORANGE, outline=edge, width=2)
    canvas.circle((center[0] - 5, center[1] - 5), 4, Palette.SAND)
    length = max(-60.0, min(60.0, speed * 5))
    tip = (BALL_X + 34, max(TOP, min(FLOOR - 6, center[1] - length)))
    canvas.arrow((BALL_X + 34, center[1]), tip, Palette.BLUE, 3)


def _draw_bars(
    canvas: Canvas,
    series: Sequence[float],
    span: tuple[float, float],
    label: tuple[str, float],
) -> None:
    """Bars from a zero line: at the bottom if nothing is negative, else in the middle."""
    (top, bottom), (name, peak) = span, label
    canvas.rect(
        (CHART_LEFT, top, CHART_RIGHT, bottom), Palette.PANEL, outline=Palette.RULE, radius=6
    )
    canvas.text((CHART_LEFT + 10, top + 12), name, size=14, color=Palette.MUTED, anchor="lm")
    signed = name == "velocity"
    zero = (top + bottom) / 2 if signed else bottom - 6
    room = (bottom - top) / 2 - 10 if signed else bottom - top - 30
    width = (CHART_RIGHT - CHART_LEFT - 16) / BARS
    for index, value in enumerate(series):
        x = CHART_LEFT + 8 + index * width
        y = zero - room * value / peak
        color = Palette.BLUE if value >= 0 else Palette.VIOLET
        box = (x + 0.5, min(y, zero), x + width - 1, max(y, zero))
        canvas.rect(box, color if index == len(series) - 1 else mix(color, Palette.PANEL, 0.45))
    canvas.line([(CHART_LEFT + 8, zero), (CHART_RIGHT - 8, zero)], Palette.RULE, 1)
