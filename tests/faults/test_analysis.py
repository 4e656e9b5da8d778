from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from safetest_gym.deciders import Budget, Verdict, make_decider
from safetest_gym.deciders.checking import check_certificate
from safetest_gym.engine import machine
from safetest_gym.envs.options import open_task
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.errors import ConfigError
from safetest_gym.faults import FaultAnalysis, find_faults
from safetest_gym.fuzzing import End, Fuzzer, Runs
from safetest_gym.policies import Interface, RandomPolicy
from safetest_gym.task import Task
from tests.oracles.deciding import BruteDecider
from tests.oracles.fuzzing import SlowFuzzing
from tests.oracles.random_tasks import random_task

Direction = Any


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    directory = tmp_path_factory.mktemp("code")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "cache_directory", lambda: directory)
        yield


def setting(seed: int, mode: Any = "label") -> tuple[Task, RandomPolicy, Runs]:
    task = random_task(seed, states=18, mode=mode)
    policy = RandomPolicy(Interface.of(task), seed)
    runs = Fuzzer(task, policy, max_steps=40, seed=seed).run(60)
    return task, policy, runs


def key(state: NDArray[Any]) -> tuple[Any, ...]:
    return tuple(state.tolist())


def expected_steps(runs: Runs, slow: SlowFuzzing, decider: BruteDecider) -> list[tuple[int, ...]]:
    """[J] Def. 3 word by word."""
    found = []
    for run in runs:
        steps = []
        for step in range(len(run)):
            state = key(run.states[step])
            safe = decider.is_safe(state)
            if safe and not all(map(decider.is_safe, slow.outcomes(state))):
                steps.append(step)
        found.append(tuple(steps))
    return found


@pytest.mark.parametrize("mode", ["label", "edge"])
@pytest.mark.parametrize("radius", [math.inf, 0, 1, 2])
@pytest.mark.parametrize("direction", ["backward", "forward"])
@pytest.mark.parametrize("seed", range(6))
def test_faults_are_those_of_the_definition(
    seed: int, direction: Direction, radius: float, mode: Any
) -> None:
    task, policy, runs = setting(seed, mode)
    slow = SlowFuzzing(task, policy)
    brute = BruteDecider(task, policy, radius)
    found = find_faults(task, policy, runs, brute, direction=direction, radius=radius)
    assert list(found.steps) == expected_steps(runs, slow, brute)
    for fault in found.faults:
        state = key(fault.state)
        assert brute.is_safe(state)
        assert fault.action == slow.action(state)
        assert key(fault.outcome) in slow.outcomes(state)
        assert not brute.is_safe(key(fault.outcome))
        assert fault.action not in fault.alternatives
        assert (brute.safe_actions(fault.state).nonzero()[0] == fault.alternatives).all()
        run = runs[[r.index for r in runs].index(fault.run)]
        assert key(run.states[fault.step]) == state
        assert (fault.start == Verdict.SAFE) == brute.is_safe(key(run.start))


@pytest.mark.parametrize("seed", range(6))
def test_each_fault_is_reported_once_and_counted(seed: int) -> None:
    task, policy, runs = setting(seed)
    found = find_faults(task, policy, runs, BruteDecider(task))
    keys = [(key(fault.state), fault.action) for fault in found.faults]
    assert len(set(keys)) == len(keys)
    assert sum(fault.count for fault in found.faults) == sum(map(len, found.steps))


@pytest.mark.parametrize("seed", range(6))
def test_bugs_are_the_safe_states_from_which_the_policy_was_seen_to_fail(seed: int) -> None:
    task, policy, runs = setting(seed)
    slow, brute = SlowFuzzing(task, policy), BruteDecider(task)
    found = find_faults(task, policy, runs, brute)
    expected = {
        key(state)
        for run in runs
        if run.unsafe
        for state in run.states
        if brute.is_safe(key(state))
    }
    assert {key(state) for state in found.bugs} == expected
    assert all(slow.fails(state) for state in expected)


@pytest.mark.parametrize("seed", range(8))
def test_an_unsafe_run_without_a_fault_started_where_failing_cannot_be_avoided(seed: int) -> None:
    task, policy, runs = setting(seed)
    brute = BruteDecider(task)
    found = find_faults(task, policy, runs, brute)
    for run, steps in zip(runs, found.steps, strict=True):
        assert (run.index in found.unavoidable) == (run.end is End.FAILING and not steps)
        if run.index in found.unavoidable:
            assert not brute.is_safe(key(run.start))


@pytest.mark.parametrize("direction", ["backward", "forward"])
@pytest.mark.parametrize("seed", range(6))
def test_the_first_fault_alone_is_found_with_fewer_questions(
    seed: int, direction: Direction
) -> None:
    task, policy, runs = setting(seed)
    whole = find_faults(task, policy, runs, BruteDecider(task), direction=direction)
    few = find_faults(task, policy, runs, BruteDecider(task), direction=direction, first_only=True)
    place = -1 if direction == "backward" else 0
    assert [s[place:][:1] for s in whole.steps] == list(few.steps)
    assert few.tested <= whole.tested
    assert few.starts == whole.starts
    assert few.unavoidable == whole.unavoidable


def test_no_state_is_decided_twice() -> None:
    task, policy, runs = setting(1)
    decider = BruteDecider(task)
    find_faults(task, policy, runs, decider)
    assert len(set(decider.asked)) == len(decider.asked)


def test_backward_asks_for_the_end_of_a_run_first() -> None:
    task, policy, runs = setting(1)
    unsafe = runs.unsafe()[:1]
    decider = BruteDecider(task)
    find_faults(task, policy, unsafe, decider)
    assert decider.asked[0] == key(unsafe[0].states[-1])


class Doubtful(BruteDecider):
    """Gives no answer for one state."""

    doubtful: tuple[Any, ...] = ()

    def decide(self, state: NDArray[Any]) -> Verdict:
        return Verdict.UNKNOWN if key(state) == self.doubtful else super().decide(state)


def test_what_a_budget_leaves_open_is_told_and_never_guessed() -> None:
    task, policy, runs = setting(1)
    sure = find_faults(task, policy, runs, BruteDecider(task))
    decider = Doubtful(task)
    decider.doubtful = key(sure.faults[0].state)
    found = find_faults(task, policy, runs, decider)
    assert {key(f.state) for f in found.faults} == {key(f.state) for f in sure.faults[1:]}
    touched = [
        run.index
        for run, steps in zip(runs, found.steps, strict=True)
        if not steps and decider.doubtful in map(key, run.states)
    ]
    assert set(touched) <= set(found.unresolved)
    assert not set(touched) & set(found.unavoidable)


def test_a_budget_is_for_few_states_and_not_for_all_runs_together() -> None:
    task = open_task(OneWayLine(packages=4, locations=8), {})[0]
    policy = RandomPolicy(Interface.of(task), 1)
    runs = Fuzzer(task, policy).run(600).unsafe()
    exact = find_faults(task, policy, runs, make_decider("otf", task))
    limited = make_decider("otf", task, budget=Budget(states=8000))
    found = find_faults(task, policy, runs, limited)
    assert found.unresolved == exact.unresolved == ()
    assert [(f.state.tolist(), f.action, f.alternatives) for f in found.faults] == [
        (f.state.tolist(), f.action, f.alternatives) for f in exact.faults
    ]


def test_runs_of_another_policy_are_refused() -> None:
    task, _, runs = setting(1)
    other = RandomPolicy(Interface.of(task), 77)
    with pytest.raises(ConfigError, match="is not of this policy"):
        find_faults(task, other, runs, BruteDecider(task))


def test_a_decider_of_another_radius_is_refused() -> None:
    task, policy, runs = setting(1)
    with pytest.raises(ConfigError, match="radius"):
        find_faults(task, policy, runs, BruteDecider(task, policy, 1), radius=2)


def test_a_decider_of_another_task_is_refused() -> None:
    task, policy, runs = setting(1)
    with pytest.raises(ConfigError, match="the decider was made for another"):
        find_faults(task, policy, runs, make_decider("otf", setting(2)[0]))


def test_no_runs_have_no_faults() -> None:
    task, policy, runs = setting(1)
    found: FaultAnalysis = find_faults(task, policy, runs[:0], BruteDecider(task))
    assert found.faults == ()
    assert found.tested == 0
    assert found.bugs.shape == (0, 1)


def test_a_single_run_is_analysed_like_many() -> None:
    task, policy, runs = setting(2)
    one = runs.unsafe()[0]
    found = find_faults(task, policy, [one], BruteDecider(task))
    assert found.starts[0] == BruteDecider(task).decide(np.asarray(one.start))


@pytest.mark.parametrize("radius", [math.inf, 1])
@pytest.mark.parametrize("seed", range(4))
def test_the_default_decider_finds_the_same_faults_and_can_prove_each(
    seed: int, radius: float
) -> None:
    task, policy, runs = setting(seed)
    brute = find_faults(task, policy, runs, BruteDecider(task, policy, radius), radius=radius)
    decider = make_decider("otf", task, policy=policy, radius=radius)
    found = find_faults(task, policy, runs, decider, radius=radius)
    assert found.steps == brute.steps
    assert [f.alternatives for f in found.faults] == [f.alternatives for f in brute.faults]
    for fault in found.faults:
        for state, verdict in ((fault.state, Verdict.SAFE), (fault.outcome, Verdict.UNSAFE)):
            certificate = decider.certificate(state)
            assert certificate.verdict is verdict
            check_certificate(task, certificate, policy=policy)
    assert find_faults(task, policy, runs, radius=radius).steps == brute.steps
