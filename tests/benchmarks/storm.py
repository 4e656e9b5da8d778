"""Explore a model with Storm, as the peer that our exploration is measured against."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetest_gym.bench.timing import peak_megabytes, stopwatch
from tests.benchmarks.harness import Facts

__all__ = ["explore_with_storm"]

Json = dict[str, Any]


def explore_with_storm(
    *, model: str, properties: str | None = None, constants: Mapping[str, Any] | None = None
) -> Facts:
    """Build the whole state space; with ``properties``, from the first one's listed starts.

    Then there is one state more, with one choice per start state.
    """
    import stormpy

    document = _read(model)
    if properties is not None:
        _start_from(document, _read(properties)["properties"][0]["expression"]["start"])
    _to_storms_dialect(document)
    with stopwatch() as loading:
        parsed, _ = stormpy.parse_jani_model_from_string(json.dumps(document))
        parsed, _ = stormpy.instantiate_constants(parsed, dict(constants or {}), [])
    options = stormpy.BuilderOptions()
    options.set_build_all_labels(False)
    options.set_build_all_reward_models(False)
    with stopwatch() as exploring:
        built = stormpy.build_model(parsed, options=options)
    return {
        "states": built.nr_states,
        "choices": built.nr_choices,
        "transitions": built.nr_transitions,
        "load": loading.seconds,
        "explore": exploring.seconds,
        "peak_mb": peak_megabytes(),
    }


def _read(path: str) -> Json:
    document: Json = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    return document


def _to_storms_dialect(document: Json) -> None:
    """Drop what Storm refuses: planning properties and the type lts."""
    document["properties"] = []
    if document["type"] == "lts":
        document["type"] = "mdp"


def _start_from(document: Json, start: Json) -> None:
    """Let the first automaton choose one of the listed states before all else.

    Storm would find initial states given by a condition with an SMT solver, which takes a
    second for a thousand of them; edges cost it nothing.
    """
    first = document["automata"][0]
    (home,) = first["initial-locations"]
    first["locations"].append({"name": "choosing"})
    first["initial-locations"] = ["choosing"]
    for state in start["values"]:
        assignments = [{"ref": v["var"], "value": v["value"]} for v in state["variables"]]
        first["edges"].append(
            {
                "location": "choosing",
                "destinations": [{"location": home, "assignments": assignments}],
            }
        )
