"""What a RepairCallback leaves on disk, and how it goes on with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from safetest_gym.callbacks.repair import RepairCallback
from safetest_gym.errors import StoreError
from tests.callbacks.conftest import make_model

Plan = dict[str, Any]


def _repairs(folder: Path, plan: Plan, **options: Any) -> RepairCallback:
    tests = {"every_steps": 32, "plan": plan, "folder": folder, "resume": True}
    chosen = {"options": {"method": "last-layer"}, "goal_tolerance": 1.0, **options}
    return RepairCallback(tests=tests, every_steps=32, **chosen)


def _lines(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "repair.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_every_attempt_is_a_line_that_says_what_and_why(plan: Plan, tmp_path: Path) -> None:
    callback = _repairs(tmp_path, plan)
    make_model("MaskablePPO").learn(320, callback)
    lines = _lines(tmp_path)
    assert [{**line, "task": None} for line in lines] == [
        {**record, "task": None} for record in callback.history
    ]
    assert {line["task"] for line in lines} == {callback.tests.task.digest}
    tried = [line for line in lines if "method" in line]
    assert tried
    for line in tried:
        assert line["fixed"] + line["given_up"] == line["faults"]
        assert line["objective"] >= line["lower_bound"] >= 0
        assert line["why"] in ("%Unsafe falls", "%Unsafe does not fall", "%Goal falls too far")
        assert line["kept"] == (line["why"] == "%Unsafe falls")
        assert line["kept"] == (line["unsafe_after"] < line["unsafe_before"])


def test_numbers_of_a_repair_go_to_the_logger(plan: Plan, tmp_path: Path) -> None:
    seen: dict[str, Any] = {}
    callback = _repairs(tmp_path, plan)
    model = make_model("MaskablePPO")
    model.learn(64, callback)
    record = model.logger.record
    model.logger.record = lambda name, value, **_: seen.update({name: value})  # type: ignore[method-assign]
    callback._due = 0
    callback._on_rollout_start()
    model.logger.record = record  # type: ignore[method-assign]
    assert {"repair/steps", "repair/faults", "repair/kept", "repair/seconds"} <= set(seen)
    assert all(isinstance(value, float) for value in seen.values())


def test_a_training_that_goes_on_adds_to_the_records(plan: Plan, tmp_path: Path) -> None:
    make_model("MaskablePPO").learn(128, _repairs(tmp_path, plan))
    with (tmp_path / "repair.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"steps": 1')  # a kill
    before = _lines_but_last(tmp_path)
    second = _repairs(tmp_path, plan)
    make_model("MaskablePPO").learn(128, second)
    after = _lines(tmp_path)
    assert after[: len(before)] == before
    assert len(second.history) == len(after) > len(before)
    steps = [line["steps"] for line in after]
    assert steps == sorted(set(steps))


def _lines_but_last(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "repair.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()[:-1]]


def test_the_safest_ensemble_is_known_again(plan: Plan, tmp_path: Path) -> None:
    first = _repairs(tmp_path, plan, trees=3)
    make_model("MaskablePPO").learn(128, first)
    assert any(record.get("trees_kept") for record in first.history)
    second = _repairs(tmp_path, plan, trees=3)
    make_model("MaskablePPO").learn(1, second)
    assert second.ensemble is not None
    assert second._ensemble_unsafe == first._ensemble_unsafe


def test_records_without_those_of_tests_are_of_another_training(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "repair.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(StoreError, match=r"repair\.jsonl is of another training; remove it"):
        make_model("MaskablePPO").learn(32, _repairs(tmp_path, plan))


def test_without_a_folder_records_are_kept_in_memory(plan: Plan) -> None:
    callback = RepairCallback(tests={"every_steps": 32, "plan": plan}, every_steps=32)
    make_model("MaskablePPO").learn(128, callback)
    assert callback.history
