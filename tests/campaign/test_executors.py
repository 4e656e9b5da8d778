from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from safetest_gym.campaign.crew import MOST_LOSSES
from safetest_gym.campaign.executors import Executor, make_executor
from safetest_gym.campaign.fuzzing import fuzz
from safetest_gym.campaign.pipeline import CHUNK, FaultTest, TestPlan
from safetest_gym.errors import ConfigError, StateError, WorkerError
from safetest_gym.fuzzing import FuzzBudget, Fuzzer, Runs
from safetest_gym.policies import Interface, RandomPolicy
from safetest_gym.policies.evaluation import EvaluationConfig, evaluate
from safetest_gym.task import Task
from tests.campaign.deadly import DeadlyPolicy, Squares
from tests.oracles.random_tasks import random_task

NAMES = (
    "serial",
    "processes",
    pytest.param(
        "ray",
        marks=[
            pytest.mark.slow,
            pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed"),
        ],
    ),
)


@pytest.fixture(scope="module", params=NAMES)
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    name: Any = request.param
    with make_executor(name, workers=1 if name == "serial" else 2) as made:
        yield made


@pytest.fixture
def distant(executor: Executor) -> Executor:
    """Only those whose workers can be lost."""
    if executor.workers == 1:
        pytest.skip("it has no workers to lose")
    return executor


def test_answers_come_in_the_order_of_the_jobs(executor: Executor, tmp_path: Path) -> None:
    answers = executor.map(Squares(tmp_path, pause=0.01), range(20))
    assert list(answers) == [job * job for job in range(20)]


def test_work_is_opened_once_in_each_worker(executor: Executor, tmp_path: Path) -> None:
    work = Squares(tmp_path, pause=0.01)
    list(executor.map(work, range(12)))
    assert 1 <= work.count("open") <= executor.workers


def test_no_jobs_give_no_answers(executor: Executor, tmp_path: Path) -> None:
    assert list(executor.map(Squares(tmp_path), [])) == []
    assert not list(tmp_path.iterdir())


def test_what_a_job_raises_is_raised_in_its_turn(executor: Executor, tmp_path: Path) -> None:
    answers = executor.map(Squares(tmp_path, wrong=3), range(9))
    assert [next(answers) for _ in range(3)] == [0, 1, 4]
    with pytest.raises(StateError, match="job 3 is wrong"):
        next(answers)
    assert list(executor.map(Squares(tmp_path), range(3))) == [0, 1, 4]


def test_closing_the_answers_cancels_the_jobs(executor: Executor, tmp_path: Path) -> None:
    work = Squares(tmp_path, pause=0.05)
    answers = executor.map(work, range(200))
    next(answers)
    before = time.monotonic()
    answers.close()  # type: ignore[attr-defined]  # a generator
    assert time.monotonic() - before < 60
    assert work.count("job") < 100
    assert list(executor.map(Squares(tmp_path), range(3))) == [0, 1, 4]


def test_jobs_of_lost_workers_are_done_again_and_counted_once(
    distant: Executor, tmp_path: Path
) -> None:
    work, before = Squares(tmp_path, deadly=(4, 5, 11)), distant.lost
    assert list(distant.map(work, range(16))) == [job * job for job in range(16)]
    assert distant.lost - before == 3
    assert [work.count(f"job {job}") for job in (4, 5, 11)] == [2, 2, 2]


def test_a_job_that_no_worker_survives_ends_with_an_error(
    distant: Executor, tmp_path: Path
) -> None:
    work = Squares(tmp_path, hopeless=2)
    with pytest.raises(WorkerError, match=f"job 2 was lost with its worker {MOST_LOSSES} times"):
        list(distant.map(work, range(6)))
    assert list(distant.map(Squares(tmp_path / "."), range(3))) == [0, 1, 4]


def plain(runs: Runs) -> list[Any]:
    return [run.as_dict(runs.task) for run in runs]


@pytest.mark.parametrize("strategy", ["uniform", "greedy"])
def test_fuzzing_gives_the_same_runs(
    executor: Executor, strategy: Literal["uniform", "greedy"]
) -> None:
    task = random_task(3, states=60)
    policy = RandomPolicy(Interface.of(task), 1)
    lookahead = 1 if strategy == "uniform" else math.inf
    fuzzer = Fuzzer(task, policy, strategy=strategy, lookahead=lookahead, seed=5)
    told: list[tuple[int, int]] = []
    found = fuzz(fuzzer, 600, executor, progress=lambda *counts: told.append(counts))
    assert plain(found) == plain(fuzzer.run(600))
    assert told[-1] == (600, len(found.unsafe()))
    starts = task.initial.enumerate(100)
    assert plain(fuzz(fuzzer, starts, executor)) == plain(fuzzer.run_from(starts))


def test_no_batch_of_runs_begins_when_the_time_is_over(executor: Executor) -> None:
    task = random_task(3)
    policy = RandomPolicy(Interface.of(task), 1)
    fuzzer = Fuzzer(task, policy, budget=FuzzBudget(seconds=1e-9))
    assert plain(fuzz(fuzzer, 10_000, executor)) == plain(fuzzer.run(256))


def faults(test: FaultTest) -> list[dict[str, Any]]:
    found = [result.as_dict(test.task) for result in test]
    for result in found:
        del result["seconds"]
    return found


def rates(task: Task, policy: Any, executor: Executor | None) -> tuple[Any, ...]:
    config = EvaluationConfig(step_limit=50, seed=3)
    starts = task.initial.sample(200, np.random.default_rng(1))
    found = evaluate(policy, task, starts, 9, config=config, executor=executor)
    return found.counts.tolist(), found.steps.tolist(), found.unsafe.tolist(), found.as_json()


@pytest.mark.parametrize("native", [True, False])
def test_faults_and_rates_are_the_same(executor: Executor, native: bool, tmp_path: Path) -> None:
    task = random_task(3, states=60)
    inner = RandomPolicy(Interface.of(task), 1)
    policy: Any = inner if native else DeadlyPolicy.of(inner.interface, tmp_path / "no", math.inf)
    plan = TestPlan(runs=3 * CHUNK + 10, strategy="weighted", lookahead=2, seed=7)
    alone = faults(FaultTest(task, policy, plan))
    assert faults(FaultTest(task, policy, plan, executor=executor)) == alone
    assert sum(len(chunk["faults"]) for chunk in alone) > 3
    assert rates(task, policy, executor) == rates(task, policy, None)


def test_losing_a_worker_half_way_changes_no_fault_and_no_rate(
    distant: Executor, tmp_path: Path
) -> None:
    task, before = random_task(3, states=60), distant.lost
    interface = Interface.of(task)
    plan = TestPlan(runs=6 * CHUNK, strategy="uniform", lookahead=1)
    safe = RandomPolicy(interface, 1)
    deadly = DeadlyPolicy.of(interface, tmp_path / "first", after=4)
    assert faults(FaultTest(task, deadly, plan, executor=distant)) == faults(
        FaultTest(task, safe, plan)
    )
    deadly = DeadlyPolicy.of(interface, tmp_path / "second", after=20)
    assert rates(task, deadly, distant) == rates(task, safe, None)
    assert distant.lost - before == 2


def test_processes_end_with_their_executor(tmp_path: Path) -> None:
    executor = make_executor("processes", workers=2)
    list(executor.map(Squares(tmp_path), range(4)))
    folder = Path(executor._folder.name)  # type: ignore[attr-defined]
    assert folder.exists()
    executor.close()
    executor.close()
    assert not folder.exists()


def test_work_that_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    with make_executor("processes", workers=2) as executor:
        work: Any = lambda: None  # noqa: E731  # that is what is refused
        with pytest.raises(ConfigError, match="lambdas"):
            list(executor.map(work, [1]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "threads"}, "executor must be one of"),
        ({"name": "processes", "workers": 0}, "workers must be at least 1"),
        ({"name": "serial", "workers": 2}, "one worker"),
        ({"name": "processes", "address": "auto"}, "ray only"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make_executor(**options)


def test_a_missing_ray_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ConfigError, match=r"safetest-gym\[ray\]"):
        make_executor("ray")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_an_address_without_a_cluster_is_named() -> None:
    with suppress(ImportError):
        import ray

        ray.shutdown()
    with pytest.raises(ConfigError, match="no Ray cluster at"):
        make_executor("ray", address="127.0.0.1:1")
