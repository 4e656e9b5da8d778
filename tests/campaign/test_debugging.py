"""The loop removes faults, tells why it stops, and survives a kill."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safetest_gym.campaign import debugging_steps
from safetest_gym.campaign.debugging import DebugConfig, debug_policy
from safetest_gym.campaign.debugging_starts import split_starts, starting_from
from safetest_gym.campaign.known_good import Visited
from safetest_gym.campaign.pipeline import TestPlan
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.envs.tasks.two_way_line import TwoWayLine
from safetest_gym.errors import ConfigError
from safetest_gym.faults.store import FaultStore
from safetest_gym.policies import (
    Interface,
    Layer,
    MlpPolicy,
    Policy,
    TablePolicy,
    distil,
    load_policy,
)
from safetest_gym.repair.repairing import RepairOptions
from safetest_gym.repair.requests import KeepSet
from safetest_gym.repair.stop import HardStop
from safetest_gym.task import Task, load_task
from tests.cli.test_faults import network

CONFIG = DebugConfig(
    test=TestPlan(runs=400),
    debugging_starts=400,
    evaluation_starts=100,
    iterations=8,
    visited=200,
    verify="none",
)


@cache
def line() -> Task:
    generator = TwoWayLine(packages=4, locations=6)
    return load_task(generator.model(), {"properties": generator.properties()})


@cache
def net() -> MlpPolicy:
    return network(line(), 6)


@cache
def trees() -> Policy:
    return distil(net(), line(), runs=100, trees=8)


def config(*method: str, **changes: Any) -> DebugConfig:
    # Solvers improve as long as they may; gradient steps end when they are done.
    limit = 60.0 if "finetune" in method else 0.2
    options = RepairOptions(method=method, work=limit)  # type: ignore[arg-type]  # methods
    return dataclasses.replace(CONFIG, repair=options, **changes)


@pytest.mark.parametrize("method", ["leaves", "penalty-trees", "last-layer", "finetune"])
def test_every_policy_of_the_loop_fixes_every_fault_found_until_then(
    method: str, tmp_path: Path
) -> None:
    policy = trees() if method in ("leaves", "penalty-trees") else net()
    result = debug_policy(line(), policy, config=config(method), directory=tmp_path)
    assert len(result.iterations) > 1
    assert all(row.faults_open == 0 for row in result.iterations[:-1])
    assert result.iterations[0].faults_new > 0
    assert result.end in ("no-fault", "iterations")


def test_fewer_starts_are_unsafe_after_the_loop() -> None:
    result = debug_policy(line(), net(), config=config("finetune"))
    first, last = result.iterations[0], result.iterations[-1]
    assert first.exact
    assert last.unsafe_rate < first.unsafe_rate / 4
    assert last.comparison is not None
    assert last.comparison["made_safe"] > 0


def test_the_folder_says_what_was_done(tmp_path: Path) -> None:
    result = debug_policy(line(), net(), config=config("last-layer"), directory=tmp_path)
    data = json.loads((tmp_path / "loop.json").read_text())
    assert data["version"] == 1
    assert data["task"] == line().name
    assert data["digest"] == line().digest
    assert data["method"] == "last-layer"
    assert data["end"] == result.end
    assert [row["number"] for row in data["iterations"]] == list(range(len(result.iterations)))
    assert data["iterations"][0]["repair"]["method"] == "last-layer"
    last = load_policy(tmp_path / "policies" / f"{len(result.iterations) - 1:03d}.pt", line())
    states = np.array(split_starts(line(), 50, 50, 0).debugging)
    masks = np.asarray(line().applicable_many(states))
    assert (last.actions(states, masks) == result.policy.actions(states, masks)).all()


def test_a_finished_loop_is_read_back(tmp_path: Path) -> None:
    first = debug_policy(line(), net(), config=config("last-layer"), directory=tmp_path)
    again = debug_policy(line(), net(), config=config("last-layer"), directory=tmp_path)
    assert again.iterations == first.iterations


def test_a_loop_that_ran_out_of_repairs_goes_on_with_more(tmp_path: Path) -> None:
    short = config("penalty-trees", iterations=1)
    stopped = debug_policy(line(), trees(), config=short, directory=tmp_path)
    assert stopped.end == "iterations"
    assert stopped.iterations[-1].faults_open == stopped.iterations[-1].faults_new
    resumed = debug_policy(line(), trees(), config=config("penalty-trees"), directory=tmp_path)
    whole = debug_policy(line(), trees(), config=config("penalty-trees"))
    assert _facts(resumed) == _facts(whole)


def _facts(result: Any) -> list[Any]:
    rows = [dataclasses.replace(row, seconds={}) for row in result.iterations]
    for row in rows:
        if row.repair is not None:
            row.repair.pop("seconds")
    return rows


def test_another_loop_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    debug_policy(line(), net(), config=config("last-layer", iterations=0), directory=tmp_path)
    with pytest.raises(ConfigError, match="another method"):
        debug_policy(line(), net(), config=config("finetune"), directory=tmp_path)


def test_a_policy_that_no_method_repairs_is_refused() -> None:
    table = TablePolicy(np.zeros((1, line().num_variables)), np.zeros(1, np.int64), net().interface)
    with pytest.raises(ConfigError, match="only tree ensembles and networks"):
        debug_policy(line(), table, config=CONFIG)


def test_a_method_for_another_kind_of_policy_is_refused_before_anything_is_kept(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match="last-layer repairs networks"):
        debug_policy(line(), trees(), config=config("last-layer"), directory=tmp_path / "loop")
    assert not (tmp_path / "loop").exists()


def test_a_task_without_a_failure_condition_is_refused() -> None:
    task = line()
    harmless = dataclasses.replace(task.property, failure=None)
    with pytest.raises(ConfigError, match="no failure condition"):
        debug_policy(Task(task.model, harmless, task.action_mode), net(), config=CONFIG)


def test_a_folder_that_lost_its_faults_or_cannot_be_made_is_refused(tmp_path: Path) -> None:
    short = config("penalty-trees", iterations=1)
    debug_policy(line(), trees(), config=short, directory=tmp_path / "loop")
    (tmp_path / "loop" / "faults.db").unlink()
    with pytest.raises(ConfigError, match=r"faults\.db is gone"):
        debug_policy(line(), trees(), config=short, directory=tmp_path / "loop")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be kept in"):
        debug_policy(line(), trees(), config=short, directory=tmp_path / "file")


def test_all_faults_of_the_unsafe_runs_that_verification_finds_are_repaired() -> None:
    blind = config("penalty-trees", debugging_starts=1, evaluation_starts=1, verify="explicit")
    few = dataclasses.replace(blind, test=TestPlan(runs=1), exhaust=0, iterations=6)
    result = debug_policy(line(), trees(), config=few)
    asked = [row for row in result.iterations if row.verification is not None]
    assert asked[0].verification is not None
    assert asked[0].verification["verdict"] == "UNSAFE"
    assert asked[0].faults_new == asked[0].verification["faults"] > 1
    assert asked[0].faults_open == 0


def test_unsafe_runs_without_a_fault_end_the_loop_with_the_reason() -> None:
    generator = OneWayLine(packages=3, locations=4, variant="icy")
    task = load_task(generator.model(), {"properties": generator.properties()})
    result = debug_policy(task, network(task, 1), config=config("last-layer", "finetune"))
    assert result.end == "unavoidable"
    assert "no policy can be sure not to fail" in result.reason
    assert result.iterations[-1].unavoidable == result.iterations[-1].unsafe_runs > 0


def _blind() -> MlpPolicy:
    """A network that sees one variable only."""
    names = Interface.of(line(), variables=[line().variables[-1].name])
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(4, 1)), rng.normal(size=(line().num_actions, 4))
    layers = (
        Layer(weights[0].astype(np.float32), np.zeros(4, np.float32), "relu"),
        Layer(weights[1].astype(np.float32), np.zeros(line().num_actions, np.float32)),
    )
    return MlpPolicy(layers, names)


def test_faults_that_no_such_policy_can_fix_end_the_loop_with_the_reason() -> None:
    result = debug_policy(line(), _blind(), config=config("last-layer", iterations=30))
    assert result.end == "stuck"
    assert "known faults could not be fixed" in result.reason
    assert result.iterations[-1].faults_open > 0


def test_a_repair_that_fails_ends_the_loop_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def everything(visited: Visited, most: int, penalty: float) -> KeepSet:
        """Decisions to keep that are faults, too."""
        return KeepSet(states=visited.states, applicable=visited.applicable)

    monkeypatch.setattr(Visited, "keep", everything)
    result = debug_policy(line(), net(), config=config("last-layer"))
    assert result.end == "repair-failed"
    assert "no change of the last layer" in result.reason


@pytest.mark.parametrize(("debugging", "evaluation"), [(10, 5), (300, 200)])
def test_debugging_and_evaluation_starts_are_different_start_states(
    debugging: int, evaluation: int
) -> None:
    found = split_starts(line(), debugging, evaluation, 3)
    assert found.disjoint
    assert (len(found.debugging), len(found.evaluation)) == (debugging, evaluation)
    both = np.concatenate([found.debugging, found.evaluation])
    assert len(np.unique(both, axis=0)) == debugging + evaluation
    assert all(line().initial.contains(state) for state in both)


def test_a_task_with_few_starts_uses_all_of_them_for_both() -> None:
    count = line().initial.count()
    assert count is not None
    found = split_starts(line(), count, 1, 0)
    assert not found.disjoint
    assert len(found.debugging) == len(found.evaluation) == count


def test_a_task_with_chosen_starts_is_the_same_task_otherwise() -> None:
    states = split_starts(line(), 7, 5, 0).debugging
    task = starting_from(line(), states)
    assert task.digest == line().digest
    assert task.initial.count() == 7
    assert all(task.initial.contains(state) for state in states)


_KILLED = """
import sys
from tests.campaign.test_debugging import config, debug_policy, line, trees
debug_policy(line(), trees(), config=config("penalty-trees"), directory=sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_loop_goes_on_and_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole = debug_policy(line(), trees(), config=config("penalty-trees"))
    command = [sys.executable, "-c", _KILLED, str(tmp_path)]
    path = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    rng = np.random.default_rng(0)
    for _ in range(6):
        process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path})
        time.sleep(float(rng.uniform(1.5, 6.0)))
        process.send_signal(signal.SIGKILL)
        process.wait()
    resumed = debug_policy(line(), trees(), config=config("penalty-trees"), directory=tmp_path)
    assert _facts(resumed) == _facts(whole)


def test_a_loop_without_limits_of_time_does_not_depend_on_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for seconds in (0.0, 1000.0):  # that pass at each look at the clock
        ticks = itertools.count()
        monkeypatch.setattr(time, "monotonic", lambda: seconds * next(ticks))  # noqa: B023
        place = tmp_path / f"{seconds:g}"
        debug_policy(line(), trees(), config=config("leaves", verify="auto"), directory=place)
        monkeypatch.undo()
        files.append([file.read_bytes() for file in sorted((place / "policies").iterdir())])
    assert len(files[0]) > 1
    assert files[0] == files[1]


def test_seconds_that_are_over_end_a_test_that_goes_on_later(tmp_path: Path) -> None:
    plan = dataclasses.replace(CONFIG.test, runs=600)
    short = config("leaves", test=plan, seconds=1e-6)
    cut = debug_policy(line(), trees(), config=short, directory=tmp_path)
    assert cut.end == "seconds"
    assert len(cut.iterations) == 1
    whole = config("leaves", test=plan)
    resumed = debug_policy(line(), trees(), config=whole, directory=tmp_path)
    assert resumed.end in ("no-fault", "iterations")
    assert resumed.iterations[0].faults_new > 0


def test_faults_whose_alternatives_time_hid_are_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: list[bool] = []

    def hidden(_: Any, states: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        late.append(True)
        return np.zeros((len(states), line().num_actions), np.bool_)

    monkeypatch.setattr("safetest_gym.faults.exhaustive.safe_alternatives", hidden)
    monkeypatch.setattr(HardStop, "left", lambda stop: 0.0 if late else stop.seconds)
    few = TestPlan(runs=1)
    cut = debug_policy(
        line(), trees(), config=config("leaves", test=few, seconds=1e6), directory=tmp_path
    )
    assert (cut.end, cut.iterations[0].faults_total) == ("seconds", cut.iterations[0].unsafe_runs)
    monkeypatch.undo()
    resumed = debug_policy(
        line(), trees(), config=config("leaves", test=few, seconds=1e7), directory=tmp_path
    )
    assert resumed.iterations[0].faults_total > cut.iterations[0].faults_total
    assert resumed.iterations[0].faults_open == 0


def test_a_loop_that_settles_ends_with_a_proof_and_changes_only_faults(tmp_path: Path) -> None:
    few = {"debugging_starts": 2, "test": TestPlan(runs=1), "exhaust": 0, "iterations": 30}
    looking = config("leaves", verify="explicit", settle=1, **few)
    result = debug_policy(line(), trees(), config=looking, directory=tmp_path)
    assert result.end == "proof"
    methods = [row.repair["method"] for row in result.iterations if row.repair]
    assert methods[-1] == "penalty-trees"
    count, folder = len(methods), tmp_path / "policies"
    last = [load_policy(folder / f"{number:03d}.json", line()) for number in (count - 1, count)]
    states = line().initial.enumerate(1000)
    masks = line().applicable_many(states)
    with FaultStore(tmp_path / "faults.db") as store:
        known = {tuple(entry.fault.state.tolist()) for entry in store.faults(line())}
    before, after = (policy.actions(states, masks) for policy in last)
    assert all(tuple(state) in known for state in states[before != after].tolist())


def test_settling_repairs_what_lies_behind_its_repairs_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(debugging_steps, "_MORE_RUNS", 0)
    few = {"debugging_starts": 2, "test": TestPlan(runs=1), "exhaust": 0, "iterations": 5}
    looking = config("leaves", verify="explicit", settle=1, **few)
    result = debug_policy(line(), trees(), config=looking)
    repairs = [row.repair for row in result.iterations if row.repair]
    assert [report["trees_added"] for report in repairs] == [1] * 5  # made anew, not piled up
    assert all(report["fixed"] == report["faults"] for report in repairs)
    monkeypatch.setattr(debugging_steps.Steps, "_has_more", lambda *_: False)
    one_by_one = debug_policy(line(), trees(), config=looking)
    assert result.iterations[-1].faults_total > 2 * one_by_one.iterations[-1].faults_total
