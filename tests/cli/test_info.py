from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run


def _describe(run: Run, *arguments: object) -> dict[str, Any]:
    ended = run("info", *arguments, "--json")
    assert ended.code == 0, ended.err
    description: dict[str, Any] = json.loads(ended.out)
    return description


def test_variables_come_with_bounds_and_initial_values(run: Run, data: Path) -> None:
    description = _describe(run, data / "handover.jani", "--const", "N=3")
    assert description["constants"] == {"N": 3}
    assert description["variables"][0] == {
        "name": "waiting",
        "type": "int",
        "domain": "int 0 .. 3",
        "lower": 0,
        "upper": 3,
        "initial": 3,
    }
    assert description["variables"][-1]["locations"] == ["empty", "full"]


def test_automata_and_their_synchronisations_are_told(run: Run, data: Path) -> None:
    description = _describe(run, data / "handover.jani", "--const", "N=3")
    assert [automaton["edges"] for automaton in description["automata"]] == [2, 1]
    assert description["synchronisations"] == [
        {"synchronise": {"sender": "load"}, "result": "load"},
        {"synchronise": {"sender": "give", "receiver": "take"}, "result": "handover"},
    ]


def test_properties_come_with_the_one_in_use(run: Run, data: Path) -> None:
    files = (data / "ferry.jani", "--properties", data / "ferry.props.jani")
    description = _describe(run, *files, "--property", "anywhere")
    names = [entry["name"] for entry in description["properties"]]
    assert names == ["listed", "anywhere"]
    assert description["property"] == "anywhere"
    assert "aboard + water" in description["failure"]
    assert description["start_states"] == 16


def test_a_property_that_is_not_understood_is_named_with_the_reason(run: Run, data: Path) -> None:
    description = _describe(run, data / "handover.jani", "--const", "N=3")
    unsupported = [e for e in description["properties"] if e["kind"] == "unsupported"]
    assert [entry["name"] for entry in unsupported] == ["in the long run"]
    assert unsupported[0]["reason"]


def test_the_size_bound_is_the_product_of_the_domains(run: Run, data: Path) -> None:
    assert _describe(run, data / "die.jani")["size_bound_log10"] == pytest.approx(1.69)


def test_real_variables_have_no_size_bound_and_starts_without_number(run: Run, data: Path) -> None:
    description = _describe(run, data / "glider.jani")
    assert description["size_bound_log10"] is None
    assert description["start_states"] is None
    assert description["start_states_unknown"] == "infinitely many"


@pytest.mark.parametrize("name", ["die.jani", "ferry.jani", "glider.jani"])
def test_people_get_tables(run: Run, data: Path, name: str) -> None:
    ended = run("info", data / name)
    assert ended.code == 0
    assert "variables" in ended.out


def test_bad_input_ends_with_2(run: Run, data: Path) -> None:
    ended = run("info", data / "handover.jani")
    assert (ended.code, ended.out) == (2, "")
    assert "N" in ended.err
