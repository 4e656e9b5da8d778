"""Picture for any model: every variable's value and its place within its bounds."""

from __future__ import annotations

from PIL import Image

from safetest_gym.envs.rendering.canvas import HEIGHT, Canvas, Palette
from safetest_gym.envs.rendering.scene import Scene, Values
from safetest_gym.jani.tree import Value, Variable

__all__ = ["draw_table", "format_value"]

TOP, BOTTOM, ROW = 60.0, HEIGHT - 18.0, 22.0


def format_value(value: Value, variable: Variable | None = None) -> str:
    """A value as people read it; location names for location variables."""
    if variable is not None and variable.locations:
        return variable.locations[int(value)]
    if variable is not None and variable.kind == "bool":
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def draw_table(values: Values, scene: Scene) -> Image.Image:
    """Draw the variables in up to four columns; what does not fit is counted."""
    canvas = Canvas(scene)
    declared = {variable.name: variable for variable in scene.variables}
    previous = scene.trail[-1] if scene.trail else values
    per_column = int((BOTTOM - TOP) // ROW)
    columns = min(4, max(1, -(-len(values) // per_column)))
    shown = list(values)[: columns * per_column]
    if len(shown) < len(values):
        shown = shown[:-1]
    width = 600 / columns
    for index, name in enumerate(shown):
        column, row = divmod(index, per_column)
        left, y = 20 + column * width, TOP + ROW * row + ROW / 2
        box = (left, y, left + width - 16)
        changed = previous.get(name) != values[name]
        _draw_row(canvas, box, (name, values[name], declared.get(name)), changed)
    if len(shown) < len(values):
        rest = f"and {len(values) - len(shown)} more"
        canvas.text((604, BOTTOM - ROW / 2), rest, size=13, color=Palette.MUTED, anchor="rm")
    return canvas.finish()


def _draw_row(
    canvas: Canvas,
    box: tuple[float, float, float],
    entry: tuple[str, Value, Variable | None],
    changed: bool,
) -> None:
    """Name, value and bar; values that just changed stand out."""
    left, y, right = box
    name, value, variable = entry
    room = max(6, int((right - left - 44) / 7.6))
    label = name if len(name) <= room else f"…{name[1 - room :]}"
    color = Palette.BLUE if changed else Palette.INK
    canvas.text((left, y - 2), label, size=13, color=Palette.SLATE, anchor="lm")
    canvas.text((right, y - 2), format_value(value, variable), size=13, color=color, anchor="rm")
    canvas.line([(left, y + 7), (right, y + 7)], Palette.RULE, 2)
    if variable is None or variable.lower is None or variable.upper is None:
        return
    lower, span = float(variable.lower), float(variable.upper) - float(variable.lower)
    share = 0.0 if span <= 0 else max(0.0, min(1.0, (float(value) - lower) / span))
    end = left + (right - left) * share
    canvas.line([(left, y + 7), (end, y + 7)], color if changed else Palette.MUTED, 2)
    canvas.circle((end, y + 7), 3, color)
