from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.conftest import Run

pytest.importorskip("stable_baselines3")

import torch

from safetest_gym.callbacks.run_folder import RunFolder
from safetest_gym.cli.train import interrupts_between_steps

LINE = ("OneWayLine", "--const", "packages=2", "locations=4")
SMALL = ("--net", "8", "--envs", "4")


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    """The command sets torch's threads for its process, which here is pytest's."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def test_a_bundled_task_is_trained_by_name(run: Run, tmp_path: Path) -> None:
    ended = run("train", *LINE, *SMALL, "--steps", 400, "--out", tmp_path, "--json")
    assert ended.code == 0, ended.err
    summary = json.loads(ended.out)
    assert summary["algo"] == "maskable-ppo"
    assert summary["steps"] == 400
    assert set(summary["evaluation"]["ends"]) == {
        "goal",
        "failing",
        "dead end",
        "cycle",
        "step limit",
    }
    assert Path(summary["model"]).exists()
    assert "400 steps: goal" in ended.err


@pytest.mark.parametrize("algo", ["maskable-dqn", "ppo", "dqn"])
def test_a_model_is_trained_with_any_algorithm(
    run: Run, data: Path, tmp_path: Path, algo: str
) -> None:
    files = (data / "ferry.jani", "--properties", data / "ferry.props.jani")
    ended = run("train", *files, *SMALL, "--algo", algo, "--steps", 300, "--out", tmp_path)
    assert ended.code == 0, ended.err
    assert "final policy" in ended.out
    assert "cycle" in ended.out
    found = run("evaluate", *files, "--policy", tmp_path / "model.zip", "--starts", 5, "--json")
    assert found.code == 0, found.err


def test_options_override_the_preset(run: Run, tmp_path: Path) -> None:
    given = ("--algo", "maskable-ppo", "--every", 200, "--seed", 3)
    plain = ("--env", '{"step_limit": 20}', "--learner", '{"gamma": 0.5}')
    ended = run("train", *LINE, *SMALL, *given, *plain, "--steps", 400, "--out", tmp_path)
    assert ended.code == 0, ended.err
    options = json.loads((tmp_path / "run.json").read_text("utf-8"))
    assert options["env"]["step_limit"] == 20
    assert options["env"]["observation"] == "normalized"
    assert options["learner"]["gamma"] == 0.5
    assert options["seed"] == 3
    assert options["net"] == [8]


def test_a_finished_run_says_so(run: Run, tmp_path: Path) -> None:
    command = ("train", *LINE, *SMALL, "--steps", 200, "--out", tmp_path)
    assert "had finished" not in run(*command).out
    ended = run(*command)
    assert ended.code == 0
    assert "had finished after 200 steps" in ended.out


@pytest.mark.slow
def test_a_killed_run_loses_at_most_one_interval(run: Run, tmp_path: Path) -> None:
    every = 1000
    options = (*LINE, *SMALL, "--steps", 20_000, "--every", every, "--out", tmp_path)
    command = ["train", *map(str, options), "--json"]
    process = subprocess.Popen([sys.executable, "-m", "safetest_gym", *command])
    checkpoints = tmp_path / "checkpoints"
    while process.poll() is None and _newest(checkpoints) < 4 * every:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    reached = _newest(checkpoints)
    summary = json.loads(run(*command).out)
    assert summary["resumed_at"] == reached >= 4 * every
    steps = [entry["steps"] for entry in summary["history"]]
    assert steps[-1] == summary["steps"] >= 20_000
    assert max(b - a for a, b in pairwise(steps)) <= 2 * every


def _newest(folder: Path) -> int:
    return max((int(e.name) for e in folder.glob("*") if e.name.isdigit()), default=0)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
@pytest.mark.slow
def test_an_interrupt_ends_with_130_and_says_how_to_go_on(tmp_path: Path) -> None:
    options = (*LINE, *SMALL, "--steps", 10_000_000, "--every", 400, "--out", tmp_path)
    command = [sys.executable, "-m", "safetest_gym", "train", *map(str, options)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not _newest(tmp_path / "checkpoints"):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "the same command continues" in errors
    assert "Traceback" not in errors


def test_an_interrupt_waits_for_the_end_of_the_step() -> None:
    # In the middle of torch.save it would come out as a RuntimeError.
    with interrupts_between_steps() as check:
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            check()


def test_a_second_interrupt_waits_for_nothing() -> None:
    with interrupts_between_steps():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_two_runs_in_one_folder_are_refused(run: Run, tmp_path: Path) -> None:
    with RunFolder(tmp_path).locked():
        ended = run("train", *LINE, *SMALL, "--steps", 200, "--out", tmp_path)
    assert ended.code == 2
    assert f"another run is at work in {tmp_path}" in ended.err


def test_the_network_sees_variables_through_grids(run: Run, tmp_path: Path) -> None:
    options = ("--grids", '{"truck_0": [0, 3]}', "--steps", 200, "--out", tmp_path)
    assert run("train", *LINE, *SMALL, *options).code == 0
    evaluated = ("--policy", tmp_path / "model.zip", "--starts", 5, "--json")
    assert run("evaluate", *LINE, *evaluated).code == 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["OneWayLin"], "OneWayLine"),
        (["OneWayLine", "--const", "package=3"], "packages"),
        (["OneWayLine", "--const", "packages"], "NAME=VALUE"),
        (["missing.jani"], "missing.jani"),
        (["OneWayLine", "--algo", "sarsa"], "--algo"),
        (["OneWayLine", "--net", "64,x"], "--net"),
        (["OneWayLine", "--steps", "0"], "--steps"),
        (["OneWayLine", "--env", "{"], "--env"),
        (["OneWayLine", "--env", "[1]"], "--env"),
        (["OneWayLine", "--env", '{"step_limt": 1}'], "step_limit"),
        (["OneWayLine", "--learner", '{"momentum": 1}'], "takes no momentum"),
        (["OneWayLine", "--learner", '{"gamma": "x"}'], "gamma must be a number, got 'x'"),
        (["OneWayLine", "--grids", '{"truck": [0, 1]}'], "truck_0"),
        (["OneWayLine", "--grids", '{"truck_0": [1, 0]}'], "ascending"),
    ],
)
def test_bad_input_ends_with_2_and_is_named(
    run: Run, tmp_path: Path, arguments: list[str], part: str
) -> None:
    ended = run("train", *arguments, "--out", tmp_path / "run")
    assert ended.code == 2
    assert part in ended.err
    assert "Traceback" not in ended.err


def test_a_folder_with_another_run_is_refused(run: Run, tmp_path: Path) -> None:
    command = ("train", *LINE, *SMALL, "--out", tmp_path, "--steps")
    assert run(*command, 200).code == 0
    ended = run(*command, 300)
    assert ended.code == 2
    assert "steps 200 there, 300 now" in ended.err
