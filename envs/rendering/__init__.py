"""Pictures of states: one small module per family of tasks, drawn with Pillow.

Nothing here is imported before the first frame is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, cast

from safetest_gym.envs.rendering.scene import Scene, Values
from safetest_gym.errors import ConfigError

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["PICTURES", "Scene", "Values", "picture"]

Draw = Callable[[Values, Scene], "Image.Image"]

PICTURES: dict[str, str] = {
    "beluga": "beluga:draw_beluga",
    "blocksworld": "blocksworld:draw_blocksworld",
    "bouncing_ball": "ball:draw_bouncing_ball",
    "cart_pole": "pendulum:draw_cart_pole",
    "flappy_bird": "bird:draw_flappy_bird",
    "flight_diversion": "flight:draw_flight_diversion",
    "follow_car": "follow_car:draw_follow_car",
    "inverted_pendulum": "pendulum:draw_inverted_pendulum",
    "line": "line:draw_line",
    "n_puzzle": "puzzle:draw_n_puzzle",
    "rovers": "rovers:draw_rovers",
    "table": "table:draw_table",
    "transport": "transport:draw_transport",
}
"""Where each picture is drawn; the names are what ``picture=`` takes."""


def picture(name: str) -> Draw:
    """The function that draws the picture ``name``."""
    if name not in PICTURES:
        raise ConfigError(f"unknown picture {name!r}; known: {', '.join(PICTURES)}")
    module, function = PICTURES[name].split(":")
    return cast("Draw", getattr(import_module(f"{__name__}.{module}"), function))
