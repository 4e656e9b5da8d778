"""Pictures of the line domains: a truck that must not arrive too fast."""

from __future__ import annotations

from PIL import Image

from safetest_gym.envs.rendering.canvas import Canvas, Palette, Point, mix
from safetest_gym.envs.rendering.scene import Scene, Values, bounds, indexed
from safetest_gym.envs.rendering.vehicles import (
    Pile,
    draw_burst,
    draw_flag,
    draw_pile,
    draw_truck,
)

__all__ = ["draw_line"]

ROAD = 214.0
LEFT, RIGHT = 62.0, 578.0


def draw_line(values: Values, scene: Scene) -> Image.Image:
    """Draw one-way and two-way lines."""
    canvas = Canvas(scene)
    loads = indexed(values, "location_load_")
    step = (RIGHT - LEFT) / max(1, len(loads) - 1)
    places = [LEFT + index * step for index in range(len(loads))]
    speed = int(bounds(scene, "truck_vel_0", (0, 3))[1])
    both_ways = bounds(scene, "truck_vel_0", (0, 3))[0] < 0
    _draw_road(canvas, places, speed, both_ways)
    for index in (int(place) for place in scene.numbers("icy")):
        if 0 <= index < len(places):
            _draw_ice(canvas, places[index], step)
    draw_flag(canvas, (places[-1] + min(14, step * 0.35), ROAD - 4), 78)
    size = 13.0 if step >= 50 else 11.0
    columns = max(1, min(3, int((step - 4) // (size + 2))))
    for index, (x, load) in enumerate(zip(places, loads, strict=True)):
        radius = 9 if step >= 24 else 6
        canvas.circle((x, ROAD), radius, Palette.PANEL, outline=Palette.SLATE, width=2)
        if index % max(1, round(20 / step)) == 0 or index == len(places) - 1:
            canvas.text((x, ROAD), str(index), size=12 if step >= 24 else 8, color=Palette.SLATE)
        draw_pile(canvas, Pile((x, ROAD + 32), columns=columns, size=size, hanging=True), load)
    _draw_moving_truck(canvas, values, places)
    _draw_facts(canvas, values, loads)
    return canvas.finish()


def _draw_road(canvas: Canvas, places: list[float], speed: int, both_ways: bool) -> None:
    """The road; the redder, the slower the truck has to be."""
    canvas.line([(LEFT - 24, ROAD), (RIGHT + 24, ROAD)], Palette.RULE, 9)
    half = (RIGHT - LEFT) / max(1, len(places) - 1) / 2
    zones = [(len(places) - 1 - back, back + 1) for back in range(min(speed, len(places)))]
    if both_ways:
        zones += [(index, index + 1) for index in range(min(speed, len(places)))]
    for index, bound in zones:
        color = mix(Palette.RULE, Palette.RED, 0.62 * (speed + 1 - bound) / speed)
        x = places[index]
        canvas.line([(x - half, ROAD), (x + half, ROAD)], color, 9)
        note = f"v<{bound}" if half < 16 else f"|v| < {bound}" if both_ways else f"v < {bound}"
        if half >= 10:
            canvas.text((x, ROAD + 19), note, size=14, color=mix(color, Palette.INK, 0.3))


def _draw_ice(canvas: Canvas, x: float, step: float) -> None:
    half = min(24.0, step * 0.45)
    canvas.rect((x - half, ROAD - 8, x + half, ROAD + 8), Palette.ICE, radius=8)
    canvas.line([(x - half + 7, ROAD - 4), (x - half + 15, ROAD - 4)], Palette.PANEL, 2)
    canvas.line([(x + half - 16, ROAD + 4), (x + half - 7, ROAD + 4)], Palette.PANEL, 2)


def _draw_moving_truck(canvas: Canvas, values: Values, places: list[float]) -> None:
    position, velocity = int(values.get("truck_0", 0)), int(values.get("truck_vel_0", 0))
    crashed = int(values.get("aux_vel", 0)) <= -1
    x, y = places[min(max(position, 0), len(places) - 1)], ROAD - 12
    draw_truck(canvas, (x, y), int(values.get("truck_load_0", 0)), crashed=crashed)
    if crashed:
        draw_burst(canvas, (x + (42 if velocity >= 0 else -42), y - 20))
    if int(values.get("parked_0", 0)):
        _draw_parking_sign(canvas, (x, y - 108))
    elif velocity:
        side = 1 if velocity > 0 else -1
        start = (x + side * 6, y - 92)
        canvas.arrow(start, (start[0] + velocity * 19 + side * 12, start[1]), Palette.BLUE, 4)
        canvas.text((x - side * 8, y - 92), f"{abs(velocity)}", size=19, color=Palette.BLUE)


def _draw_parking_sign(canvas: Canvas, center: Point) -> None:
    x, y = center
    canvas.rect((x - 12, y - 12, x + 12, y + 12), Palette.BLUE, radius=4)
    canvas.text((x, y), "P", size=19, color=Palette.PANEL)


def _draw_facts(canvas: Canvas, values: Values, loads: list[int]) -> None:
    carried = int(values.get("truck_load_0", 0))
    parts = [
        f"delivered {loads[-1]} of {sum(loads) + carried}",
        f"on truck {carried}",
        f"velocity {int(values.get('truck_vel_0', 0))}",
    ]
    canvas.text((20, 378), "     ".join(parts), size=16, color=Palette.SLATE, anchor="lm")
