from __future__ import annotations

import json
from pathlib import Path

import pytest

from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.policies import save_policy
from tests.cli.conftest import Run
from tests.verify.policies import careful_driver, line_task, random_ensemble

MODEL = ("OneWayLine", "--const", "packages=2", "locations=4")


@pytest.fixture
def safe(tmp_path: Path) -> Path:
    task = line_task(OneWayLine(packages=2, locations=4))
    save_policy(careful_driver(task), tmp_path / "safe.json")
    return tmp_path / "safe.json"


@pytest.fixture
def unsafe(tmp_path: Path) -> Path:
    task = line_task(OneWayLine(packages=2, locations=4))
    save_policy(random_ensemble(task, 1), tmp_path / "unsafe.json")
    return tmp_path / "unsafe.json"


def test_a_proof_is_written_and_can_be_checked(run: Run, safe: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof.npz"
    ended = run("verify", *MODEL, "--policy", safe, "--certificate", proof, "--check", "--json")
    assert ended.code == 0, ended.err
    result = json.loads(ended.out)
    assert (result["verdict"], result["method"], result["run"]) == ("SAFE", "explicit", None)
    assert result["proof"] == result["states"] > 0
    again = run("verify", *MODEL, "--policy", safe, "--check-certificate", proof, "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out)["valid"] is True


def test_a_proof_for_another_policy_is_refused(
    run: Run, safe: Path, unsafe: Path, tmp_path: Path
) -> None:
    proof = tmp_path / "proof.npz"
    run("verify", *MODEL, "--policy", safe, "--certificate", proof)
    ended = run("verify", *MODEL, "--policy", unsafe, "--check-certificate", proof, "--json")
    assert ended.code == 1
    assert json.loads(ended.out)["valid"] is False
    assert "not in the set" in ended.err


def test_an_unsafe_run_is_told_and_written(run: Run, unsafe: Path, tmp_path: Path) -> None:
    found = tmp_path / "run.json"
    ended = run("verify", *MODEL, "--policy", unsafe, "--run", found, "--json")
    assert ended.code == 0, ended.err
    result = json.loads(ended.out)
    assert result["verdict"] == "UNSAFE"
    written = json.loads(found.read_text("utf-8"))
    assert written["actions"] == result["run"]
    assert written["states"][-1]["aux_vel"] == -1


def test_check_ends_with_code_1_for_an_unsafe_policy(run: Run, unsafe: Path) -> None:
    assert run("verify", *MODEL, "--policy", unsafe, "--check").code == 1


def test_a_budget_that_ends_is_unknown_with_code_3(run: Run, safe: Path) -> None:
    ended = run(
        "verify", *MODEL, "--policy", safe, "--method", "explicit", "--max-states", 5, "--json"
    )
    assert ended.code == 3
    assert json.loads(ended.out)["verdict"] == "UNKNOWN"
    assert "the budget is 5 states" in ended.err


def test_people_get_a_table(run: Run, safe: Path) -> None:
    ended = run("verify", *MODEL, "--policy", safe)
    assert ended.code == 0
    assert "SAFE" in ended.out


def test_a_sample_belongs_to_a_check(run: Run, safe: Path) -> None:
    ended = run("verify", *MODEL, "--policy", safe, "--sample", 5)
    assert ended.code == 2
    assert "--check-certificate" in ended.err
