from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ended, Run

FIELDS = {
    "states",
    "choices",
    "transitions",
    "deadlocks",
    "initial_states",
    "seconds",
    "peak_mb",
}


def _result(ended: Ended) -> dict[str, Any]:
    assert ended.code == 0, ended.err
    result: dict[str, Any] = json.loads(ended.out)
    return result


def _counts(ended: Ended) -> tuple[int, int, int, int, int]:
    result = _result(ended)
    return (
        result["states"],
        result["choices"],
        result["transitions"],
        result["deadlocks"],
        result["initial_states"],
    )


# The numbers of states, choices and transitions are Storm's.


def test_a_chain_is_explored(run: Run, data: Path) -> None:
    ended = run("explore", data / "die.jani", "--mode", "edge", "--json")
    assert _counts(ended) == (13, 7, 14, 6, 1)


def test_two_synchronising_automata_are_explored(run: Run, data: Path) -> None:
    ended = run("explore", data / "handover.jani", "--const", "N=3", "--mode", "edge", "--json")
    assert _counts(ended) == (16, 12, 18, 4, 1)


def test_edges_of_one_label_are_one_choice_in_label_mode(run: Run, data: Path) -> None:
    by_edge = _result(run("explore", data / "ferry.jani", "--mode", "edge", "--json"))
    by_label = _result(run("explore", data / "ferry.jani", "--mode", "label", "--json"))
    assert (by_edge["states"], by_edge["choices"], by_edge["transitions"]) == (45, 128, 169)
    assert by_label["states"] == 45
    assert by_label["choices"] < 128
    assert by_label["transitions"] == 169


def test_all_starts_of_the_chosen_property_are_explored(run: Run, data: Path) -> None:
    files = (data / "ferry.jani", "--properties", data / "ferry.props.jani")
    listed = _result(run("explore", *files, "--starts", "all", "--mode", "edge", "--json"))
    assert (listed["states"], listed["initial_states"]) == (70, 3)
    anywhere = run(
        "explore", *files, "--starts", "all", "--property", "anywhere", "--mode", "edge", "--json"
    )
    assert _result(anywhere)["initial_states"] == 16
    by_number = run(
        "explore", *files, "--starts", "all", "--property", "1", "--mode", "edge", "--json"
    )
    assert _result(by_number)["initial_states"] == 16


def test_json_is_one_object_with_the_promised_fields(run: Run, data: Path) -> None:
    ended = run("explore", data / "ferry.jani", "--json")
    assert set(_result(ended)) == FIELDS
    assert ended.out.count("\n") == 1


def test_a_property_adds_its_counts(run: Run, data: Path) -> None:
    files = (data / "ferry.jani", "--properties", data / "ferry.props.jani")
    result = _result(run("explore", *files, "--json"))
    assert set(result) == FIELDS | {"failing", "goal"}
    assert result["failing"] > 0
    assert result["goal"] > 0


def test_people_get_a_table(run: Run, data: Path) -> None:
    ended = run("explore", data / "die.jani")
    assert ended.code == 0
    assert "deadlocks" in ended.out


def test_a_limit_ends_with_3_and_still_prints_what_was_found(run: Run, data: Path) -> None:
    ended = run("explore", data / "ferry.jani", "--limit", 10, "--json")
    assert ended.code == 3
    assert 1 <= json.loads(ended.out)["states"] <= 45
    assert "limit of 10 states" in ended.err


def test_a_limit_that_is_not_reached_changes_nothing(run: Run, data: Path) -> None:
    assert run("explore", data / "die.jani", "--limit", 13, "--json").code == 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["missing.jani"], "missing.jani"),
        (["handover.jani"], "N"),
        (["handover.jani", "--const", "M=1"], "M"),
        (["ferry.jani", "--properties", "missing.jani"], "missing.jani"),
        (["die.jani", "--property", "seven"], "seven"),
        (["die.jani", "--limit", "0"], "--limit"),
        (["die.jani", "--mode", "state"], "--mode"),
        (["die.jani", "--starts", "some"], "--starts"),
    ],
)
def test_bad_input_ends_with_2_and_is_named_without_a_traceback(
    run: Run, data: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], part: str
) -> None:
    monkeypatch.chdir(data)
    ended = run("explore", *arguments, "--json")
    assert ended.code == 2
    assert ended.out == ""
    assert part in ended.err
    assert "Traceback" not in ended.err


def test_every_error_of_a_document_is_told(run: Run, data: Path, tmp_path: Path) -> None:
    model = json.loads((data / "die.jani").read_text("utf-8"))
    model["type"] = "game"
    model["variables"][0]["type"]["kind"] = "unbounded"
    broken = tmp_path / "broken.jani"
    broken.write_text(json.dumps(model), encoding="utf-8")
    ended = run("explore", broken)
    assert ended.code == 2
    assert "$.type" in ended.err
    assert "$.variables[0].type" in ended.err
