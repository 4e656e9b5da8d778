"""Picture of the beluga domain: jigs between aeroplane, racks and production lines."""

from __future__ import annotations

from collections.abc import Mapping

from PIL import Image

from safetest_gym.envs.rendering.canvas import Canvas, Palette, Point, mix
from safetest_gym.envs.rendering.scene import Scene, Values, bounds, indexed

__all__ = ["draw_beluga", "rack_contents", "swaps"]

CHIP = 24.0


def rack_contents(values: Values, rack: int) -> list[int]:
    """The jigs of a rack from front to back, following the links."""
    found: list[int] = []
    jig = int(values.get(f"front_rack_{rack}", -1))
    while jig >= 0 and jig not in found:
        found.append(jig)
        jig = int(values.get(f"back_jig_{jig}", -1))
    return found


def swaps(values: Values, scene: Scene) -> str:
    """How many swaps there were, and how many there can be, where that is known."""
    done, most = int(values.get("num_swaps", 0)), bounds(scene, "num_swaps", (0, -1))[1]
    return f"{done} of {most:.0f}" if most >= 0 else str(done)


def draw_beluga(values: Values, scene: Scene) -> Image.Image:
    """Draw where every jig is and which one is asked for."""
    canvas = Canvas(scene)
    codes = indexed(values, "jig_")
    jigs, racks = len(codes), len(indexed(values, "rack_load_"))
    where = {code: jig for jig, code in enumerate(codes) if code != jigs + racks + 2}
    delivered = [jig for jig, code in enumerate(codes) if code == jigs + racks + 2]
    _draw_plane(canvas, where, jigs)
    _draw_trailer(canvas, (128, 272), where.get(jigs + racks))
    _draw_racks(canvas, values, racks)
    _draw_factory(canvas, values, where.get(jigs + racks + 1))
    canvas.text((24, 344), "delivered", color=Palette.SLATE, anchor="lm")
    for index, jig in enumerate(delivered):
        _draw_jig(canvas, jig, (122 + index * (CHIP + 6), 344))
    canvas.text((20, 378), f"swaps {swaps(values, scene)}", color=Palette.SLATE, anchor="lm")
    return canvas.finish()


def _draw_jig(canvas: Canvas, jig: int, center: Point) -> None:
    x, y, half = center[0], center[1], CHIP / 2
    color = Palette.SERIES[jig % len(Palette.SERIES)]
    edge = mix(color, Palette.INK, 0.35)
    canvas.rect((x - half, y - half, x + half, y + half), color, outline=edge, radius=5)
    canvas.text((x, y), str(jig), size=16, color=Palette.PANEL)


def _draw_slot(canvas: Canvas, center: Point, jig: int | None) -> None:
    """An empty place, or the jig in it."""
    if jig is not None and jig >= 0:
        _draw_jig(canvas, jig, center)
        return
    x, y, half = center[0], center[1], CHIP / 2
    box = (x - half, y - half, x + half, y + half)
    canvas.rect(box, Palette.PAPER, outline=Palette.RULE, radius=5)


def _draw_plane(canvas: Canvas, where: Mapping[int, int], jigs: int) -> None:
    body, dark = Palette.SKY, mix(Palette.SKY, Palette.BLUE, 0.45)
    left, right = 40.0, 226.0
    canvas.polygon([(left - 14, 70), (left + 20, 70), (left + 46, 112), (left, 112)], dark)
    canvas.rect((left - 6, 92, right, 152), body, outline=dark, radius=28)
    canvas.polygon([(96, 146), (160, 146), (124, 178), (96, 178)], dark)
    canvas.rect((right - 22, 104, right - 10, 114), Palette.PANEL, radius=3)
    step = min(CHIP + 5, (right - left - 40) / max(1, jigs))
    for slot in range(jigs):
        x = 128 + (slot - (jigs - 1) / 2) * step
        _draw_slot(canvas, (x, 124), where.get(slot))
    canvas.text((128, 194), "aeroplane", size=14, color=Palette.MUTED)


def _draw_trailer(canvas: Canvas, center: Point, jig: int | None) -> None:
    x, y = center
    canvas.rect((x - 46, y, x + 46, y + 8), Palette.SLATE, radius=3)
    canvas.line([(x + 46, y + 4), (x + 64, y + 4)], Palette.SLATE, 3)
    for wheel in (-28, 28):
        canvas.circle((x + wheel, y + 13), 7, Palette.INK)
        canvas.circle((x + wheel, y + 13), 2.5, Palette.RULE)
    _draw_slot(canvas, (x, y - CHIP / 2 - 2), jig)
    canvas.text((x, y + 32), "trailer", size=14, color=Palette.MUTED)


def _draw_racks(canvas: Canvas, values: Values, racks: int) -> None:
    height = min(72.0, 236 / max(1, racks))
    for rack in range(racks):
        middle = 100 + height * rack + height / 2 - 16
        contents = rack_contents(values, rack)
        box = (262, middle - 19, 448, middle + 19)
        canvas.rect(box, Palette.PANEL, outline=Palette.RULE, radius=6)
        step = min(CHIP + 5, 170 / max(1, len(contents)))
        for place, jig in enumerate(contents):
            _draw_jig(canvas, jig, (282 + place * step, middle))
        if height > 50:
            free = int(values[f"rack_load_{rack}"])
            note = f"rack {rack}, room for {free} more"
            canvas.text((264, middle + 28), note, size=13, color=Palette.MUTED, anchor="lm")
    canvas.text((264, 68), "front", size=14, color=Palette.MUTED, anchor="lm")
    canvas.text((446, 68), "back", size=14, color=Palette.MUTED, anchor="rm")


def _draw_factory(canvas: Canvas, values: Values, on_truck: int | None) -> None:
    """Production lines and, below them, the truck."""
    asked = int(values.get("next_jig", -1))
    for line, wanted in enumerate(indexed(values, "line_")):
        y = 84.0 + 42 * line
        active = wanted >= 0 and wanted == asked
        edge = Palette.GREEN if active else Palette.RULE
        fill = Palette.MINT if active else Palette.PANEL
        canvas.rect((476, y - 17, 616, y + 17), fill, outline=edge, radius=6)
        canvas.text((486, y), f"line {line}", size=15, color=Palette.SLATE, anchor="lm")
        if wanted >= 0:
            _draw_jig(canvas, wanted, (592, y))
        else:
            canvas.text((606, y), "done", size=15, color=Palette.GREEN, anchor="rm")
    if asked >= 0:
        note = f"next: jig {asked}"
        canvas.text((546, 170), note, size=17, color=Palette.GREEN)
    x, y = 540.0, 284.0
    canvas.rect((x - 44, y - 14, x + 22, y - 6), mix(Palette.BLUE, Palette.INK, 0.4), radius=3)
    canvas.rect((x + 20, y - 40, x + 50, y - 6), Palette.BLUE, radius=6)
    canvas.rect((x + 31, y - 34, x + 45, y - 23), Palette.SKY, radius=3)
    for wheel in (-28, 32):
        canvas.circle((x + wheel, y - 5), 8, Palette.INK)
        canvas.circle((x + wheel, y - 5), 3, Palette.RULE)
    _draw_slot(canvas, (x - 12, y - 28), on_truck)
    canvas.text((x, y + 20), "truck", size=14, color=Palette.MUTED)
