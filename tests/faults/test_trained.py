"""The whole way with a policy that was really trained, a network by MaskablePPO."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest
import sb3_contrib

import safetest_gym  # noqa: F401  # registers the ids
from safetest_gym.campaign.pipeline import FaultTest, TestPlan
from safetest_gym.deciders import Verdict, make_decider
from safetest_gym.deciders.checking import check_certificate
from safetest_gym.faults import find_faults
from safetest_gym.fuzzing import Fuzzer, Runs
from safetest_gym.policies import Policy, policy_from_sb3
from safetest_gym.task import Task

SIZE: dict[str, Any] = {"packages": 2, "locations": 5, "variant": "icy"}


@pytest.fixture(scope="module")
def trained() -> tuple[Task, Policy]:
    env = gymnasium.make("safetest/TwoWayLine-v0", **SIZE, step_limit=60)
    model = sb3_contrib.MaskablePPO(
        "MlpPolicy", env, n_steps=256, gamma=0.97, seed=1, device="cpu"
    ).learn(2_000)
    task: Task = env.unwrapped.task  # type: ignore[attr-defined]  # ours
    return task, policy_from_sb3(model).bind(task)


def fuzzed(task: Task, policy: Policy, strategy: Any, lookahead: float) -> Runs:
    return Fuzzer(task, policy, strategy=strategy, lookahead=lookahead, seed=3).run(600)


@pytest.mark.slow
def test_bias_finds_no_fewer_unsafe_runs_of_a_trained_policy(trained: tuple[Task, Policy]) -> None:
    uniform = len(fuzzed(*trained, "uniform", 1).unsafe())
    greedy = len(fuzzed(*trained, "greedy", math.inf).unsafe())
    weighted = len(fuzzed(*trained, "weighted", math.inf).unsafe())
    assert 0 < uniform < 600
    assert min(greedy, weighted) >= uniform


@pytest.mark.slow
def test_every_fault_of_a_trained_policy_is_proven_and_replays(
    trained: tuple[Task, Policy],
) -> None:
    task, policy = trained
    decider = make_decider("otf", task)
    runs = fuzzed(task, policy, "greedy", math.inf)
    found = find_faults(task, policy, runs.unsafe(), decider)
    assert len(found.faults) > 5
    for fault in found.faults:
        mask = task.applicable(fault.state)
        assert policy.actions(fault.state.reshape(1, -1), mask.reshape(1, -1))[0] == fault.action
        outcomes = {
            number: [tuple(state.tolist()) for _, state in successors]
            for number, successors in task.successors(fault.state)
        }
        assert tuple(fault.outcome.tolist()) in outcomes[fault.action]
        for state, verdict in ((fault.state, Verdict.SAFE), (fault.outcome, Verdict.UNSAFE)):
            certificate = decider.certificate(state)
            assert certificate.verdict is verdict
            check_certificate(task, certificate)
        for action in fault.alternatives:
            states = np.array(outcomes[action], task.dtype)
            assert (decider.decide_many(states) == Verdict.SAFE).all()


@pytest.mark.slow
def test_the_whole_test_of_a_trained_policy_finds_what_its_parts_find(
    trained: tuple[Task, Policy],
) -> None:
    task, policy = trained
    results = list(FaultTest(task, policy, TestPlan(runs=600, seed=3)))
    runs = fuzzed(task, policy, "greedy", math.inf)
    found = find_faults(task, policy, runs.unsafe())
    assert sum(result.ends["failing"] for result in results) == len(runs.unsafe())
    together = {(f.state.tobytes(), f.action) for r in results for f in r.faults}
    assert together == {(f.state.tobytes(), f.action) for f in found.faults}
