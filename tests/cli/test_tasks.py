from __future__ import annotations

import json
from pathlib import Path

import pytest

from safetest_gym.envs.tasks import NAMES, make_generator
from safetest_gym.task import load_task
from tests.cli.conftest import Run


def test_list_names_every_bundled_task_with_its_parameters(run: Run) -> None:
    ended = run("tasks", "list", "--json")
    tasks = {row["id"]: row["parameters"] for row in json.loads(ended.out)["tasks"]}
    assert ended.code == 0
    assert set(tasks) == {f"safetest/{name}-v0" for name in NAMES}
    assert tasks["safetest/OneWayLine-v0"]["packages"] == 15


def test_list_for_people_shows_options(run: Run) -> None:
    ended = run("tasks", "list")
    assert "safetest/Transport-v0" in ended.out
    assert "--max-swaps null" in ended.out


def test_a_written_task_is_the_generated_one(run: Run, tmp_path: Path) -> None:
    ended = run(
        "tasks", "write", "safetest/OneWayLine-v0", "--packages", 3, "--json", "-o", tmp_path
    )
    written = json.loads(ended.out)
    task = load_task(written["model"], written["properties"])
    generator = make_generator("OneWayLine", {"packages": 3})
    assert (
        task.digest == load_task(generator.model(), {"properties": generator.properties()}).digest
    )


@pytest.mark.parametrize(
    ("name", "options", "file"),
    [
        ("NPuzzle", ["--cost-bound", "null", "--variant=ignoring"], "n_puzzle"),
        (
            "FlappyBird",
            ["--walls", "[[3, 1, 2]]", "--skip", "true"],
            "flappy_bird_20_10_skip_3-1-2",
        ),
        ("RoversMarsMini", [], "rovers_2_2_b10_r2_s1"),
    ],
)
def test_options_are_the_generators_parameters(
    run: Run, tmp_path: Path, name: str, options: list[str], file: str
) -> None:
    ended = run("tasks", "write", name, *options, "-o", tmp_path / "new")
    assert ended.code == 0, ended.err
    model, properties = ended.out.split()
    assert Path(model).name.startswith(file)
    assert Path(properties).name == f"{Path(model).stem}.props.jani"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["OneWayLines"], "unknown task 'OneWayLines' (did you mean 'OneWayLine'?)"),
        (["OneWayLine", "--package", "3"], "no option --package (did you mean --packages?)"),
        (["OneWayLine", "--packages", "x"], "--packages must be a whole number, got 'x'"),
        (["OneWayLine", "--packages", "true"], "--packages must be a whole number"),
        (["OneWayLine", "--packages"], "--packages needs a value"),
        (["OneWayLine", "--packages", "3", "--packages=4"], "--packages is given twice"),
        (["OneWayLine", "--packages", "0"], "packages must be an integer at least 1, got 0"),
        (["OneWayLine", "--icy", "5"], "--icy must be a JSON list, got '5'"),
        (["OneWayLine", "--dec-slips", "1"], "--dec-slips must be true or false, got '1'"),
    ],
)
def test_bad_options_are_told(run: Run, tmp_path: Path, arguments: list[str], message: str) -> None:
    ended = run("tasks", "write", *arguments, "-o", tmp_path)
    assert ended.code == 2
    assert message in ended.err
    assert not list(tmp_path.iterdir())
