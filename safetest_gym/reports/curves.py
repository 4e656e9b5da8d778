"""Line charts as SVG that takes its colours from the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

__all__ = ["Chart", "Series", "nice_ticks"]

_WIDTH, _HEIGHT = 400.0, 240.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 14.0, 12.0, 40.0
_MARKERS = 24
"""With more points than this, a line has none."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line; the first of a chart is in the accent colour, all differ in dash and marker."""

    name: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over a common axis.

    Attributes:
        percent: values are fractions, and the axis is from 0 to 100 %.
        marks: places on the axis where something happened, told by ``mark_name``.
    """

    title: str
    x_name: str
    x: Sequence[float]
    series: Sequence[Series]
    percent: bool = True
    marks: Sequence[float] = ()
    mark_name: str = ""

    @property
    def summary(self) -> str:
        """What a reader who cannot see it should know."""
        parts = [
            f"{line.name} from {self.text(line.values[0])} to {self.text(line.values[-1])}"
            for line in self.series
            if line.values
        ]
        if self.marks:
            parts.append(f"{self.mark_name} at {', '.join(f'{x:,.0f}' for x in self.marks)}")
        return f"{self.title}: {'; '.join(parts)}."

    def text(self, value: float) -> str:
        """A value as in the table."""
        return f"{100 * value:.1f} %" if self.percent else f"{value:,.0f}"

    @property
    def rows(self) -> list[list[str]]:
        """The table of the same data."""
        return [
            [f"{x:,.0f}", *(self.text(line.values[i]) for line in self.series)]
            for i, x in enumerate(self.x)
        ]

    def svg(self) -> Markup:
        """The picture."""
        scale = _Scale.of(self)
        parts = [*_axes(self, scale), *(_mark(*scale.place(x, 0)) for x in self.marks)]
        for number, line in reversed(list(enumerate(self.series))):
            parts.append(_line(number, [scale.place(*p) for p in zip(self.x, line.values)]))  # noqa: B905  # a line may end early
        body = Markup("").join(parts)
        return Markup(
            '<svg class="chart" viewBox="0 0 {w:.0f} {h:.0f}" role="img" aria-label="{label}">'
            "{body}</svg>"
        ).format(w=_WIDTH, h=_HEIGHT, label=self.summary, body=body)

    def swatch(self, number: int) -> Markup:
        """The line's sample for the legend."""
        inner = _line(number, [(2, 7), (26, 7)], marker=(14, 7))
        return Markup('<svg class="swatch" viewBox="0 0 28 14" aria-hidden="true">{}</svg>').format(
            inner
        )

    def mark_swatch(self) -> Markup:
        """The sample of a mark for the legend."""
        inner = _mark(14, 14, 0)
        return Markup('<svg class="swatch" viewBox="0 0 28 14" aria-hidden="true">{}</svg>').format(
            inner
        )


@dataclass(frozen=True, slots=True)
class _Scale:
    x: tuple[float, float]
    y: tuple[float, float]
    x_ticks: list[float]
    y_ticks: list[float]

    @classmethod
    def of(cls, chart: Chart) -> _Scale:
        last = max([1.0, *chart.x, *chart.marks])
        x_ticks = nice_ticks(last, 4)
        top = 1.0
        if not chart.percent:
            top = max([1.0, *(value for line in chart.series for value in line.values)])
        y_ticks = [0, 0.25, 0.5, 0.75, 1]
        if not chart.percent:
            y_ticks = nice_ticks(top, 4)
            if y_ticks[-1] < top:
                y_ticks.append(y_ticks[-1] + y_ticks[1])
        return cls((0, last), (0, y_ticks[-1]), x_ticks, y_ticks)

    def place(self, x: float, y: float) -> tuple[float, float]:
        width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        share = (y - self.y[0]) / (self.y[1] - self.y[0])
        return _LEFT + width * (x - self.x[0]) / (self.x[1] - self.x[0]), _TOP + height * (
            1 - share
        )


def nice_ticks(last: float, count: int) -> list[float]:
    """Round numbers from 0 up to at most ``last``, about ``count`` steps apart.

    >>> nice_ticks(120_000, 4)
    [0.0, 50000.0, 100000.0]
    >>> nice_ticks(3, 4)
    [0.0, 1.0, 2.0, 3.0]
    """
    raw = max(1.0, last / count)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.8)
    return [step * number for number in range(int(last / step) + 1)]


def _axes(chart: Chart, scale: _Scale) -> list[Markup]:
    parts = []
    for value in scale.y_ticks:
        left, y = scale.place(0, value)
        label = f"{100 * value:.0f} %" if chart.percent else _compact(value)
        parts.append(
            Markup(
                '<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>'
                '<text x="{}" y="{:.1f}" text-anchor="end">{}</text>'
            ).format(left, _WIDTH - _RIGHT, y, y, left - 6, y + 4, label)
        )
    for value in scale.x_ticks:
        x, _ = scale.place(value, 0)
        text = Markup('<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>')
        parts.append(text.format(x, _HEIGHT - _BOTTOM + 17, _compact(value)))
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    name = Markup('<text class="axis" x="{}" y="{}" text-anchor="middle">{}</text>')
    return [*parts, name.format(middle, _HEIGHT - 4, chart.x_name)]


def _mark(x: float, bottom: float, top: float = _TOP) -> Markup:
    line = Markup('<line class="mark" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{:.1f}"/>')
    return line.format(x, x, top, bottom)


def _compact(value: float) -> str:
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"


def _line(
    number: int, points: list[tuple[float, float]], marker: tuple[float, float] | None = None
) -> Markup:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    markers = [marker] if marker else points if len(points) <= _MARKERS else points[-1:]
    marks = Markup("").join(_marker(number, x, y) for x, y in markers)
    return Markup('<g class="series s{}"><polyline points="{}"/>{}</g>').format(
        escape(number), path, marks
    )


def _marker(number: int, x: float, y: float) -> Markup:
    if number == 0:
        return Markup('<circle cx="{:.1f}" cy="{:.1f}" r="3.4"/>').format(x, y)
    if number == 1:
        return Markup('<rect x="{:.1f}" y="{:.1f}" width="6" height="6"/>').format(x - 3, y - 3)
    shape = f"{x:.1f},{y - 4:.1f} {x + 3.8:.1f},{y + 3:.1f} {x - 3.8:.1f},{y + 3:.1f}"
    return Markup('<polygon points="{}"/>').format(shape)
