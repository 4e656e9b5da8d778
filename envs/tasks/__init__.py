"""The bundled tasks: generators that write JANI models and properties of any size."""

from __future__ import annotations

from dataclasses import fields, replace
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from safetest_gym.envs.tasks.checks import with_tuples
from safetest_gym.errors import ConfigError

if TYPE_CHECKING:
    from safetest_gym.envs.options import Generator

__all__ = ["NAMES", "PRESETS", "TASKS", "generator_class", "make_generator"]

TASKS: dict[str, str] = {
    "Beluga": "beluga",
    "Blocksworld": "blocksworld",
    "BouncingBall": "bouncing_ball",
    "CartPole": "cart_pole",
    "FlappyBird": "flappy_bird",
    "FlightDiversion": "flight_diversion",
    "FollowCar": "follow_car",
    "InvertedPendulum": "inverted_pendulum",
    "LayeredFamily": "families",
    "NPuzzle": "n_puzzle",
    "OneWayLine": "one_way_line",
    "OuterLoop": "families",
    "Rovers": "rovers",
    "Transport": "transport",
    "TwoWayLine": "two_way_line",
}
"""Class name of every generator and the module here that has it."""

PRESETS: dict[str, tuple[str, str]] = {
    "RoversMars": ("Rovers", "mars"),
    "RoversMarsMini": ("Rovers", "mars_mini"),
    "RoversMarsMiniCap": ("Rovers", "mars_mini_cap"),
}
"""Other defaults of a generator: its name, and the class method that makes them."""

NAMES = (*TASKS, *PRESETS)
"""What an id may name."""


def generator_class(name: str) -> type[Generator]:
    """The generator behind ``name``, imported when first asked for."""
    if name not in NAMES:
        close = get_close_matches(name, NAMES, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(NAMES)}"
        raise ConfigError(f"unknown task {name!r} ({hint})")
    task = PRESETS[name][0] if name in PRESETS else name
    module = import_module(f"safetest_gym.envs.tasks.{TASKS[task]}")
    return cast("type[Generator]", getattr(module, task))


def make_generator(name: str, parameters: dict[str, Any]) -> Generator:
    """The generator ``name`` with its parameters; lists become tuples, as JSON has only lists."""
    found = generator_class(name)
    default: Any = getattr(found, PRESETS[name][1])() if name in PRESETS else found()
    known = [field.name for field in fields(found)]  # type: ignore[arg-type]  # generators are dataclasses
    for given in parameters:
        if given not in known:
            close = get_close_matches(given, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
            raise ConfigError(f"{name} has no parameter {given!r} ({hint})")
    made: Generator = replace(
        default, **{given: with_tuples(value) for given, value in parameters.items()}
    )
    return made
