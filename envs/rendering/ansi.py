"""Text pictures: the generic table, and a line or grid where that says more."""

from __future__ import annotations

from collections.abc import Callable

from safetest_gym.envs.rendering.blocksworld import support_of
from safetest_gym.envs.rendering.scene import Scene, Values, indexed
from safetest_gym.envs.rendering.table import format_value

__all__ = ["draw_ansi"]


def draw_ansi(values: Values, scene: Scene, picture: str = "table") -> str:
    """The state as text: a headline, a sketch if the picture has one, all variables."""
    head = f"{scene.title}  step {scene.step}"
    if scene.action is not None:
        head += f"  {scene.action}"
    if scene.outcome is not None:
        head += f"  [{scene.outcome.upper()}]"
    sketch = _SKETCHES.get(picture)
    parts = [head, *(sketch(values) if sketch else ()), *_table(values, scene)]
    return "\n".join(parts) + "\n"


def _table(values: Values, scene: Scene) -> list[str]:
    declared = {variable.name: variable for variable in scene.variables}
    width = max(map(len, values), default=0)
    return [
        f"  {name:<{width}}  {format_value(value, declared.get(name))}"
        for name, value in values.items()
    ]


def _line(values: Values) -> list[str]:
    """One cell per location: packages, and the truck in brackets with its load."""
    truck, carried = int(values.get("truck_0", -1)), int(values.get("truck_load_0", 0))
    cells = [
        f"[{load}+{carried}]" if place == truck else f" {load} "
        for place, load in enumerate(indexed(values, "location_load_"))
    ]
    velocity = int(values.get("truck_vel_0", 0))
    arrow = f"  {'>' * velocity if velocity > 0 else '<' * -velocity}" if velocity else ""
    return ["  |" + "|".join(cells) + "|" + arrow]


def _blocks(values: Values) -> list[str]:
    """Towers from the table up, and the hand."""
    supports = [support_of(block, code) for block, code in enumerate(indexed(values, "block_"))]
    lines = [f"  hand: {supports.index(-1) if -1 in supports else 'empty'}"]
    for block, support in enumerate(supports):
        if support == -2:
            tower = [block]
            while tower[-1] in supports and len(tower) <= len(supports):
                tower.append(supports.index(tower[-1]))
            lines.append("  table: " + " ".join(map(str, tower)))
    return lines


_SKETCHES: dict[str, Callable[[Values], list[str]]] = {
    "blocksworld": _blocks,
    "line": _line,
    "transport": _line,
}
