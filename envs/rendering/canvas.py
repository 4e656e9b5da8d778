"""A small drawing surface: logical pixels in, an antialiased picture out.

Everything is drawn `SCALE` times larger and reduced at the end, which is faster than an
antialiasing rasteriser and looks the same. The font is the one inside Pillow.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import atan2, cos, sin

from PIL import Image, ImageDraw, ImageFont

from safetest_gym.envs.outcomes import Outcome
from safetest_gym.envs.rendering.scene import Scene

__all__ = ["HEIGHT", "WIDTH", "Canvas", "Color", "Palette", "Point", "mix"]

WIDTH, HEIGHT, SCALE = 640, 400, 2
Color = tuple[int, int, int]
Point = tuple[float, float]


class Palette:
    """The colours all pictures share."""

    PAPER: Color = (247, 248, 250)
    PANEL: Color = (255, 255, 255)
    INK: Color = (33, 46, 60)
    MUTED: Color = (102, 116, 130)
    RULE: Color = (214, 220, 227)
    BLUE: Color = (52, 116, 168)
    SKY: Color = (215, 233, 246)
    ICE: Color = (176, 219, 240)
    ORANGE: Color = (222, 146, 70)
    SAND: Color = (240, 216, 184)
    GREEN: Color = (52, 150, 104)
    MINT: Color = (208, 236, 221)
    RED: Color = (204, 64, 56)
    ROSE: Color = (248, 215, 211)
    VIOLET: Color = (122, 98, 168)
    SLATE: Color = (84, 101, 118)
    SERIES: tuple[Color, ...] = (
        (52, 116, 168),
        (222, 146, 70),
        (52, 150, 104),
        (122, 98, 168),
        (198, 92, 122),
        (66, 160, 168),
        (164, 140, 52),
        (96, 108, 190),
    )


_OUTCOME_COLORS: dict[Outcome, Color] = {
    "failing": Palette.RED,
    "goal": Palette.GREEN,
    "deadlock": Palette.SLATE,
    "truncated": Palette.MUTED,
    "invalid": Palette.ORANGE,
}


def mix(first: Color, second: Color, share: float) -> Color:
    """``first`` with ``share`` (0 to 1) of ``second`` mixed in."""
    r, g, b = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return r, g, b


@lru_cache(maxsize=64)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _scaled(*numbers: float) -> list[float]:
    return [number * SCALE for number in numbers]


class Canvas:
    """A picture under construction; all coordinates are logical pixels from top left."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._image = Image.new("RGB", (WIDTH * SCALE, HEIGHT * SCALE), Palette.PAPER)
        self._draw = ImageDraw.Draw(self._image)
        self._header()

    def _header(self) -> None:
        scene = self.scene
        self.text((20, 25), scene.title, size=19, anchor="lm")
        right = f"step {scene.step}"
        if scene.action is not None:
            right = f"{scene.action}   ·   {right}"
        self.text((620, 25), right, size=17, color=Palette.SLATE, anchor="rm")
        self.line([(20, 44), (620, 44)], Palette.RULE, 1)

    def finish(self) -> Image.Image:
        """Add the frame that tells the outcome and return the picture."""
        outcome = self.scene.outcome
        if outcome is not None:
            color = _OUTCOME_COLORS[outcome]
            for inset in range(6):
                self.rect((inset, inset, WIDTH - inset, HEIGHT - inset), outline=color)
            width = 22 + 8.4 * len(outcome)
            self.rect((WIDTH / 2 - width / 2, 0, WIDTH / 2 + width / 2, 24), color, radius=6)
            label = (WIDTH / 2, 12)
            self.text(label, outcome.upper(), size=16, color=Palette.PANEL, anchor="mm")
        return self._image.reduce(SCALE)

    def line(self, points: Sequence[Point], color: Color, width: float = 2) -> None:
        """A polyline with round joints."""
        flat = [(x * SCALE, y * SCALE) for x, y in points]
        self._draw.line(flat, fill=color, width=max(1, round(width * SCALE)), joint="curve")

    def dashed(self, start: Point, end: Point, color: Color, width: float = 1.5) -> None:
        """A straight dashed line."""
        length = ((end[0] - start[0]) ** 2 + (end[1] - start[1]) ** 2) ** 0.5
        count = max(1, round(length / 10))
        for part in range(count):
            a, b = part / count, (part + 0.55) / count
            first = (start[0] + (end[0] - start[0]) * a, start[1] + (end[1] - start[1]) * a)
            last = (start[0] + (end[0] - start[0]) * b, start[1] + (end[1] - start[1]) * b)
            self.line([first, last], color, width)

    def rect(
        self,
        box: tuple[float, ...],
        fill: Color | None = None,
        *,
        outline: Color | None = None,
        width: float = 1,
        radius: float = 0,
    ) -> None:
        """A rectangle (left, top, right, bottom), with round corners if ``radius``."""
        scaled = _scaled(*box)
        pen = max(1, round(width * SCALE)) if outline is not None else 0
        if radius:
            self._draw.rounded_rectangle(scaled, radius * SCALE, fill, outline, pen)
        else:
            self._draw.rectangle(scaled, fill, outline, pen)

    def circle(
        self,
        center: Point,
        radius: float,
        fill: Color | None = None,
        *,
        outline: Color | None = None,
        width: float = 1.5,
    ) -> None:
        """A disc or ring."""
        (x, y), pen = center, max(1, round(width * SCALE))
        box = _scaled(x - radius, y - radius, x + radius, y + radius)
        self._draw.ellipse(box, fill, outline, pen if outline is not None else 0)

    def polygon(self, points: Sequence[Point], fill: Color) -> None:
        """A filled polygon."""
        self._draw.polygon([(x * SCALE, y * SCALE) for x, y in points], fill=fill)

    def arrow(self, start: Point, end: Point, color: Color, width: float = 3) -> None:
        """A straight arrow; nothing if it has no length."""
        dx, dy = end[0] - start[0], end[1] - start[1]
        length = (dx * dx + dy * dy) ** 0.5
        if length < 1:
            return
        head = min(length, 4 + 2.2 * width)
        angle = atan2(dy, dx)
        neck = (end[0] - head * 0.8 * cos(angle), end[1] - head * 0.8 * sin(angle))
        self.line([start, neck], color, width)
        wings = [
            (end[0] - head * cos(angle + side), end[1] - head * sin(angle + side))
            for side in (0.5, -0.5)
        ]
        self.polygon([end, *wings], color)

    def text(
        self,
        position: Point,
        text: str,
        *,
        size: int = 16,
        color: Color = Palette.INK,
        anchor: str = "mm",
    ) -> None:
        """One line of text; ``anchor`` as in Pillow (horizontal lmr, vertical tmb)."""
        xy = (position[0] * SCALE, position[1] * SCALE)
        self._draw.text(xy, text, fill=color, font=_font(size * SCALE), anchor=anchor)
