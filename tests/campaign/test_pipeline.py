from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from safetest_gym.campaign.executors import make_executor
from safetest_gym.campaign.pipeline import CHUNK, ChunkResult, FaultTest, TestPlan
from safetest_gym.engine import machine
from safetest_gym.errors import ConfigError
from safetest_gym.faults import FaultStore
from safetest_gym.policies import Interface, RandomPolicy
from safetest_gym.task import Task
from tests.oracles.random_tasks import grid_task, random_task


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    directory = tmp_path_factory.mktemp("code")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "cache_directory", lambda: directory)
        yield


def setting() -> tuple[Task, RandomPolicy]:
    task = random_task(3, states=60)
    return task, RandomPolicy(Interface.of(task), 1)


def plain(result: ChunkResult, task: Task) -> dict[str, Any]:
    data = result.as_dict(task)
    del data["seconds"]
    return data


def outcome(test: FaultTest) -> list[dict[str, Any]]:
    return [plain(result, test.task) for result in test]


@pytest.mark.parametrize("workers", [1, 4])
def test_the_number_of_processes_changes_nothing(workers: int) -> None:
    task, policy = setting()
    plan = TestPlan(runs=3 * CHUNK + 10, strategy="weighted", lookahead=2, seed=7)
    alone = outcome(FaultTest(task, policy, plan))
    with make_executor("processes", workers=workers) as executor:
        assert outcome(FaultTest(task, policy, plan, executor=executor)) == alone
    assert sum(map(len, (chunk["faults"] for chunk in alone))) > 3


def test_what_a_budget_leaves_open_does_not_depend_on_processes_either() -> None:
    task, policy = setting()
    plan = TestPlan(runs=3 * CHUNK, strategy="uniform", lookahead=1, decider_states=8)
    alone = outcome(FaultTest(task, policy, plan))
    with make_executor("processes", workers=2) as executor:
        assert outcome(FaultTest(task, policy, plan, executor=executor)) == alone


def test_chunks_that_are_stored_are_not_run_again(tmp_path: Path) -> None:
    task, policy = setting()
    plan = TestPlan(runs=4 * CHUNK, strategy="uniform", lookahead=1)
    store = FaultStore(tmp_path / "s.db")
    whole = outcome(FaultTest(task, policy, plan))
    first = list(itertools.islice(FaultTest(task, policy, plan, store=store, version="v"), 2))
    again = list(FaultTest(task, policy, plan, store=store, version="v"))
    assert [result.resumed for result in first] == [False, False]
    assert [result.resumed for result in again] == [True, True, False, False]
    assert [plain(result, task) for result in again] == whole
    stored = {(entry.fault.state.tobytes(), entry.fault.action) for entry in store.faults(task)}
    found = {(f.state.tobytes(), f.action) for result in again for f in result.faults}
    assert stored == found


def test_more_runs_go_on_where_fewer_ended(tmp_path: Path) -> None:
    task, policy = setting()
    store = FaultStore(tmp_path / "s.db")

    def resumed(runs: int, **options: Any) -> list[bool]:
        plan = TestPlan(runs=runs, strategy="uniform", lookahead=1, **options)
        return [r.resumed for r in FaultTest(task, policy, plan, store=store, version="v")]

    assert resumed(CHUNK + 5) == [False, False]
    assert resumed(2 * CHUNK) == [True, False]  # the second chunk is larger now
    assert resumed(2 * CHUNK) == [True, True]
    assert resumed(2 * CHUNK, seed=1) == [False, False]


def test_another_version_of_the_policy_starts_anew(tmp_path: Path) -> None:
    task, policy = setting()
    store = FaultStore(tmp_path / "s.db")
    plan = TestPlan(runs=10, strategy="uniform", lookahead=1)
    for version in ("a", "b"):
        (result,) = FaultTest(task, policy, plan, store=store, version=version)
        assert not result.resumed


def test_no_runs_give_no_chunks() -> None:
    task = grid_task()
    policy = RandomPolicy(Interface.of(task), 1)
    assert list(FaultTest(task, policy, TestPlan(runs=0))) == []


def test_wrong_options_are_named() -> None:
    with pytest.raises(ConfigError, match="runs"):
        TestPlan(runs=-1)
