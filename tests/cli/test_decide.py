from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safetest_gym.deciders.certificate import load_certificate
from safetest_gym.deciders.checking import check_certificate
from safetest_gym.envs.tasks.families import LayeredFamily
from safetest_gym.task import load_task
from tests.cli.conftest import Ended, Run

FIELDS = [
    "safe",
    "unsafe",
    "unknown",
    "states",
    "seconds",
    "queries_per_second",
    "expanded",
]


def _result(ended: Ended) -> dict[str, Any]:
    assert ended.code == 0, ended.err
    result: dict[str, Any] = json.loads(ended.out)
    return result


def _ferry(data: Path) -> tuple[object, ...]:
    return data / "ferry.jani", "--properties", data / "ferry.props.jani"


def test_start_states_are_decided(run: Run, data: Path) -> None:
    result = _result(run("decide", *_ferry(data), "--json"))
    assert list(result) == FIELDS
    assert result["states"] == result["safe"] + result["unsafe"] == 3
    assert result["unknown"] == 0
    assert result["expanded"] > 0


def test_all_reachable_states_are_decided(run: Run, data: Path) -> None:
    result = _result(run("decide", *_ferry(data), "--states", "all", "--json"))
    assert result["states"] == 70


def test_a_bundled_task_is_decided_by_its_name(run: Run) -> None:
    given = ("OneWayLine", "--const", "packages=1", "locations=4")
    named = _result(run("decide", *given, "--json"))
    assert named["states"] == named["safe"] + named["unsafe"] > 0
    other = _result(run("decide", *given, "--failure", "truck_0 == 0", "--json"))
    assert other["unsafe"] != named["unsafe"]


def test_people_get_a_table(run: Run, data: Path) -> None:
    ended = run("decide", *_ferry(data))
    assert ended.code == 0
    assert "queries per second" in ended.out


def test_the_target_of_a_property_can_be_the_failure_condition(run: Run, data: Path) -> None:
    listed = json.loads((data / "die.jani").read_text("utf-8"))["properties"]
    assert listed, "the model has properties"
    name = listed[0]["name"]
    result = _result(
        run("decide", data / "die.jani", "--failure-property", name, "--states", "all", "--json")
    )
    assert result["states"] == 13


def test_a_failure_condition_can_be_given_as_text(run: Run, data: Path) -> None:
    never = _result(run("decide", data / "die.jani", "--failure", "false", "--json"))
    always = _result(run("decide", data / "die.jani", "--failure", "true", "--json"))
    assert (never["safe"], never["unsafe"]) == (1, 0)
    assert (always["safe"], always["unsafe"]) == (0, 1)


def test_listed_states_are_decided_and_their_verdicts_written(
    run: Run, data: Path, tmp_path: Path
) -> None:
    task = load_task(data / "ferry.jani", data / "ferry.props.jani")
    starts = task.initial.enumerate(10)
    np.save(tmp_path / "states.npy", starts)
    listed = [task.as_dict(start) for start in starts]
    (tmp_path / "states.json").write_text(json.dumps(listed), encoding="utf-8")
    for name in ("states.npy", "states.json"):
        out = tmp_path / f"{name}.out.json"
        run("decide", *_ferry(data), "--states", tmp_path / name, "--out", out, "--json")
        written = json.loads(out.read_text("utf-8"))
        assert [entry["state"] for entry in written] == listed
        assert {entry["verdict"] for entry in written} <= {"SAFE", "UNSAFE"}
    run("decide", *_ferry(data), "--out", tmp_path / "out.npz", "--json")
    with np.load(tmp_path / "out.npz") as stored:
        assert np.array_equal(stored["states"], starts)
        assert stored["verdicts"].tolist() == [
            1 if entry["verdict"] == "SAFE" else 2 for entry in written
        ]


def test_certificates_are_written_and_check(run: Run, data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "proofs"
    run("decide", *_ferry(data), "--certificates", folder, "--json")
    task = load_task(data / "ferry.jani", data / "ferry.props.jani")
    files = sorted(folder.iterdir())
    assert [path.name for path in files] == ["0.npz", "1.npz", "2.npz"]
    for path in files:
        check_certificate(task, load_certificate(path))


def test_a_time_limit_ends_with_3_and_unknown_states(run: Run, tmp_path: Path) -> None:
    family = LayeredFamily(layers=300_000)
    model = family.model()
    (tmp_path / "model.jani").write_text(json.dumps(model), encoding="utf-8")
    ended = run(
        *("decide", tmp_path / "model.jani", "--failure", "layer < 0"),
        *("--time-limit", "0.000001", "--json"),
    )
    assert ended.code == 3
    assert json.loads(ended.out)["unknown"] == 1
    assert "undecided" in ended.err


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["die.jani"], "no failure condition"),
        (["die.jani", "--failure", "true", "--algorithm", "otff"], "did you mean 'otf'"),
        (["die.jani", "--failure", "true", "--radius", "some"], "--radius"),
        (["die.jani", "--failure", "true", "--radius", "1"], "need a policy"),
        (["die.jani", "--failure", "true", "--states", "some"], "--states"),
        (["die.jani", "--failure", "true", "--states", "missing.json"], "missing.json"),
        (["die.jani", "--failure", "true", "--out", "verdicts.txt"], "--out"),
        (["die.jani", "--failure-property", "seven"], "'seven'"),
        (["die.jani", "--failure", "true", "--failure-property", "seven"], "not both"),
        (["missing.jani", "--failure", "true"], "missing.jani"),
    ],
)
def test_bad_input_ends_with_2_and_is_named_without_a_traceback(
    run: Run, data: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], part: str
) -> None:
    monkeypatch.chdir(data)
    ended = run("decide", *arguments, "--json")
    assert ended.code == 2
    assert ended.out == ""
    assert part in ended.err
    assert "Traceback" not in ended.err


def test_states_that_are_none_of_the_task_are_refused(run: Run, data: Path, tmp_path: Path) -> None:
    for name, content in {
        "text.json": "no JSON",
        "number.json": "3",
        "names.json": '[{"nobody": 1}]',
        "short.json": "[[1]]",
    }.items():
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        ended = run("decide", *_ferry(data), "--states", path, "--json")
        assert ended.code == 2, name
        assert "Traceback" not in ended.err
