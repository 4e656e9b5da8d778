from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from safetest_gym.envs.tasks.bouncing_ball import BouncingBall
from safetest_gym.envs.tasks.cart_pole import CartPole
from safetest_gym.envs.tasks.inverted_pendulum import InvertedPendulum
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.policies.mlp import MlpPolicy
from safetest_gym.policies.trees import TreeEnsemblePolicy
from safetest_gym.task import Task, load_task
from safetest_gym.verify import (
    Budget,
    CertificateError,
    InductiveBoxes,
    InductiveStates,
    Progress,
    Verdict,
    check_proof,
    load_proof,
    verify,
)
from tests.oracles.policies import tree
from tests.oracles.policy_graph import policy_graph
from tests.oracles.random_tasks import grid_task, random_task
from tests.verify.policies import (
    careful_driver,
    keen_hitter,
    line_task,
    random_ensemble,
    random_mlp,
    steady_hand,
)


def _load(generator: BouncingBall | CartPole | InvertedPendulum) -> Task:
    return load_task({**generator.model(), "properties": generator.properties()})


Proved = tuple[Task, TreeEnsemblePolicy, InductiveBoxes]


@pytest.fixture(scope="module")
def pendulum() -> Proved:
    task = _load(InvertedPendulum())
    policy = steady_hand(task)
    found = verify(policy, task)
    assert found.verdict is Verdict.SAFE
    assert found.method == "abstract"
    assert isinstance(found.proof, InductiveBoxes)
    return task, policy, found.proof


@pytest.mark.parametrize("make", [random_ensemble, random_mlp])
def test_the_verdict_is_that_of_brute_force(
    make: Callable[[Task, int], TreeEnsemblePolicy | MlpPolicy],
) -> None:
    verdicts = set()
    tasks = [random_task(seed) for seed in range(6)] + [grid_task()] * 3
    for seed, task in enumerate(tasks):
        policy = make(task, seed).bind(task)
        every = task.initial.enumerate(1000)
        starts = every[[seed % len(every)]]
        graph = policy_graph(policy, task, starts)
        found = verify(policy, task, method="abstract", starts=starts)
        verdicts.add(found.verdict)
        assert (found.verdict is Verdict.UNSAFE) == ("failing" in graph.kind.values())
        if found.run is not None:
            found.run.replay(task, policy)
        if found.proof is not None:
            check_proof(task, policy, found.proof, starts=starts)
    assert verdicts == {Verdict.SAFE, Verdict.UNSAFE}


def test_a_run_is_found_where_only_few_of_many_starts_fail() -> None:
    """One start in thousands: sampling misses it, the boxes lead to it."""
    line = OneWayLine(packages=4, locations=5, variant="icy_park")
    task = line_task(line)
    careless = careful_driver(task)
    load = [variable.name for variable in task.variables].index("location_load_3")
    drop = [5 * (action.startswith("acc")) for action in task.actions]
    extra = tree([1, -1, -1], [2, -1, -1], [load, 0, 0], [3.5, 0, 0], [[0] * 6, [0] * 6, drop])
    policy = replace(careless, trees=(*careless.trees, extra))
    found = verify(policy, task, method="abstract")
    listed = verify(policy, task, method="explicit")
    assert found.verdict is listed.verdict is Verdict.UNSAFE
    assert found.run is not None
    found.run.replay(task, policy)


def test_more_starts_than_can_be_listed_are_proved_safe(tmp_path: Path) -> None:
    task = line_task(OneWayLine(packages=60, locations=10, variant="icy_park", icy=(4, 5)))
    count = task.initial.count()
    assert count is not None
    assert count > 10**10
    policy = careful_driver(task)
    found = verify(policy, task)
    assert found.verdict is Verdict.SAFE
    assert found.method == "abstract"
    assert found.proof is not None
    found.proof.save(tmp_path / "boxes.npz")
    check_proof(task, policy, load_proof(tmp_path / "boxes.npz"))


def test_the_inverted_pendulum_is_proved_safe(pendulum: Proved) -> None:
    task, policy, proof = pendulum
    assert task.initial.count() is None
    check_proof(task, policy, proof)


def test_no_box_that_a_run_goes_through_can_be_left_out(pendulum: Proved) -> None:
    task, policy, proof = pendulum
    walked = verify(policy, task, starts=np.array([[0, 0.03, 0.05]])).proof
    assert isinstance(walked, InductiveStates)
    pieces = [
        np.searchsorted(cuts, column, side="right") - 1
        for cuts, column in zip(proof.cuts, walked.columns, strict=True)
    ]
    used = np.unique(np.stack(pieces, axis=1), axis=0)
    assert len(used) > 1
    for cell in (used[0], used[-1]):
        left = proof.cells[(proof.cells != cell).any(axis=1)]
        assert len(left) == len(proof) - 1
        with pytest.raises(CertificateError):
            check_proof(task, policy, replace(proof, cells=left))


def test_boxes_proved_for_one_policy_are_no_proof_for_another(pendulum: Proved) -> None:
    task, policy, proof = pendulum
    with pytest.raises(CertificateError, match="in none of the boxes"):
        check_proof(task, replace(policy, base_scores=np.array([9, 0, 0], np.float32)), proof)


def test_moved_cuts_break_a_proof(pendulum: Proved) -> None:
    task, policy, proof = pendulum
    angle = proof.cuts[1].copy()
    angle[1:-1] -= 0.001
    with pytest.raises(CertificateError):
        check_proof(task, policy, replace(proof, cuts=(proof.cuts[0], angle, proof.cuts[2])))
    with pytest.raises(CertificateError, match="do not cut its domain"):
        check_proof(task, policy, replace(proof, cuts=(proof.cuts[0] + 1, *proof.cuts[1:])))
    with pytest.raises(CertificateError, match="does not exist"):
        check_proof(task, policy, replace(proof, cells=proof.cells + np.int32(10_000)))


def test_an_unsafe_pendulum_policy_is_refuted_with_a_run() -> None:
    task = _load(InvertedPendulum())
    policy = replace(steady_hand(task), base_scores=np.array([0, 0, 50], np.float32))
    found = verify(policy, task)
    assert found.verdict is Verdict.UNSAFE
    assert found.run is not None
    found.run.replay(task, policy)


@pytest.mark.slow
def test_the_bouncing_ball_is_proved_safe() -> None:
    task = _load(BouncingBall())
    policy = keen_hitter(task)
    found = verify(policy, task)
    assert found.verdict is Verdict.SAFE
    assert found.proof is not None
    check_proof(task, policy, found.proof)


def test_budgets_end_in_unknown_and_say_how_far_it_came() -> None:
    task = _load(BouncingBall())
    policy = keen_hitter(task)
    few = verify(policy, task, budget=Budget(states=100))
    assert few.verdict is Verdict.UNKNOWN
    assert "boxes are more than the limit of 100" in few.reason
    short = verify(policy, task, budget=Budget(seconds=0.001))
    assert short.verdict is Verdict.UNKNOWN
    assert "seconds are over" in short.reason


def test_progress_tells_rounds_and_can_interrupt() -> None:
    task = line_task(OneWayLine(packages=15, locations=10, variant="icy_park"))
    told: list[Progress] = []
    verify(careful_driver(task), task, method="abstract", report=told.append)
    assert told[-1].round > 1

    def stop(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(careful_driver(task), task, method="abstract", report=stop)


def test_what_intervals_cannot_follow_is_never_called_safe() -> None:
    task = _load(CartPole())
    found = verify(random_ensemble(task, 3), task, budget=Budget(states=3000, seconds=20))
    assert found.verdict is not Verdict.SAFE


def test_without_a_budget_of_time_the_boxes_looked_at_are_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("safetest_gym.verify.abstract._MOST_LOOKS", 0)
    task = line_task(OneWayLine(packages=15, locations=10, variant="icy_park"))
    found = verify(careful_driver(task), task, method="abstract")
    assert found.verdict is Verdict.UNKNOWN
    assert "boxes were looked at" in found.reason
