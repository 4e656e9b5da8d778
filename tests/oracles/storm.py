"""Storm as an independent judge of what a model's reachable part looks like (edge granularity)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from tests.oracles.exploration import Exploration

__all__ = ["StormRefusal", "Valuation", "explore_with_storm", "storm_is_missing"]

Valuation = tuple[tuple[str, int], ...]
"""The int and bool variables of a state by sorted name; bools are 0 and 1."""


class StormRefusal(Exception):
    """Storm does not accept the model."""


@cache
def storm_is_missing() -> bool:
    """Can stormpy not be imported?"""
    with _silence():
        try:
            import stormpy  # noqa: F401  # only whether it is there
        except ImportError:
            return True
    return False


def explore_with_storm(
    document: Mapping[str, Any], constants: Mapping[str, bool | int | float] | None = None
) -> tuple[Exploration, frozenset[Valuation]]:
    """Build the whole reachable part of ``document`` (JSON data of type lts, mdp or dtmc).

    Artificial self-loops of deadlocks are not counted. In valuations, a local variable ``v`` of
    automaton ``A`` is ``A_v`` and the location of ``A``, if it has several, ``_loc_A``.

    Raises:
        StormRefusal: with Storm's message.
    """
    import stormpy

    prepared = json.loads(json.dumps(document))
    prepared["properties"] = []
    if prepared["type"] == "lts":
        prepared["type"] = "mdp"
    with _silence():
        try:
            model, _ = stormpy.parse_jani_model_from_string(json.dumps(prepared))
            model, _ = stormpy.instantiate_constants(model, dict(constants or {}), [])
            options = stormpy.BuilderOptions()
            options.set_build_state_valuations(True)
            built = stormpy.build_model(model, options=options)
        except RuntimeError as error:
            raise StormRefusal(str(error)) from error
    return _counts(built), _valuations(built)


def _counts(built: Any) -> Exploration:
    dead = built.labeling.get_states("deadlock")
    deadlocks = dead.get_number_of_set_bits()
    return Exploration(
        states=built.nr_states,
        choices=built.nr_choices - deadlocks,
        transitions=built.nr_transitions - deadlocks,
        deadlocks=deadlocks,
        initial_states=len(built.initial_states),
    )


def _valuations(built: Any) -> frozenset[Valuation]:
    """What Storm knows about every state, without transient (real) variables."""
    table = built.state_valuations
    columns = {
        variable.name: [int(value) for value in table.get_values_states(variable)]
        for variable in table.get_all_variables()
        if not variable.has_rational_type()
    }
    names = sorted(columns)
    return frozenset(
        tuple((name, columns[name][state]) for name in names) for state in range(built.nr_states)
    )


@contextmanager
def _silence() -> Iterator[None]:
    """Storm writes warnings to the process' standard output and error, past Python's."""
    saved = [os.dup(1), os.dup(2)]
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        yield
    finally:
        for number, original in zip((1, 2), saved, strict=True):
            os.dup2(original, number)
            os.close(original)
        os.close(null)
