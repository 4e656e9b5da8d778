"""Read what stands at the top of a model: type, features, actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from safetest_gym.jani.reporting import Place, Report, Shape, describe, quote, suggest

__all__ = ["AUTOMATON", "MODEL", "check_header", "read_actions", "read_automata"]

MODEL = Shape(
    "a model",
    ("jani-version", "name", "type", "automata", "system"),
    (
        *("metadata", "features", "actions", "constants", "variables", "functions"),
        *("restrict-initial", "properties", "datatypes"),
    ),
)
AUTOMATON = Shape(
    "an automaton",
    ("name", "locations", "initial-locations", "edges"),
    ("variables", "restrict-initial", "functions"),
)
_MISSING = {"jani-version": 1, "name": "", "type": "mdp", "automata": None, "system": None}
_ACTION = Shape("an action", ("name",))

_TYPES = ("lts", "mdp", "dtmc")
_OTHER_TYPES = {
    "ctmc": "continuous-time Markov chains",
    "ctmdp": "continuous-time Markov decision processes",
    "ma": "Markov automata",
    "ta": "timed automata",
    "pta": "probabilistic timed automata",
    "sta": "stochastic timed automata",
    "ha": "hybrid automata",
    "pha": "probabilistic hybrid automata",
    "sha": "stochastic hybrid automata",
}
_FEATURES = (
    "derived-operators",
    "functions",
    "hyperbolic-functions",
    "state-exit-rewards",
    "tradeoff-properties",
    "trigonometric-functions",
)
_OTHER_FEATURES = (
    "arrays",
    "datatypes",
    "edge-priorities",
    "named-expressions",
    "nondet-selection",
    "multi-objective",
    "continuous-variables",
)


def check_header(data: Any, root: Place, report: Report) -> Mapping[str, Any]:
    """``data``, if it looks like a model of a type we read, with all required keys.

    Raises:
        JaniError: it does not; nothing else in it is then worth reading.
    """
    if isinstance(data, dict) and "automata" not in data and "properties" in data:
        report.add(root, "this file has properties, but no model", "give the model's file first")
        report.raise_errors()
    kind = data.get("type") if isinstance(data, dict) else None
    if isinstance(kind, str) and kind.lower() in _OTHER_TYPES:
        other = f"models of type {kind} ({_OTHER_TYPES[kind.lower()]}) are not supported"
        _stop((root, "type"), other, "lts, mdp and dtmc are")
    report.take_object(data, root, MODEL)
    if not isinstance(data, dict):
        report.raise_errors()
    checked: dict[str, Any] = {**_MISSING, **data}
    kind = checked["type"]
    version = checked["jani-version"]
    if type(version) is not int or version != 1:
        message = f"expected version 1, found {describe(version)}"
        report.add((root, "jani-version"), message)
    if not isinstance(checked["name"], str):
        report.add((root, "name"), f"expected a text, found {describe(checked['name'])}")
    if not isinstance(checked.get("metadata", {}), dict):
        report.add((root, "metadata"), f"expected an object, found {describe(data['metadata'])}")
    report.take_choice(kind, (root, "type"), "model type", _TYPES)
    _check_features(checked.get("features", []), (root, "features"), report)
    if "datatypes" in checked:
        report.add((root, "datatypes"), "datatypes are not supported")
    return checked


def _stop(place: Place, message: str, hint: str) -> None:
    report = Report()
    report.add(place, message, hint)
    report.raise_errors()


def _check_features(data: Any, place: Place, report: Report) -> None:
    for index, item in enumerate(report.take_list(data, place, "features")):
        at = (place, index)
        if isinstance(item, str) and item in _OTHER_FEATURES:
            report.add(at, f"feature {quote(item)} is not supported")
        elif isinstance(item, str) and item not in _FEATURES and not item.startswith("x-"):
            hint = suggest(item, (*_FEATURES, *_OTHER_FEATURES))
            report.add(at, f"unknown feature {quote(item)}", hint)
        elif not isinstance(item, str):
            report.add(at, f"expected the name of a feature, found {describe(item)}")


def read_actions(data: Mapping[str, Any], root: Place, report: Report) -> dict[str, None]:
    """The declared actions, in order."""
    place = (root, "actions")
    found: dict[str, None] = {}
    for index, item in enumerate(report.take_list(data.get("actions", []), place, "actions")):
        at = (place, index)
        checked = report.take_object(item, at, _ACTION)
        name = None
        if checked is not None:
            name = report.take_name(checked["name"], (at, "name"), "an action")
        if name in found:
            report.add((at, "name"), f"action {quote(name)} is declared twice", "remove one")
        elif name is not None:
            found[name] = None
    return found


def read_automata(
    data: Mapping[str, Any], root: Place, report: Report
) -> dict[str, tuple[Mapping[str, Any], Place]]:
    """The automata by name, as the document has them; what they lack is filled with nothing."""
    place = (root, "automata")
    found: dict[str, tuple[Mapping[str, Any], Place]] = {}
    items = (
        [] if data["automata"] is None else report.take_list(data["automata"], place, "automata")
    )
    for index, item in enumerate(items):
        at = (place, index)
        report.take_object(item, at, AUTOMATON)
        if not isinstance(item, dict) or "name" not in item:
            continue
        name = report.take_name(item["name"], (at, "name"), "an automaton")
        if name in found:
            report.add((at, "name"), f"automaton {quote(name)} is declared twice", "rename one")
        elif name is not None:
            found[name] = {**{key: [] for key in AUTOMATON.required}, **item}, at
    if not items and isinstance(data["automata"], list):
        report.add(place, "a model needs an automaton")
    return found
