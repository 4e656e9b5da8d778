"""The doctor tells what is there and tries it."""

from __future__ import annotations

import json
from importlib import metadata

import pytest

from safetest_gym.cli import doctor
from safetest_gym.engine.interpreter import Interpreter
from safetest_gym.envs.options import open_task
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from tests.cli.conftest import Run
from tests.oracles.exploration import reachable


def test_a_healthy_installation_is_called_good(run: Run) -> None:
    ended = run("doctor", "--json")
    assert ended.code == 0
    found = json.loads(ended.out)
    assert found["good"] is True
    assert set(found) == {"versions", "solvers", "cache", "self-test", "good"}
    assert found["versions"]["numpy"]["text"] == metadata.version("numpy")


def test_what_fails_is_named_and_ends_with_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_STATES", 1)
    ended = run("doctor")
    assert ended.code == 1
    (line,) = [line for line in ended.out.splitlines() if "FAILED" in line]
    assert "engine" in line


def test_a_missing_needed_package_is_a_failure(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_NEEDED", ("no-such-package",))
    ended = run("doctor", "--json")
    assert ended.code == 1
    found = json.loads(ended.out)
    assert found["versions"]["no-such-package"] == {"text": "not installed", "good": False}


def test_the_number_of_states_that_it_expects_is_the_interpreter_s() -> None:
    task, _ = open_task(OneWayLine(packages=2, locations=4), {})
    starts = tuple(tuple(row) for row in task.initial.enumerate(1000).tolist())
    interpreter = Interpreter(task.model)
    assert len(reachable(interpreter, starts, 10_000)) == doctor._STATES
