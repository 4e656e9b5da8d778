from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.errors import StateError
from safetest_gym.policies import TreeEnsemblePolicy
from safetest_gym.task import Task
from safetest_gym.verify import (
    CertificateError,
    InductiveStates,
    check_proof,
    load_proof,
    verify,
)
from tests.oracles.random_tasks import random_task
from tests.verify.policies import careful_driver, line_task, random_ensemble, random_mlp

Proved = tuple[Task, TreeEnsemblePolicy, InductiveStates]


@pytest.fixture(scope="module")
def proved() -> Proved:
    task = line_task(OneWayLine(packages=2, locations=4))
    policy = careful_driver(task)
    proof = verify(policy, task, method="explicit").proof
    assert isinstance(proof, InductiveStates)
    return task, policy, proof


def _without(proof: InductiveStates, row: int) -> InductiveStates:
    return replace(proof, columns=tuple(np.delete(column, row) for column in proof.columns))


def test_a_proof_survives_its_file(proved: Proved, tmp_path: Path) -> None:
    task, policy, proof = proved
    proof.save(tmp_path / "proof.npz")
    check_proof(task, policy, load_proof(tmp_path / "proof.npz"))


def test_no_state_of_a_least_proof_can_be_left_out(proved: Proved) -> None:
    task, policy, proof = proved
    for row in range(0, len(proof), 9):
        with pytest.raises(CertificateError):
            check_proof(task, policy, _without(proof, row))


def test_a_failing_state_breaks_a_proof(proved: Proved) -> None:
    task, policy, proof = proved
    crash = [np.append(column, column[0]) for column in proof.columns]
    crash[-1][-1] = -1
    with pytest.raises(CertificateError, match="fails"):
        check_proof(task, policy, replace(proof, columns=tuple(crash)))


def test_a_proof_for_one_policy_does_not_hold_for_another(proved: Proved) -> None:
    task, _, proof = proved
    with pytest.raises(CertificateError, match="not in the set"):
        check_proof(task, random_ensemble(task, 3), proof)


def test_a_proof_of_another_task_is_refused(proved: Proved) -> None:
    _, policy, proof = proved
    other = line_task(OneWayLine(packages=3, locations=4))
    with pytest.raises(CertificateError, match="about the task"):
        check_proof(other, policy, proof)


def test_a_missing_start_is_found_in_a_list_and_in_a_sample(proved: Proved) -> None:
    task, policy, proof = proved
    first = task.initial.enumerate(1000)[0]
    row = int((proof.rows(slice(None)) == first).all(axis=1).argmax())
    broken = _without(proof, row)
    with pytest.raises(CertificateError, match="start"):
        check_proof(task, policy, broken, starts=first[None, :])
    with pytest.raises(CertificateError, match="start"):
        check_proof(task, policy, broken, sample=400)


def test_a_network_s_proof_is_checked_too() -> None:
    for seed in range(8):
        task = random_task(seed)
        policy = random_mlp(task, seed)
        starts = np.array([[seed]])
        found = verify(policy, task, starts=starts)
        if found.proof is not None:
            check_proof(task, policy, found.proof, starts=starts)


def test_a_file_that_is_no_proof_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.npz").write_text("nothing")
    with pytest.raises(CertificateError, match="no proof"):
        load_proof(tmp_path / "no.npz")


def test_a_changed_run_does_not_replay() -> None:
    task = random_task(1)
    policy = random_ensemble(task, 4)
    runs = [verify(policy, task, starts=np.array([[s]])).run for s in range(12)]
    run = next(run for run in runs if run is not None and len(run) > 1)
    with pytest.raises(StateError):
        replace(run, actions=(run.actions + 1) % task.num_actions).replay(task, policy)
    with pytest.raises(StateError):
        replace(run, states=run.states[:-1], actions=run.actions[:-1]).replay(task, policy)
