"""``safetest-gym repair`` shows what it does, keeps it, and goes on from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from safetest_gym.reports.setting import Settings
from tests.campaign.test_debugging import line, net
from tests.cli.conftest import Run

_SMALL = ["--const", "packages=4", "locations=6"]
_QUICK = [
    "--verify",
    "none",
    "--runs",
    "300",
    "--debugging-starts",
    "300",
    "--starts",
    "50",
    "--iterations",
    "6",
]


@pytest.fixture
def arguments(tmp_path: Path) -> list[object]:
    """A small bundled task with a network that fails."""
    from safetest_gym.policies import save_policy

    save_policy(net(), tmp_path / "p.nnet")
    given = ["repair", "TwoWayLine", *_SMALL, "--policy", tmp_path / "p.nnet"]
    return [*given, *_QUICK, "--repair-work", "1"]


def test_the_task_of_the_tests_is_the_bundled_one(run: Run) -> None:
    ended = run("info", "TwoWayLine", *_SMALL, "--json")
    assert json.loads(ended.out)["variables"]
    assert line().num_variables


def test_repair_prints_every_policy_and_before_beside_after(
    run: Run, arguments: list[object], tmp_path: Path
) -> None:
    ended = run(*arguments, "-o", tmp_path / "loop")
    assert ended.code == 0, ended.err
    assert "policy 0: unsafe" in ended.out
    assert "last-layer" in ended.out
    assert "before" in ended.out
    assert "the repaired policy is" in ended.out
    assert (tmp_path / "loop" / "loop.json").exists()


def test_json_is_one_object_and_a_second_command_answers_from_the_folder(
    run: Run, arguments: list[object], tmp_path: Path
) -> None:
    given = [*arguments, "--method", "finetune", "-o", tmp_path / "loop", "--json"]
    first, again = (json.loads(run(*given).out) for _ in range(2))
    assert first == again
    assert Path(first["policy"]).is_file()
    assert first["iterations"][0]["repair"]["method"] == "finetune"
    assert first["iterations"][-1]["unsafe_rate"] <= first["iterations"][0]["unsafe_rate"]


def test_check_fails_when_faults_are_left(
    run: Run, arguments: list[object], tmp_path: Path
) -> None:
    stopped = [*arguments, "--iterations", "0", "-o", tmp_path / "loop", "--check"]
    assert run(*stopped).code == 1


def test_a_method_for_another_kind_of_policy_ends_with_a_message(
    run: Run, arguments: list[object], tmp_path: Path
) -> None:
    ended = run(*arguments, "--method", "leaves", "-o", tmp_path / "loop")
    assert ended.code == 2
    assert "leaves repairs tree ensembles" in ended.err


def test_a_stable_baselines_zip_is_repaired_as_a_zip(
    run: Run, arguments: list[object], tmp_path: Path
) -> None:
    sb3_contrib = pytest.importorskip("sb3_contrib")
    import gymnasium
    import numpy as np

    class Shaped(gymnasium.Env[object, object]):
        observation_space = gymnasium.spaces.Box(0, 9, (line().num_variables,), np.float32)
        action_space = gymnasium.spaces.Discrete(line().num_actions)

    sb3_contrib.MaskablePPO("MlpPolicy", Shaped(), seed=2, device="cpu").save(tmp_path / "p.zip")
    given = [tmp_path / "p.zip" if str(a).endswith(".nnet") else a for a in arguments]
    found = json.loads(run(*given, "-o", tmp_path / "loop", "--json").out)
    assert found["iterations"][0]["repair"] is not None
    assert Path(found["policy"]).name == "repaired.zip"
    shown = ["evaluate", "TwoWayLine", *_SMALL, "--policy", found["policy"], "--json"]
    rate = json.loads(run(*shown, "--runs", "1").out)["unsafe"]["value"]
    assert rate == pytest.approx(found["iterations"][-1]["unsafe_rate"], abs=0.1)


def test_another_failure_condition_is_obeyed_and_remembered(
    run: Run, arguments: list[object], tmp_path: Path
) -> None:
    given = ["--failure", "truck_0 > 100", "--iterations", "0", "-o", tmp_path / "loop", "--json"]
    found = json.loads(run(*arguments, *given).out)
    assert found["iterations"][0]["unsafe_rate"] == 0.0
    settings = Settings(None, [tmp_path / "loop" / "task.json"])
    assert settings.problems == []
    digest = json.loads((tmp_path / "loop" / "loop.json").read_text("utf-8"))["digest"]
    assert settings.find(digest) is not None


def test_no_time_is_not_endless_time(run: Run, arguments: list[object], tmp_path: Path) -> None:
    ended = run(*arguments, "--seconds", "0", "-o", tmp_path / "loop")
    assert ended.code == 2
    assert "seconds" in ended.err
