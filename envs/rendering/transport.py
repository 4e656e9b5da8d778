"""Picture of the transport domain: a road whose last piece is a weak bridge."""

from __future__ import annotations

from PIL import Image

from safetest_gym.envs.rendering.canvas import Canvas, Palette, mix
from safetest_gym.envs.rendering.scene import Scene, Values, indexed
from safetest_gym.envs.rendering.vehicles import (
    Pile,
    draw_burst,
    draw_flag,
    draw_pile,
    draw_truck,
)

__all__ = ["draw_transport"]

ROAD, BOTTOM = 200.0, 350.0
LEFT, RIGHT, GAP = 58.0, 572.0, 112.0
GRASS = mix(Palette.MINT, Palette.PAPER, 0.25)


def draw_transport(values: Values, scene: Scene) -> Image.Image:
    """Draw road, bridge, packages and truck."""
    canvas = Canvas(scene)
    loads = indexed(values, "location_load_")
    places = _places(len(loads))
    overloaded = int(values.get("last_capacity_diff", 0)) < 0
    _draw_land(canvas, places, int(scene.number("bridge", 1)), overloaded)
    draw_flag(canvas, (places[-1] + 26, ROAD - 4), 70)
    step = places[1] - places[0] if len(places) > 2 else 80.0
    columns = max(1, min(3, int((step - 4) // 15)))
    for index, (x, load) in enumerate(zip(places, loads, strict=True)):
        canvas.circle((x, ROAD), 9, Palette.PANEL, outline=Palette.SLATE, width=2)
        canvas.text((x, ROAD), str(index), size=14, color=Palette.SLATE)
        draw_pile(
            canvas, Pile((x, ROAD + 24), columns=columns, rows=8, size=13, hanging=True), load
        )
    truck = min(max(int(values.get("truck_0", 0)), 0), len(places) - 1)
    carried = int(values.get("truck_load_0", 0))
    draw_truck(canvas, (places[truck], ROAD - 12), carried, crashed=overloaded)
    if overloaded:
        draw_burst(canvas, ((places[-2] + places[-1]) / 2, ROAD + 12), 18)
    facts = f"delivered {loads[-1]} of {sum(loads) + carried}     on truck {carried}     "
    facts += f"spare capacity of the last road {int(values.get('last_capacity_diff', 0))}"
    canvas.text((20, 378), facts, color=Palette.SLATE, anchor="lm")
    return canvas.finish()


def _places(count: int) -> list[float]:
    """Locations spread over the land, the last one behind the water."""
    shore = RIGHT - GAP
    step = (shore - LEFT) / max(1, count - 2)
    return [LEFT + index * step for index in range(count - 1)] + [RIGHT]


def _draw_land(canvas: Canvas, places: list[float], capacity: int, broken: bool) -> None:
    left, right = places[-2] + 24, places[-1] - 24
    canvas.rect((left, ROAD + 34, right, BOTTOM), Palette.SKY)
    for row in range(4):
        y = ROAD + 56 + 24 * row
        for x in range(int(left) + 6 + 10 * (row % 2), int(right) - 14, 24):
            canvas.line([(x, y), (x + 6, y - 3), (x + 12, y)], Palette.ICE, 1.5)
    canvas.rect((0, ROAD, left, BOTTOM), GRASS)
    canvas.rect((right, ROAD, 640, BOTTOM), GRASS)
    canvas.line([(0, ROAD), (left, ROAD)], Palette.RULE, 9)
    canvas.line([(right, ROAD), (640, ROAD)], Palette.RULE, 9)
    color = Palette.RED if broken else Palette.SLATE
    canvas.line([(left, ROAD), (right, ROAD)], color, 7)
    middle = (left + right) / 2
    arch = [(left + (right - left) * t / 12, ROAD + 30 - 26 * _bump(t / 12)) for t in range(13)]
    canvas.line(arch, color, 3)
    for t in (2, 4, 6, 8, 10):
        canvas.line([arch[t], (arch[t][0], ROAD)], color, 2)
    canvas.rect((middle - 22, ROAD + 44, middle + 22, ROAD + 64), Palette.PANEL, radius=5)
    canvas.text((middle, ROAD + 54), f"max {capacity}", size=15, color=color)


def _bump(share: float) -> float:
    return 4 * share * (1 - share)
