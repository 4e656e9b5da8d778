"""The safe set of a planning model by Storm: explicit build, then graph-based Pmin = 0."""

from __future__ import annotations

from tests.benchmarks.harness import Facts, peak_megabytes, stopwatch
from tests.benchmarks.storm import _read, _start_from, _to_storms_dialect

__all__ = ["safe_set_with_storm"]


def safe_set_with_storm(*, model: str, properties: str) -> Facts:
    """Build from the listed start states of the first property and compute prob0.

    There is one state more, which chooses a start state; it is not counted as safe.
    """
    import json

    import stormpy
    from stormpy import developer

    document = _read(model)
    planning = _read(properties)["properties"][0]["expression"]
    _start_from(document, planning["start"])
    _to_storms_dialect(document)
    document["properties"] = [
        _reach("fail", planning["reach"]["exp"]),
        _reach("goal", planning["objective"]["goal"]["exp"]),
    ]
    parsed, asked = stormpy.parse_jani_model_from_string(json.dumps(document))
    formulas = {entry.get_name(): entry.get_raw_formula() for entry in asked}
    options = stormpy.BuilderOptions(list(formulas.values()))
    with stopwatch() as building:
        built = stormpy.build_model(parsed, options=options)
    failing, goal = (
        stormpy.model_checking(built, formulas[name].subformula.subformula)
        for name in ("fail", "goal")
    )
    goes_on = ~goal.get_truth_values_vector()
    with stopwatch() as checking:
        safe, _ = developer.perform_prob01_min(built, goes_on, failing.get_truth_values_vector())
    (first,) = built.initial_states
    return {
        "states": built.nr_states - 1,
        "safe": safe.get_number_of_set_bits() - safe.get(first),
        "build": building.seconds,
        "prob0": checking.seconds,
        "seconds": building.seconds + checking.seconds,
        "peak_mb": peak_megabytes(),
    }


def _reach(name: str, condition: object) -> object:
    values = {"op": "Pmin", "exp": {"op": "F", "exp": condition}}
    expression = {"op": "filter", "fun": "values", "states": {"op": "initial"}, "values": values}
    return {"name": name, "expression": expression}
