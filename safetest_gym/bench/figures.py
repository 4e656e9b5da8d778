"""Figures as SVG files that stand on their own: lines, marks or bars, linear or logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from markupsafe import Markup, escape

from safetest_gym.reports.curves import nice_ticks

__all__ = ["BarFigure", "Figure", "LineFigure"]

_WIDTH, _LEFT, _TOP, _PLOT = 720.0, 64.0, 40.0, 280.0
_RIGHT = 190.0
"""Room for the legend."""

_COLOURS = (
    "#0b6e99",
    "#d1495b",
    "#5b8c2a",
    "#8e5ea2",
    "#c77d0a",
    "#3d3d3d",
    "#1aa79c",
    "#a0522d",
    "#6b7fd7",
    "#b03a8e",
)
_DASHES = ("", "7 3", "2 3")
_STYLE = (
    "text{font:12px sans-serif;fill:#222}.t{font-weight:bold;font-size:14px}"
    ".g{stroke:#ddd}.d{stroke:#999;stroke-dasharray:4 4}"
)

Points = Sequence[tuple[float, float]]


class Figure(Protocol):
    """What can be drawn."""

    @property
    def title(self) -> str: ...

    def svg(self) -> str:
        """The whole file."""
        ...


@dataclass(frozen=True, kw_only=True)
class LineFigure:
    """Points of several series, joined or not.

    Attributes:
        diagonal: draw the line on which both axes are equal.
    """

    title: str
    x_name: str
    y_name: str
    series: Mapping[str, Points]
    log_x: bool = False
    log_y: bool = False
    joined: bool = True
    diagonal: bool = False

    def svg(self) -> str:
        """The whole file."""
        points = [point for line in self.series.values() for point in line]
        x = _Axis.over([p[0] for p in points], log=self.log_x)
        y = _Axis.over([p[1] for p in points], log=self.log_y)
        if self.diagonal:
            x = y = _Axis.over([value for p in points for value in p], log=self.log_x)
        parts = [*_y_grid(y), *_x_grid(x)]
        if self.diagonal:
            parts.append(_path([(x.low, x.low), (x.high, x.high)], (x, y), 'class="d"'))
        for number, (name, line) in enumerate(self.series.items()):
            parts += self._line(number, line, (x, y))
            parts.append(_legend(number, name, line=self.joined))
        parts.append(_name_of_x(self.x_name))
        return _file(self.title, self.y_name, parts, len(self.series))

    def _line(self, number: int, line: Points, axes: tuple[_Axis, _Axis]) -> Iterator[Markup]:
        if self.joined:
            yield _path(line, axes, _stroke(number))
        for px, py in line if not self.joined or len(line) <= 24 else ():
            yield Markup('<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="{}" opacity=".75"/>').format(
                _x(axes[0].place(px)), _y(axes[1].place(py)), _colour(number)
            )


@dataclass(frozen=True, kw_only=True)
class BarFigure:
    """Groups of bars: per group one bar of each series; a bar that is None is left out."""

    title: str
    y_name: str
    groups: Sequence[str]
    series: Mapping[str, Sequence[float | None]]
    log_y: bool = False

    def svg(self) -> str:
        """The whole file."""
        values = [value for bars in self.series.values() for value in bars if value is not None]
        y = _Axis.over(values, log=self.log_y)
        parts = list(_y_grid(y))
        slot = 1.0 / max(1, len(self.groups))
        bar = 0.84 * slot / max(1, len(self.series))
        for number, (name, bars) in enumerate(self.series.items()):
            for group, value in enumerate(bars):
                if value is not None:
                    at = group * slot + 0.08 * slot + number * bar
                    parts.append(_bar(number, (at, bar), y.place(value)))
            parts.append(_legend(number, name, line=False))
        for group, name in enumerate(self.groups):
            place = _x((group + 0.5) * slot)
            parts.append(
                Markup(
                    '<text x="{x:.1f}" y="{y}" text-anchor="end" '
                    'transform="rotate(-30 {x:.1f} {y})">{name}</text>'
                ).format(x=place, y=_TOP + _PLOT + 16, name=name)
            )
        return _file(self.title, self.y_name, parts, len(self.series))


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    ticks: Sequence[float]
    log: bool

    @classmethod
    def over(cls, values: Sequence[float], *, log: bool) -> _Axis:
        """An axis on which all (positive, if logarithmic) values have a place."""
        if log:
            positive = [value for value in values if value > 0] or [1.0]
            first = math.floor(math.log10(min(positive)))
            last = max(first + 1, math.ceil(math.log10(max(positive))))
            step = -(-(last - first) // 8)
            ticks = [10.0**power for power in range(first, last + 1, step)]
            return cls(10.0**first, 10.0**last, ticks, True)
        top = max([0.0, *values]) or 1.0
        scale = 10.0 ** math.floor(math.log10(top)) / 100  # nice_ticks wants steps of 1 or more
        ticks = [scale * tick for tick in nice_ticks(top / scale, 4)]
        if ticks[-1] < top:
            ticks.append(ticks[-1] + ticks[1])
        return cls(0.0, ticks[-1], ticks, False)

    def place(self, value: float) -> float:
        """0 at the low end, 1 at the high end."""
        if self.log:
            low, high = math.log10(self.low), math.log10(self.high)
            return (math.log10(max(value, self.low)) - low) / (high - low)
        return (value - self.low) / (self.high - self.low)


def _x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _y(share: float) -> float:
    return _TOP + _PLOT * (1 - share)


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _stroke(number: int) -> Markup:
    dash = _DASHES[number // len(_COLOURS) % len(_DASHES)]
    return Markup('stroke="{}" stroke-width="2" stroke-dasharray="{}"').format(
        _colour(number), dash
    )


def _path(line: Points, axes: tuple[_Axis, _Axis], style: str) -> Markup:
    points = " ".join(f"{_x(axes[0].place(x)):.1f},{_y(axes[1].place(y)):.1f}" for x, y in line)
    return Markup('<polyline fill="none" points="{}" {}/>').format(points, Markup(style))


def _bar(number: int, place: tuple[float, float], height: float) -> Markup:
    left, width = place
    return Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}"/>').format(
        _x(left),
        _y(height),
        _x(left + width) - _x(left),
        _y(0) - _y(height),
        _colour(number),
    )


def _legend(number: int, name: str, *, line: bool) -> Markup:
    x, y = _WIDTH - _RIGHT + 14, _TOP + 8 + 18 * number
    if line:
        mark = Markup('<line x1="{}" x2="{}" y1="{y}" y2="{y}" {}/>').format(
            x, x + 20, _stroke(number), y=y
        )
    else:
        mark = Markup('<rect x="{}" y="{}" width="11" height="11" fill="{}"/>').format(
            x + 6, y - 6, _colour(number)
        )
    return mark + Markup('<text x="{}" y="{}">{}</text>').format(x + 26, y + 4, name)


def _y_grid(axis: _Axis) -> Iterator[Markup]:
    for tick in axis.ticks:
        y = _y(axis.place(tick))
        yield Markup(
            '<line class="g" x1="{}" x2="{}" y1="{y:.1f}" y2="{y:.1f}"/>'
            '<text x="{}" y="{:.1f}" text-anchor="end">{}</text>'
        ).format(_x(0), _x(1), _x(0) - 6, y + 4, _number(tick), y=y)


def _x_grid(axis: _Axis) -> Iterator[Markup]:
    for tick in axis.ticks:
        yield Markup('<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
            _x(axis.place(tick)), _TOP + _PLOT + 18, _number(tick)
        )


def _name_of_x(name: str) -> Markup:
    return Markup('<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
        _x(0.5), _TOP + _PLOT + 40, name
    )


def _number(value: float) -> str:
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")


def _file(title: str, y_name: str, parts: Sequence[Markup], num_series: int) -> str:
    height = max(_TOP + _PLOT + 90, _TOP + 30 + 18 * num_series)
    return str(
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0f} {h:.0f}" '
            'width="{w:.0f}" height="{h:.0f}" role="img" aria-label="{title}">'
            "<style>{style}</style>"
            '<rect width="100%" height="100%" fill="#fff"/>'
            '<text class="t" x="{left}" y="20">{title}</text>'
            '<text x="16" y="{middle}" text-anchor="middle" '
            'transform="rotate(-90 16 {middle})">{y_name}</text>{body}</svg>'
        ).format(
            w=_WIDTH,
            h=height,
            title=title,
            style=Markup(_STYLE),
            left=_LEFT,
            middle=_TOP + _PLOT / 2,
            y_name=escape(y_name),
            body=Markup("").join(parts),
        )
    )
