from __future__ import annotations

import json
from pathlib import Path

import pytest

from safetest_gym.task import load_task
from tests.cli.conftest import Run


def test_a_task_is_written_as_standard_jani(run: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "ferry.jani"
    ended = run(
        *("export", data / "ferry.jani", "--properties", data / "ferry.props.jani", "-o", out)
    )
    assert ended.code == 0, ended.err
    document = json.loads(out.read_text("utf-8"))
    assert document["type"] in ("mdp", "dtmc")
    assert [entry["name"] for entry in document["properties"]] == [
        "safe",
        "min_fail",
        "max_goal",
        "max_safe_goal",
    ]
    assert load_task(document, property="min_fail").property.failure is not None


def test_a_task_is_written_as_one_of_reaching_a_goal(run: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "ferry.jani"
    files = (data / "ferry.jani", "--properties", data / "ferry.props.jani")
    ended = run("export", *files, "--form", "goal-reaching", "-o", out)
    assert ended.code == 0, ended.err
    (entry,) = json.loads(out.read_text("utf-8"))["properties"]
    assert entry["name"] == "reach"


def test_a_bundled_task_is_written_by_its_name(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "line.jani"
    ended = run("export", "OneWayLine", "--const", "packages=1", "locations=4", "-o", out)
    assert ended.code == 0, ended.err
    assert load_task(out, property="min_fail").name == "one_way_line_1_4_det"


def test_open_constants_get_their_values(run: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "handover.jani"
    arguments = ("--const", "N=3", "--failure", "false", "-o", out)
    assert run("export", data / "handover.jani", *arguments).code == 0
    load_task(json.loads(out.read_text("utf-8")), property="safe")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["die.jani", "-o", "out.jani"], "no failure condition"),
        (["missing.jani", "--failure", "true", "-o", "out.jani"], "missing.jani"),
        (["die.jani", "--failure", "true", "--form", "other", "-o", "out.jani"], "--form"),
        (["die.jani", "--failure", "true"], "--out"),
        (
            ["die.jani", "--failure", "true", "--form", "goal-reaching", "-o", "out.jani"],
            "standard form",
        ),
    ],
)
def test_bad_input_ends_with_2_and_is_named_without_a_traceback(
    run: Run, data: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], part: str
) -> None:
    monkeypatch.chdir(data)
    ended = run("export", *arguments)
    assert ended.code == 2
    assert part in ended.err
    assert "Traceback" not in ended.err
    assert not (data / "out.jani").exists()
