"""Other tools at the same work: Storm through stormpy, Momba's gym class.

Both read plain JANI, so models of our dialect are translated first.
"""

from __future__ import annotations

import json
import random
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from safetest_gym.bench.experiment import Facts
from safetest_gym.bench.timing import peak_megabytes, stopwatch

__all__ = ["explore_with_storm", "installed", "safe_set_with_storm", "step_with_momba"]

Json = dict[str, Any]


def installed(peer: str) -> bool:
    """Is the peer's package there?"""
    return find_spec(peer) is not None


def explore_with_storm(model: Path, properties: Path) -> Facts:
    """Build the whole state space from the listed start states.

    There is one state more, with one choice per start state; it is not counted.
    """
    import stormpy

    document, _ = _for_storm(model, properties)
    parsed, _ = stormpy.parse_jani_model_from_string(json.dumps(document))
    options = stormpy.BuilderOptions()
    options.set_build_all_labels(False)
    options.set_build_all_reward_models(False)
    with stopwatch() as watch:
        built = stormpy.build_model(parsed, options=options)
    return {"states": built.nr_states - 1, "seconds": watch.seconds, "peak_mb": peak_megabytes()}


def safe_set_with_storm(model: Path, properties: Path) -> Facts:
    """The states from which failing before the goal can surely be avoided."""
    import stormpy
    from stormpy import developer

    document, planning = _for_storm(model, properties)
    document["properties"] = [
        _reach("fail", _bare(planning["reach"])),
        _reach("goal", _bare(planning["objective"])),
    ]
    parsed, asked = stormpy.parse_jani_model_from_string(json.dumps(document))
    formulas = {entry.get_name(): entry.get_raw_formula() for entry in asked}
    options = stormpy.BuilderOptions(list(formulas.values()))
    with stopwatch() as watch:
        built = stormpy.build_model(parsed, options=options)
        failing, goal = (
            stormpy.model_checking(built, formulas[name].subformula.subformula)
            for name in ("fail", "goal")
        )
        goes_on = ~goal.get_truth_values_vector()
        safe, _ = developer.perform_prob01_min(built, goes_on, failing.get_truth_values_vector())
    (first,) = built.initial_states
    return {
        "states": built.nr_states - 1,
        "safe": safe.get_number_of_set_bits() - int(safe.get(first)),
        "seconds": watch.seconds,
        "peak_mb": peak_megabytes(),
    }


def step_with_momba(model: Json, planning: Json, steps: int, repeats: int) -> Facts:
    """Steps per second at random, asking for the mask after each, as its users would."""
    import momba.gym
    from momba import jani

    gym: Any = momba.gym
    network = jani.load_model(json.dumps(_plain_jani(model, planning["expression"])))
    instance = next(iter(network.instances))
    observations = gym.generic.Observations.OMNISCIENT
    env = gym.create_generic_env(network, instance, "reach", observations=observations)
    warnings.simplefilter("ignore")
    seconds = min(_walk(env, random.Random(repeat), steps) for repeat in range(repeats))
    return {"rate": steps / seconds}


def _walk(env: Any, rng: random.Random, steps: int) -> float:
    """CPU seconds of steps with masks and resets, without choosing actions."""
    env.reset()
    mask = env.available_actions
    seconds = 0.0
    for _ in range(steps):
        action = rng.choice(mask.nonzero()[0].tolist())
        with stopwatch() as watch:
            _, _, done, _ = env.step(action)
            if done:
                env.reset()
            mask = env.available_actions
        seconds += watch.seconds
    return seconds


def _plain_jani(model: Json, planning: Json) -> Json:
    """The model with the planning property as a reach-avoid property."""
    converted: Json = {**model, "type": "mdp"}
    converted.pop("features", None)
    safe = {"op": "¬", "exp": _bare(planning["reach"])}
    until = {"op": "U", "left": safe, "right": _bare(planning["objective"])}
    converted["properties"] = [_filter("reach", "Pmax", until)]
    return converted


def _for_storm(model: Path, properties: Path) -> tuple[Json, Json]:
    """The model in Storm's dialect, and the planning property.

    The first automaton chooses one of the listed start states before all else: initial
    states given by a condition cost Storm a second for a thousand of them, edges nothing.
    """
    document: Json = json.loads(model.read_text(encoding="utf-8-sig"))
    document["properties"] = []
    if document["type"] == "lts":
        document["type"] = "mdp"
    planning: Json = json.loads(properties.read_text(encoding="utf-8-sig"))["properties"][0]
    planning = planning["expression"]
    first = document["automata"][0]
    (home,) = first["initial-locations"]
    first["locations"].append({"name": "choosing"})
    first["initial-locations"] = ["choosing"]
    for state in planning["start"]["values"]:
        assignments = [{"ref": v["var"], "value": v["value"]} for v in state["variables"]]
        destination = {"location": home, "assignments": assignments}
        first["edges"].append({"location": "choosing", "destinations": [destination]})
    return document, planning


def _reach(name: str, condition: Any) -> Json:
    return _filter(name, "Pmin", {"op": "F", "exp": condition})


def _filter(name: str, bound: str, path: Json) -> Json:
    values = {"op": bound, "exp": path}
    expression = {"op": "filter", "fun": "values", "states": {"op": "initial"}, "values": values}
    return {"name": name, "expression": expression}


def _bare(condition: Any) -> Any:
    """The expression inside the dialect's wrappers."""
    while isinstance(condition, dict) and condition.get("op") in ("objective", "state-condition"):
        condition = condition["goal" if condition["op"] == "objective" else "exp"]
    return condition
