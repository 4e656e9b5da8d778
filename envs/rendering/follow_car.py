"""Picture of the follow-car task: two cars, the rear one is ours."""

from __future__ import annotations

from PIL import Image

from safetest_gym.envs.rendering.canvas import Canvas, Color, Palette, mix
from safetest_gym.envs.rendering.scene import Scene, Values

__all__ = ["draw_follow_car"]

ROAD_TOP, ROAD_BOTTOM = 176.0, 262.0
LEAD_X, PIXELS_PER_METRE = 520.0, 9.0


def draw_follow_car(values: Values, scene: Scene) -> Image.Image:
    """Draw the road as seen from the car ahead; the gap is to scale while it fits."""
    canvas = Canvas(scene)
    lead, ego = float(values["lead_position"]), float(values["ego_position"])
    gap = lead - ego
    crashed = gap <= 0
    ego_x = max(70.0, min(LEAD_X, LEAD_X - gap * PIXELS_PER_METRE))
    _draw_road(canvas, lead)
    y = (ROAD_TOP + ROAD_BOTTOM) / 2 + 24
    _draw_car(canvas, LEAD_X + 44, y, Palette.SLATE)
    _draw_car(canvas, ego_x - 44, y, Palette.RED if crashed else Palette.BLUE)
    color = Palette.RED if gap < 5 else Palette.INK
    bracket = 292.0
    if not crashed:
        canvas.line([(ego_x, bracket - 8), (ego_x, bracket + 8)], color, 2)
        canvas.line([(LEAD_X, bracket - 8), (LEAD_X, bracket + 8)], color, 2)
        canvas.line([(ego_x, bracket), (LEAD_X, bracket)], color, 2)
    label = f"gap {gap:.2f}" + (" (not to scale)" if gap * PIXELS_PER_METRE > 450 else "")
    canvas.text(((ego_x + LEAD_X) / 2, bracket + 20), label, size=18, color=color)
    _draw_speed(canvas, float(values["ego_velocity"]), scene.number("lead_velocity", 28.0))
    text = f"own position {ego:.1f}     lead {lead:.1f}"
    canvas.text((20, 378), text, color=Palette.SLATE, anchor="lm")
    return canvas.finish()


def _draw_road(canvas: Canvas, position: float) -> None:
    canvas.rect((0, ROAD_TOP, 640, ROAD_BOTTOM), mix(Palette.SLATE, Palette.RULE, 0.55))
    for edge in (ROAD_TOP + 5, ROAD_BOTTOM - 5):
        canvas.line([(0, edge), (640, edge)], Palette.PANEL, 2)
    offset = (position * PIXELS_PER_METRE) % 64
    x = -offset
    while x < 640:
        canvas.line([(x, ROAD_TOP + 43), (x + 30, ROAD_TOP + 43)], Palette.PANEL, 3)
        x += 64


def _draw_car(canvas: Canvas, x: float, y: float, color: Color) -> None:
    """A car seen from the side; ``x`` is its middle, ``y`` where the wheels stand."""
    roof = [(x - 26, y - 20), (x - 15, y - 36), (x + 12, y - 36), (x + 25, y - 20)]
    canvas.polygon(roof, mix(color, Palette.INK, 0.25))
    canvas.polygon(
        [(x - 19, y - 21), (x - 12, y - 32), (x - 2, y - 32), (x - 2, y - 21)], Palette.SKY
    )
    canvas.polygon(
        [(x + 2, y - 21), (x + 2, y - 32), (x + 10, y - 32), (x + 18, y - 21)], Palette.SKY
    )
    canvas.rect((x - 44, y - 22, x + 44, y - 6), color, radius=6)
    for wheel in (-25, 25):
        canvas.circle((x + wheel, y - 6), 8, Palette.INK)
        canvas.circle((x + wheel, y - 6), 3, Palette.RULE)
    canvas.rect((x + 39, y - 18, x + 44, y - 13), Palette.SAND)


def _draw_speed(canvas: Canvas, own: float, lead: float) -> None:
    """Both speeds as bars on one scale."""
    scale = 330 / max(60.0, own, lead)
    for row, (name, speed, color) in enumerate(
        (("own speed", own, Palette.BLUE), ("lead speed", lead, Palette.SLATE))
    ):
        y = 82.0 + 34 * row
        canvas.text((130, y), name, color=Palette.SLATE, anchor="rm")
        canvas.rect((144, y - 8, 144 + 330, y + 8), Palette.PANEL, outline=Palette.RULE, radius=4)
        if speed * scale > 2:
            canvas.rect((144, y - 8, 144 + speed * scale, y + 8), color, radius=4)
        canvas.text((486, y), f"{speed:.2f}", anchor="lm")
