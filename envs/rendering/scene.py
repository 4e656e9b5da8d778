"""What a picture shows besides the state's values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from safetest_gym.envs.outcomes import Outcome
from safetest_gym.jani.tree import Value, Variable

__all__ = ["Scene", "Values", "bounds", "indexed"]

Values = Mapping[str, Value]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """The setting of one frame.

    Attributes:
        action: name of the last action; None right after reset.
        outcome: how the episode ended; None while it runs.
        parameters: the generator's parameters by name; may be empty.
        variables: declarations, for bounds and location names; may be empty.
        trail: earlier states of this episode that were drawn, oldest first.
    """

    title: str = ""
    action: str | None = None
    step: int = 0
    outcome: Outcome | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    variables: Sequence[Variable] = ()
    trail: Sequence[Values] = ()

    def number(self, name: str, default: float) -> float:
        """Parameter ``name`` if it is a number, else ``default``."""
        value = self.parameters.get(name, default)
        return float(value) if isinstance(value, int | float) else default

    def numbers(self, name: str) -> tuple[float, ...]:
        """Parameter ``name`` if it is a list of numbers, else nothing."""
        value = self.parameters.get(name, ())
        if not isinstance(value, Sequence | set | frozenset) or isinstance(value, str):
            return ()
        return tuple(float(item) for item in value if isinstance(item, int | float))


def indexed(values: Values, prefix: str) -> list[int]:
    """The values of ``prefix0``, ``prefix1``, ... as long as they exist."""
    found: list[int] = []
    while f"{prefix}{len(found)}" in values:
        found.append(int(values[f"{prefix}{len(found)}"]))
    return found


def bounds(scene: Scene, name: str, default: tuple[float, float]) -> tuple[float, float]:
    """Declared bounds of a variable, or ``default`` where they are unknown or missing."""
    for variable in scene.variables:
        if variable.name == name:
            lower = default[0] if variable.lower is None else float(variable.lower)
            upper = default[1] if variable.upper is None else float(variable.upper)
            return lower, upper
    return default
