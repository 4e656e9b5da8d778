"""Choose the property of a model that makes it a task."""

from __future__ import annotations

from safetest_gym.errors import ConfigError
from safetest_gym.jani.document import Source
from safetest_gym.jani.properties import read_properties
from safetest_gym.jani.tree import (
    FilterProperty,
    Model,
    PlanningProperty,
    Property,
    UnsupportedProperty,
)

__all__ = ["choose_property"]


def choose_property(
    model: Model, properties: Source | None, wanted: str | int | None, *, replaced: bool
) -> PlanningProperty:
    """The property that is meant; one that says nothing if the model has none.

    Args:
        properties: a file or data; None for the model's own.
        wanted: name or number; None for the first planning property.
        replaced: goal or failure condition are given by themselves, so that none is needed.

    Raises:
        ConfigError: there is no such property, or it cannot be used.
    """
    listed = model.properties if properties is None else read_properties(properties, model)
    if wanted is not None:
        return _named_property(listed, wanted)
    found = _first_property(listed, lenient=replaced)
    if found is None and properties is not None and not replaced:
        raise ConfigError(
            "no property given is a planning property (PA), which would be taken by default; "
            f"pick one with property=: {_listed(listed)}"
        )
    return found or PlanningProperty(name="", goal=None, failure=None, start=None)


def _first_property(properties: tuple[Property, ...], *, lenient: bool) -> PlanningProperty | None:
    """The first ``PA`` property, if any; one with errors before it is passed over if lenient."""
    for found in properties:
        if isinstance(found, PlanningProperty):
            return found
        if isinstance(found, UnsupportedProperty) and found.is_planning and not lenient:
            raise _unusable(found)
    return None


def _named_property(properties: tuple[Property, ...], wanted: str | int) -> PlanningProperty:
    """The property of that name or number."""
    picked = _find(properties, wanted)
    if isinstance(picked, FilterProperty):
        return PlanningProperty(name=picked.name, goal=None, failure=picked.target, start=None)
    if isinstance(picked, UnsupportedProperty):
        raise _unusable(picked)
    return picked


def _unusable(found: UnsupportedProperty) -> ConfigError:
    return ConfigError(f"property {found.name!r} cannot be used: {found.reason}")


def _find(properties: tuple[Property, ...], wanted: str | int) -> Property:
    for found in properties:
        if found.name == wanted:
            return found
    number = int(wanted) if str(wanted).isdecimal() else -1
    if 0 <= number < len(properties):
        return properties[number]
    raise ConfigError(f"there is no property {wanted!r}; there are {_listed(properties)}")


def _listed(properties: tuple[Property, ...]) -> str:
    return ", ".join(f"{i}: {p.name}" for i, p in enumerate(properties)) or "none"
