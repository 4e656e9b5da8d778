"""Text pictures: the generic table, and a sketch where that says more."""

from __future__ import annotations

from collections.abc import Callable

from safetest_gym.envs.rendering.beluga import rack_contents, swaps
from safetest_gym.envs.rendering.blocksworld import support_of
from safetest_gym.envs.rendering.scene import Scene, Values, indexed
from safetest_gym.envs.rendering.table import format_value

__all__ = ["draw_ansi", "sketch"]


def draw_ansi(values: Values, scene: Scene, picture: str = "table") -> str:
    """The state as text: a headline, a sketch if the picture has one, all variables."""
    head = f"{scene.title}  step {scene.step}"
    if scene.action is not None:
        head += f"  {scene.action}"
    if scene.outcome is not None:
        head += f"  [{scene.outcome.upper()}]"
    parts = [head, *sketch(values, scene, picture), *_table(values, scene)]
    return "\n".join(parts) + "\n"


def sketch(values: Values, scene: Scene, picture: str) -> list[str]:
    """The lines of a small drawing; none if there is none of this picture."""
    draw = _SKETCHES.get(picture)
    return draw(values, scene) if draw else []


def _table(values: Values, scene: Scene) -> list[str]:
    declared = {variable.name: variable for variable in scene.variables}
    width = max(map(len, values), default=0)
    return [
        f"  {name:<{width}}  {format_value(value, declared.get(name))}"
        for name, value in values.items()
    ]


def _line(values: Values, _: Scene) -> list[str]:
    """One cell per location: packages, and the truck in brackets with its load."""
    truck, carried = int(values.get("truck_0", -1)), int(values.get("truck_load_0", 0))
    cells = [
        f"[{load}+{carried}]" if place == truck else f" {load} "
        for place, load in enumerate(indexed(values, "location_load_"))
    ]
    velocity = int(values.get("truck_vel_0", 0))
    arrow = f"  {'>' * velocity if velocity > 0 else '<' * -velocity}" if velocity else ""
    return ["  |" + "|".join(cells) + "|" + arrow]


def _blocks(values: Values, _: Scene) -> list[str]:
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


def _beluga(values: Values, scene: Scene) -> list[str]:
    """Where every jig [0] is; the aeroplane's last slot and a rack's front come first."""
    codes = indexed(values, "jig_")
    jigs, racks = len(codes), len(indexed(values, "rack_load_"))
    at = {code: jig for jig, code in enumerate(codes)}
    delivered = [jig for jig, code in enumerate(codes) if code == jigs + racks + 2]
    places = [("aeroplane", [at.get(slot) for slot in range(jigs - 1, -1, -1)])]
    places += [("trailer", [at.get(jigs + racks)])]
    places += [(f"rack {rack}", [*rack_contents(values, rack)]) for rack in range(racks)]
    places += [("truck", [at.get(jigs + racks + 1)]), ("delivered", [*delivered])]
    lines = [f"  {name:<9}  {' '.join(map(_jig, held)) or 'nothing'}" for name, held in places]
    asked = int(values.get("next_jig", -1))
    for line, wanted in enumerate(indexed(values, "line_")):
        wish = f"wants {_jig(wanted)}" if wanted >= 0 else "done"
        lines.append(f"  line {line:<4}  {wish}{' now' if 0 <= wanted == asked else ''}")
    return [*lines, f"  swaps      {swaps(values, scene)}"]


def _jig(number: int | None) -> str:
    return "[ ]" if number is None else f"[{number}]"


_SKETCHES: dict[str, Callable[[Values, Scene], list[str]]] = {
    "beluga": _beluga,
    "blocksworld": _blocks,
    "line": _line,
    "transport": _line,
}
