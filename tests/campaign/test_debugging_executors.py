"""The loop gives the same faults and the same policy wherever its runs are done."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from safetest_gym.campaign.debugging import DebugConfig, debug_policy
from safetest_gym.campaign.executors import Executor, make_executor
from safetest_gym.campaign.pipeline import TestPlan
from safetest_gym.faults.store import FaultStore
from safetest_gym.repair.repairing import RepairOptions
from tests.campaign.losing import Assassin
from tests.campaign.test_debugging import line, net, trees

PLACES = (
    pytest.param("processes", 2, False, id="two processes"),
    pytest.param("processes", 4, False, id="four processes"),
    pytest.param("processes", 2, True, id="two processes, one killed"),
    pytest.param(
        "ray",
        2,
        True,
        id="Ray, one of two workers killed",
        marks=pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed"),
    ),
)


def looped(
    method: Any, folder: Path, executor: Executor | None = None, killer: Assassin | None = None
) -> tuple[Any, ...]:
    """Everything that must not depend on who does the runs."""
    config = DebugConfig(
        repair=RepairOptions(method=method),
        test=TestPlan(runs=3000, seed=3),
        debugging_starts=300,
        evaluation_starts=50,
        iterations=2,
    )
    policy = net() if method == "finetune" else trees()
    result = debug_policy(
        line(), policy, config=config, directory=folder, watch=killer, executor=executor
    )
    with FaultStore(folder / "faults.db") as store:
        faults = [str(entry.fault.as_dict(line())) for entry in store.faults(line())]
    rows = [row.as_dict() for row in result.iterations]
    for row in rows:
        del row["seconds"]
        for part in ("repair", "verification"):
            if row[part]:
                row[part].pop("seconds", None)
                row[part].pop("statistics", None)
    return hashlib.sha256(result.file.read_bytes()).hexdigest(), faults, result.end, rows


@cache
def alone(method: str, folder: Path) -> tuple[Any, ...]:
    return looped(method, folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("serial")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds workers in /proc")
@pytest.mark.parametrize("method", ["penalty-trees", "finetune"])
@pytest.mark.parametrize(("name", "workers", "kill"), PLACES)
def test_faults_and_final_policy_are_the_same_on_all_executors(
    name: Any, workers: int, kill: bool, method: str, folder: Path, tmp_path: Path
) -> None:
    with make_executor(name, workers=workers) as executor:
        found = looped(method, tmp_path, executor, Assassin(0, executor if kill else None))
        assert (executor.lost > 0) == kill
    expected = alone(method, folder / method)
    assert len(expected[1]) > 20
    assert len(expected[3]) > 1
    assert found == expected
