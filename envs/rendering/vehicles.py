"""Things several pictures share: stacks of packages, trucks, flags."""

from __future__ import annotations

from dataclasses import dataclass

from safetest_gym.envs.rendering.canvas import Canvas, Palette, Point, mix

__all__ = ["Pile", "draw_burst", "draw_flag", "draw_pile", "draw_truck"]


@dataclass(frozen=True, slots=True)
class Pile:
    """Where packages are stacked: rows grow from ``base`` up, or down if ``hanging``."""

    base: Point
    columns: int = 3
    rows: int = 5
    size: float = 11
    hanging: bool = False


def draw_pile(canvas: Canvas, pile: Pile, count: int) -> None:
    """Draw ``count`` packages; what does not fit is said in a number."""
    gap = pile.size + 2
    shown = min(count, pile.columns * pile.rows)
    left = pile.base[0] - pile.columns * gap / 2 + 1
    for index in range(shown):
        row, column = divmod(index, pile.columns)
        x = left + column * gap
        y = pile.base[1] + row * gap if pile.hanging else pile.base[1] - (row + 1) * gap
        box = (x, y, x + pile.size, y + pile.size)
        canvas.rect(box, Palette.ORANGE, outline=mix(Palette.ORANGE, Palette.INK, 0.35))
        middle = y + pile.size * 0.42
        canvas.line([(x, middle), (x + pile.size, middle)], Palette.SAND, 1)
    if count > shown:
        rows = pile.rows
        offset = rows * gap + 8 if pile.hanging else -rows * gap - 8
        canvas.text((pile.base[0], pile.base[1] + offset), f"{count}", size=15)


def draw_truck(
    canvas: Canvas, position: Point, load: int, *, crashed: bool = False, scale: float = 1.5
) -> None:
    """A truck whose wheels stand at ``position``, its packages on the bed."""
    x, y = position
    body = Palette.RED if crashed else Palette.BLUE
    dark = mix(body, Palette.INK, 0.4)

    def box(left: float, top: float, right: float, bottom: float) -> tuple[float, ...]:
        return x + left * scale, y + top * scale, x + right * scale, y + bottom * scale

    canvas.rect(box(-26, -13, 12, -7), dark, radius=2 * scale)
    canvas.rect(box(10, -27, 27, -7), body, radius=4 * scale)
    canvas.rect(box(17, -23, 24, -16), Palette.SKY, radius=2 * scale)
    for wheel in (-17, 17):
        center = (x + wheel * scale, y - 5.5 * scale)
        canvas.circle(center, 5.5 * scale, Palette.INK)
        canvas.circle(center, 2 * scale, Palette.RULE)
    pile = Pile((x - 9 * scale, y - 13.5 * scale), columns=3, rows=3, size=9 * scale)
    draw_pile(canvas, pile, load)


def draw_flag(canvas: Canvas, foot: Point, height: float = 44) -> None:
    """The flag on the place where everything has to go."""
    x, y = foot
    canvas.line([(x, y), (x, y - height)], Palette.SLATE, 2)
    top = y - height
    canvas.polygon([(x + 1, top), (x + 21, top + 7), (x + 1, top + 14)], Palette.GREEN)


def draw_burst(canvas: Canvas, center: Point, radius: float = 17) -> None:
    """Something has crashed here."""
    x, y = center
    for dx, dy in ((1, 0), (0, 1), (0.7, 0.7), (0.7, -0.7)):
        ends = [(x - dx * radius, y - dy * radius), (x + dx * radius, y + dy * radius)]
        canvas.line(ends, Palette.RED, 3)
    canvas.circle(center, radius * 0.52, Palette.ORANGE)
    canvas.circle(center, radius * 0.26, Palette.PANEL)
