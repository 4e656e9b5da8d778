"""Picture of blocksworld: towers on a small table, and the hand."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image

from safetest_gym.envs.rendering.canvas import Canvas, Palette, mix
from safetest_gym.envs.rendering.scene import Scene, Values, indexed

__all__ = ["draw_blocksworld", "support_of"]

TABLE = 330.0
IN_HAND, ON_TABLE = -1, -2


def support_of(block: int, code: int) -> int:
    """The block that ``block`` lies on, given its position code; -1 in hand, -2 on table."""
    if code == 0:
        return IN_HAND
    if code == 1:
        return ON_TABLE
    below = code - 2
    return below if below < block else below + 1


def draw_blocksworld(values: Values, scene: Scene) -> Image.Image:
    """Draw the towers, the block in the hand and how full the table is."""
    canvas = Canvas(scene)
    codes = indexed(values, "block_")
    supports = [support_of(block, code) for block, code in enumerate(codes)]
    costs = indexed(values, "cost_block_")
    count = max(1, len(codes))
    size = min(52.0, 560 / count - 8, 226 / count)
    places = [320 + (index - (count - 1) / 2) * (size + 14) for index in range(count)]
    canvas.rect((24, TABLE, 616, TABLE + 10), Palette.SAND, radius=3)
    canvas.rect((24, TABLE + 7, 616, TABLE + 10), mix(Palette.SAND, Palette.INK, 0.25))
    for block, support in enumerate(supports):
        if support == ON_TABLE:
            for row, member in enumerate(_tower(block, supports)):
                y = TABLE - (row + 1) * size
                _draw_block(canvas, member, (places[block], y), size, costs)
    _draw_hand(canvas, supports, size, costs)
    _draw_facts(canvas, values, scene)
    return canvas.finish()


def _tower(base: int, supports: Sequence[int]) -> list[int]:
    tower = [base]
    while len(tower) <= len(supports) and tower[-1] in supports:
        tower.append(supports.index(tower[-1]))
    return tower


def _draw_block(
    canvas: Canvas, block: int, top: tuple[float, float], size: float, costs: Sequence[int]
) -> None:
    """One block; ``top`` is the middle of its upper edge."""
    x, y = top
    color = Palette.SERIES[block % len(Palette.SERIES)]
    box = (x - size / 2 + 1, y + 1, x + size / 2 - 1, y + size - 1)
    canvas.rect(box, color, outline=mix(color, Palette.INK, 0.35), radius=4)
    middle = y + size / 2 - (size * 0.12 if costs else 0)
    canvas.text((x, middle), str(block), size=max(10, int(size * 0.45)), color=Palette.PANEL)
    if costs and size >= 24:
        tint = mix(color, Palette.PANEL, 0.75)
        canvas.text((x, y + size * 0.8), f"cost {costs[block]}", size=11, color=tint)


def _draw_hand(canvas: Canvas, supports: Sequence[int], size: float, costs: Sequence[int]) -> None:
    x, y, half = 320.0, 70.0, size / 2 + 5
    canvas.line([(x, 46), (x, y)], Palette.SLATE, 4)
    canvas.line(
        [(x - half, y + 16), (x - half, y), (x + half, y), (x + half, y + 16)], Palette.SLATE, 4
    )
    if IN_HAND in supports:
        _draw_block(canvas, supports.index(IN_HAND), (x, y + 3), size, costs)


def _draw_facts(canvas: Canvas, values: Values, scene: Scene) -> None:
    used = int(values.get("table-counter", values.get("table_counter", 0)))
    limit = int(scene.number("table_limit", 0))
    text = f"blocks on the table {used}" + (f" of {limit} allowed" if limit else "")
    if "step_cost" in values:
        text += f"     last cost {int(values['step_cost'])}"
    color = Palette.RED if limit and used > limit else Palette.SLATE
    canvas.text((20, 372), text, color=color, anchor="lm")
