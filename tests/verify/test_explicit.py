from __future__ import annotations

import numpy as np
import pytest

from safetest_gym.engine.kernels.following import FAILING
from safetest_gym.envs.tasks.beluga import Beluga
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.envs.tasks.two_way_line import TwoWayLine
from safetest_gym.errors import ConfigError, StartError
from safetest_gym.policies.reachable import Reachable
from safetest_gym.task import Task, load_task
from safetest_gym.verify import (
    Budget,
    InductiveStates,
    Progress,
    Verdict,
    check_proof,
    verification,
    verify,
)
from safetest_gym.verify.result import make_run
from tests.oracles.policy_graph import policy_graph
from tests.oracles.random_tasks import grid_task, random_task
from tests.verify.policies import (
    Kind,
    careful_driver,
    line_task,
    random_ensemble,
    random_policy,
)


def _agrees(task: Task, kind: Kind, seed: int) -> Verdict:
    """Verify from one start and compare with brute force; returns the verdict."""
    policy = random_policy(task, seed, kind).bind(task)
    every = task.initial.enumerate(1000)
    starts = every[[seed % len(every)]]
    graph = policy_graph(policy, task, starts)
    found = verify(policy, task, method="explicit", starts=starts)
    assert (found.verdict is Verdict.UNSAFE) == ("failing" in graph.kind.values())
    if found.run is not None:
        found.run.replay(task, policy)
        assert found.run.start.tolist() in starts.tolist()
    if found.proof is not None:
        assert isinstance(found.proof, InductiveStates)
        assert {tuple(row) for row in found.proof.rows(slice(None)).tolist()} == set(graph.kind)
        check_proof(task, policy, found.proof, starts=starts)
    return found.verdict


@pytest.mark.parametrize("kind", ["trees", "mlp", "hash", "python"])
def test_the_verdict_is_that_of_brute_force(kind: Kind) -> None:
    verdicts = {_agrees(random_task(seed), kind, seed) for seed in range(12)}
    verdicts |= {_agrees(random_task(seed, mode="edge"), kind, seed) for seed in range(6)}
    verdicts |= {_agrees(grid_task(), kind, seed) for seed in range(6)}
    assert verdicts == {Verdict.SAFE, Verdict.UNSAFE}


def test_a_start_state_that_fails_is_a_run_without_steps() -> None:
    task = random_task(1)
    found = verify(random_ensemble(task, 0), task, starts=np.array([[13]]))
    assert found.verdict is Verdict.UNSAFE
    assert found.run is not None
    assert len(found.run) == 0
    assert found.run.start.tolist() == [13]


def test_failing_comes_before_goal_and_a_goal_ends_runs() -> None:
    edge = {"location": "l", "action": "a", "guard": {"exp": {"op": "<", "left": "s", "right": 4}}}
    step = {
        "location": "l",
        "assignments": [{"ref": "s", "value": {"op": "+", "left": "s", "right": 1}}],
    }
    document = {
        "jani-version": 1,
        "name": "steps",
        "type": "lts",
        "actions": [{"name": "a"}],
        "variables": [
            {
                "name": "s",
                "type": {"kind": "bounded", "base": "int", "lower-bound": 0, "upper-bound": 4},
                "initial-value": 0,
            }
        ],
        "automata": [
            {
                "name": "g",
                "locations": [{"name": "l"}],
                "initial-locations": ["l"],
                "edges": [{**edge, "destinations": [step]}],
            }
        ],
        "system": {"elements": [{"automaton": "g"}]},
    }
    goal_first = load_task(document, failure="s = 3", goal="s = 2")
    both = load_task(document, failure="s = 3", goal="s = 3")
    assert verify(random_ensemble(goal_first, 0), goal_first).verdict is Verdict.SAFE
    assert verify(random_ensemble(both, 0), both).verdict is Verdict.UNSAFE


def test_a_budget_of_states_ends_in_unknown_and_says_how_far_it_came() -> None:
    task = line_task(OneWayLine(packages=4, locations=5))
    found = verify(careful_driver(task), task, method="explicit", budget=Budget(states=300))
    assert found.verdict is Verdict.UNKNOWN
    assert "300 states" in found.reason
    assert "expanded" in found.reason
    assert found.proof is None


def test_a_budget_of_memory_bounds_what_is_held() -> None:
    task = line_task(OneWayLine(packages=8, locations=7))
    whole = verify(careful_driver(task), task, method="explicit")
    assert whole.verdict is Verdict.SAFE
    tight = verify(careful_driver(task), task, method="explicit", budget=Budget(megabytes=0.5))
    assert tight.verdict is Verdict.UNKNOWN
    assert tight.statistics["megabytes"] <= 1.0


def test_a_budget_that_just_suffices_gives_the_proof() -> None:
    task = line_task(OneWayLine(packages=4, locations=5))
    policy = careful_driver(task)
    states = int(verify(policy, task).statistics["states"])
    again = verify(policy, task, method="explicit", budget=Budget(states=states))
    assert again.verdict is Verdict.SAFE


def test_progress_is_reported_and_can_interrupt() -> None:
    task = line_task(OneWayLine(packages=4, locations=5))
    told: list[Progress] = []
    verify(careful_driver(task), task, report=told.append)
    assert told
    assert told[-1].starts == task.initial.count()

    def stop(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(careful_driver(task), task, report=stop)


def test_infinitely_many_starts_cannot_be_listed() -> None:
    from safetest_gym.envs.tasks.inverted_pendulum import InvertedPendulum

    pendulum = InvertedPendulum()
    task = load_task({**pendulum.model(), "properties": pendulum.properties()})
    with pytest.raises(StartError, match="infinitely many"):
        verify(random_ensemble(task, 0), task, method="explicit")


def test_a_task_that_cannot_fail_has_nothing_to_verify() -> None:
    task = line_task(OneWayLine(packages=1, locations=3))
    harmless = load_task(OneWayLine(packages=1, locations=3).model(), goal="truck_0 = 2")
    with pytest.raises(ConfigError, match="failure condition"):
        verify(random_ensemble(task, 0), harmless)


@pytest.mark.parametrize("jigs", [3, 4])
def test_beluga_is_refuted(jigs: int) -> None:
    beluga = Beluga(jigs=jigs)
    task = load_task({**beluga.model(), "properties": beluga.properties()})
    policy = random_ensemble(task, 1, trees=20)
    found = verify(policy, task)
    assert found.verdict is Verdict.UNSAFE
    assert found.run is not None
    found.run.replay(task, policy)


@pytest.mark.slow
@pytest.mark.parametrize("line", [OneWayLine, TwoWayLine])
def test_a_careful_driver_is_proved_safe_on_the_parked_lines(
    line: type[OneWayLine] | type[TwoWayLine],
) -> None:
    task = line_task(line(packages=15, locations=10, variant="icy_park"))
    policy = careful_driver(task)
    found = verify(policy, task)
    assert found.verdict is Verdict.SAFE
    assert found.proof is not None
    assert found.statistics["starts"] == task.initial.count() == 5_230_016
    check_proof(task, policy, found.proof, sample=500)


def test_more_unsafe_runs_are_collected_when_they_are_wanted() -> None:
    task = line_task(TwoWayLine(packages=4, locations=6))
    policy = random_ensemble(task, 2)
    one = verify(policy, task, method="explicit")
    many = verify(policy, task, method="explicit", more=5)
    assert one.run is not None
    assert many.run is not None
    assert one.more == ()
    assert 1 <= len(many.more) <= 5
    assert (many.run.states == one.run.states).all()
    for states in many.more:
        make_run(task, policy.bind(task), states).replay(task, policy)
    assert len({states.tobytes() for states in many.more}) == len(many.more)


@pytest.mark.parametrize("seed", [1, 2, 5, 6, 7, 10])
def test_every_state_that_can_fail_is_on_a_run_that_was_collected(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "_SLICE", 20)  # starts are searched in several parts
    task = line_task(TwoWayLine(packages=5, locations=6))
    policy = random_ensemble(task, seed)
    found = verify(policy, task, method="explicit", more=10_000)
    assert found.run is not None
    runs = [found.run.states, *found.more]
    for states in runs:
        make_run(task, policy.bind(task), states).replay(task, policy)
    assert len({states.tobytes() for states in runs}) == len(runs)
    graph = Reachable(task, policy.bind(task))
    graph.add_starts(task.engine.pack(task.initial.enumerate(10_000)), 100_000)
    failing = graph.states[graph.can_reach(FAILING)]
    truth = {tuple(state) for state in task.engine.unpack(failing).tolist()}
    seen = {tuple(state) for states in runs for state in states.tolist()}
    assert seen == truth


def test_a_run_found_before_the_budget_ends_is_kept() -> None:
    task = line_task(TwoWayLine(packages=4, locations=6))
    policy = random_ensemble(task, 2)
    first = verify(policy, task, method="explicit")
    most = int(first.statistics["states"])
    found = verify(policy, task, method="explicit", more=10_000, budget=Budget(states=most))
    assert found.verdict is Verdict.UNSAFE
    assert found.run is not None
