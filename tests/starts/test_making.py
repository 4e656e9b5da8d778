"""The model's own initial states."""

from __future__ import annotations

from typing import Any

import pytest

from safetest_gym.jani import read_model
from safetest_gym.starts import default_starts


def model(**changes: Any) -> dict[str, Any]:
    document = {
        "jani-version": 1,
        "name": "m",
        "type": "lts",
        "variables": [
            {"name": "x", "type": _range(0, 5), "initial-value": 2},
            {"name": "y", "type": _range(0, 3)},
            {"name": "b", "type": "bool", "initial-value": True},
        ],
        "automata": [
            {
                "name": "a",
                "locations": [{"name": "one"}, {"name": "two"}, {"name": "three"}],
                "initial-locations": ["three", "one"],
                "edges": [],
            }
        ],
        "system": {"elements": [{"automaton": "a"}]},
    }
    return {**document, **changes}


def _range(low: int, high: int) -> dict[str, Any]:
    return {"kind": "bounded", "base": "int", "lower-bound": low, "upper-bound": high}


def test_initial_values_are_fixed_and_all_else_is_free() -> None:
    rows = default_starts(read_model(model())).enumerate(100)
    assert rows.tolist() == [[2, y, 1, at] for y in range(4) for at in (0, 2)]


def test_restrict_initial_restricts() -> None:
    restriction = {"exp": {"op": "<", "left": "y", "right": "x"}}
    starts = default_starts(read_model(model(**{"restrict-initial": restriction})))
    assert starts.enumerate(100).tolist() == [[2, y, 1, at] for y in range(2) for at in (0, 2)]


@pytest.mark.parametrize(("state", "initial"), [([2, 0, 1, 0], True), ([2, 0, 1, 1], False)])
def test_contains_knows_the_initial_locations(state: list[int], initial: bool) -> None:
    assert default_starts(read_model(model())).contains(state) is initial
