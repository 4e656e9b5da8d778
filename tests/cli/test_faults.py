from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from safetest_gym.cli.app import app
from safetest_gym.faults import FaultStore, read_csv, read_jsonl
from safetest_gym.policies import Interface, Layer, MlpPolicy, save_policy
from safetest_gym.task import Task, load_task

PLANNING = "models/planning"


def network(task: Task, seed: int = 0, hidden: int = 32) -> MlpPolicy:
    rng = np.random.default_rng(seed)
    sizes = (task.num_variables, hidden, hidden, task.num_actions)
    layers = []
    for i in range(3):
        weight = rng.normal(size=(sizes[i + 1], sizes[i])) / np.sqrt(sizes[i])
        bias = rng.normal(size=sizes[i + 1])
        kind: Any = "identity" if i == 2 else "relu"
        layers.append(Layer(weight.astype(np.float32), bias.astype(np.float32), kind))
    return MlpPolicy(tuple(layers), Interface.of(task))


def write_network(task: Task, path: Path, seed: int = 0) -> str:
    save_policy(network(task, seed), path)
    return str(path)


@pytest.fixture
def ferry(data: Path, tmp_path: Path) -> list[str]:
    """Arguments for a small task with a random network that fails."""
    model, properties = data / "ferry.jani", data / "ferry.props.jani"
    task = load_task(model, properties)
    policy = write_network(task, tmp_path / "p.nnet", seed=6)
    return [str(model), "--properties", str(properties), "--policy", policy]


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.stdout


def as_json(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*arguments, "--json"))
    return found


def test_fuzz_counts_how_runs_end(ferry: list[str]) -> None:
    found = as_json("fuzz", *ferry, "--runs", "50")
    ends = ("failing", "goal", "deadlock", "limit", "cycle", "exhausted")
    assert found["runs"] == sum(found[end] for end in ends) == 50


def test_fuzz_writes_the_runs(ferry: list[str], tmp_path: Path) -> None:
    run("fuzz", *ferry, "--runs", "7", "-o", str(tmp_path / "runs.jsonl"))
    lines = (tmp_path / "runs.jsonl").read_text().splitlines()
    assert [json.loads(line)["run"] for line in lines] == list(range(7))


def test_fuzz_can_run_every_start_state(ferry: list[str]) -> None:
    task = load_task(ferry[0], ferry[2])
    assert as_json("fuzz", *ferry, "--all-starts")["runs"] == task.initial.count()


def test_faults_prints_each_fault_once_and_a_summary(ferry: list[str]) -> None:
    text = run("faults", *ferry, "--runs", "100")
    found = as_json("faults", *ferry, "--runs", "100")
    words = [line for line in text.splitlines() if " can lead to " in line]
    assert len(words) == found["faults"] == len(found["found"]) > 0


def test_faults_writes_what_it_found(ferry: list[str], tmp_path: Path) -> None:
    task = load_task(ferry[0], ferry[2])
    found = as_json("faults", *ferry, "--runs", "100", "-o", str(tmp_path / "f.jsonl"))
    assert len(read_jsonl(tmp_path / "f.jsonl", task)) == found["faults"] > 0
    run("faults", *ferry, "--runs", "100", "-o", str(tmp_path / "f.csv"))
    assert len(read_csv(tmp_path / "f.csv", task)) == found["faults"]
    run("faults", *ferry, "--runs", "100", "-o", str(tmp_path / "f.json"))
    starts = load_task(ferry[0], ferry[2], start=tmp_path / "f.json").initial
    assert starts.count() == len({json.dumps(fault["state"]) for fault in found["found"]})
    run("faults", *ferry, "-o", "f.txt", code=2)


def test_test_puts_everything_together(ferry: list[str]) -> None:
    found = as_json("test", *ferry, "--runs", "60", "--starts", "5")
    names = {"runs", "unsafe_runs", "bugs", "faults", "unavoidable", "fuzzing_seconds"}
    assert names | {"analysis_seconds", "goal_rate", "unsafe_rate"} <= set(found)
    assert "unsafe runs" in run("test", *ferry, "--runs", "60", "--starts", "0")


@pytest.mark.parametrize(
    ("oracle", "objective"),
    [
        ("decider", "safety"),
        ("lookahead", "goal"),
        ("perfect", "probability"),
        ("improvement", "cost"),
        ("undo", "goal"),
    ],
)
def test_bugs_asks_an_oracle_about_a_pool(ferry: list[str], oracle: str, objective: str) -> None:
    options = ["--oracle", oracle, "--objective", objective, "--pool", "15"]
    found = as_json("bugs", *ferry, *options)
    assert found["test_states"] <= 15
    assert found["bugs"] == len(found["found"])


@pytest.mark.parametrize("operator", ["backward", "perturb", "perturb-reached"])
def test_bugs_can_take_other_ways_to_test_states(ferry: list[str], operator: str) -> None:
    assert as_json("bugs", *ferry, "--operator", operator, "--pool", "15")["test_states"] <= 15


@pytest.mark.parametrize(
    "options",
    [
        ["faults", "--lookahead", "many"],
        ["faults", "--radius", "-1"],
        ["faults", "--decider", "otff"],
        ["bugs", "--objective", "cost"],
        ["bugs", "--oracle", "improvement"],
    ],
)
def test_wrong_options_end_with_a_message(ferry: list[str], options: list[str]) -> None:
    run(options[0], *ferry, *options[1:], code=2)


@pytest.mark.parametrize("command", ["fuzz", "faults", "test", "bugs", "verify", "evaluate"])
def test_nothing_is_called_safe_only_because_no_failure_was_named(
    ferry: list[str], command: str
) -> None:
    told = CliRunner().invoke(app, [command, ferry[0], *ferry[3:], "--check"])
    assert told.exit_code == 2
    assert "no failure condition; give --properties, --property or --failure" in told.stderr


def test_a_goal_that_nobody_named_is_not_missed(ferry: list[str]) -> None:
    given = ["bugs", ferry[0], *ferry[3:], "--oracle", "perfect", "--objective", "goal"]
    told = CliRunner().invoke(app, given)
    assert told.exit_code == 2
    assert "no goal" in told.stderr


@pytest.mark.parametrize("command", ["fuzz", "faults"])
def test_a_place_that_cannot_be_written_is_told_of_before_the_work(
    ferry: list[str], command: str, tmp_path: Path
) -> None:
    for place in (tmp_path / "nowhere" / "found.jsonl", tmp_path / "folder.jsonl"):
        (tmp_path / "folder.jsonl").mkdir(exist_ok=True)
        given = [command, *ferry, "--policy", "missing.nnet", "-o", str(place)]
        told = CliRunner().invoke(app, given)
        assert told.exit_code == 2
        assert "folder" in told.stderr


@pytest.mark.parametrize("command", ["fuzz", "faults", "test", "bugs", "evaluate"])
@pytest.mark.parametrize("seed", ["-1", str(2**70)])
def test_a_seed_is_a_whole_number_of_63_bits(ferry: list[str], command: str, seed: str) -> None:
    run(command, *ferry, "--seed", seed, code=2)


def test_check_hears_of_starts_that_can_fail_though_no_run_did(ferry: list[str]) -> None:
    run("test", *ferry, "--runs", "0", "--json", "--check", code=1)
    run("test", *ferry, "--runs", "0", "--starts", "0", "--json", "--check")


def test_check_ends_with_3_where_the_decider_s_limit_left_runs_unresolved(
    ferry: list[str],
) -> None:
    limited = ["faults", *ferry, "--runs", "60", "--decider-states", "1", "--json"]
    assert json.loads(run(*limited))["unresolved"] > 0
    told = CliRunner().invoke(app, [*limited, "--check"])
    assert told.exit_code == (1 if json.loads(told.stdout)["faults"] else 3)


def test_a_missing_policy_is_named(data: Path) -> None:
    model, properties = str(data / "ferry.jani"), str(data / "ferry.props.jani")
    given = ["fuzz", model, "--properties", properties, "--policy", "no.nnet"]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 2
    assert "no.nnet" in result.stderr


def test_conditions_can_be_given_instead_of_the_property_s(data: Path, tmp_path: Path) -> None:
    model = str(data / "glider.jani")
    policy = write_network(load_task(model, failure="height <= 0"), tmp_path / "p.nnet")
    given = ["fuzz", model, "--policy", policy, "--runs", "20"]
    assert as_json(*given, "--failure", "height < 1e9")["failing"] == 20
    assert as_json(*given, "--failure", "height > 1e9", "--goal", "height < 1e9")["goal"] == 20


def test_check_ends_with_1_when_something_was_found(shared: Path, tmp_path: Path) -> None:
    model = line(shared, tmp_path)
    run("fuzz", *model, "--runs", "20", "--check", code=1)
    run("faults", *model, "--runs", "20", "--check", code=1)


def line(shared: Path, tmp_path: Path, seed: int = 1) -> list[str]:
    """A deterministic line with a network that fails."""
    name = "one_way_line_15_10_det"
    folder = shared / PLANNING
    files = folder / f"{name}.jani", folder / f"{name}.props.jani"
    policy = write_network(load_task(*files), tmp_path / "line.nnet", seed)
    return [str(files[0]), "--properties", str(files[1]), "--policy", policy]


def test_the_same_seed_gives_the_same_faults_with_any_number_of_processes(
    shared: Path, tmp_path: Path
) -> None:
    arguments = ["faults", *line(shared, tmp_path), "--runs", "600", "--seed", "3"]
    found = [as_json(*arguments)]
    found += [as_json(*arguments, "--executor", "processes", "--workers", n) for n in ("2", "4")]
    assert found[0]["found"] == found[1]["found"] == found[2]["found"]
    assert len(found[0]["found"]) > 10


def test_a_command_that_was_done_before_is_answered_from_the_store(
    shared: Path, tmp_path: Path
) -> None:
    store = ["--store", str(tmp_path / "s.db")]
    arguments = ["faults", *line(shared, tmp_path), "--runs", "300", *store]
    first, again = as_json(*arguments), as_json(*arguments)
    assert first["found"] == again["found"]
    assert first["analysis_seconds"] == again["analysis_seconds"]


def kill_after(command: list[str], seconds: float, output: Path, *, talking: bool) -> None:
    """Kill a command so long after its start, or after its first words."""
    with output.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL)
        while talking and process.poll() is None and not output.stat().st_size:
            time.sleep(0.02)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_kill_loses_no_fault_that_was_printed_and_the_command_resumes(
    shared: Path, tmp_path: Path
) -> None:
    kills = int(os.environ.get("SAFETEST_KILLS", "10"))
    arguments = line(shared, tmp_path)
    task = load_task(arguments[0], arguments[2])
    runs = ["--runs", "20000"]
    whole = as_json("faults", *arguments, *runs)
    path, output = tmp_path / "s.db", tmp_path / "out.txt"
    start = "from safetest_gym.cli.app import main; main()"
    stored = [*arguments, *runs, "--store", str(path)]
    command = [sys.executable, "-c", start, "faults", *stored]
    rng = np.random.default_rng(0)
    for _ in range(kills):
        talking = bool(rng.random() < 0.7)
        kill_after(command, float(rng.uniform(0.0, 2.0)), output, talking=talking)
        printed = output.read_text().splitlines()
        lines = [text for text in printed[:-1] if " can lead to " in text]
        with FaultStore(path) as store:
            known = {entry.fault.describe(task) for entry in store.faults(task)}
        assert set(lines) <= known
        if rng.random() < 0.3:  # and again from nothing
            for file in tmp_path.glob("s.db*"):
                file.unlink(missing_ok=True)
    assert as_json("faults", *stored)["found"] == whole["found"]


PARTS = {
    "bouncing_ball": {
        "failure": "bouncing_ball.safe.jani",
        "goal": "bouncing_ball.objective.jani",
        "start": "bouncing_ball.start.jani",
    },
    "linetrack": {
        "failure": "linetrack.safe.jani",
        "goal": "linetrack.goal.jani",
        "start": "linetrack.start.jani",
    },
}
"""Models without a file of properties."""


@pytest.mark.slow
def test_every_planning_model_goes_through_the_whole_test(shared: Path, tmp_path: Path) -> None:
    folder, real = shared / PLANNING, 0
    documents = {path: json.loads(path.read_text("utf-8-sig")) for path in folder.glob("*.jani")}
    models = sorted(path for path, document in documents.items() if "automata" in document)
    for model in models:
        parts = {part: str(folder / name) for part, name in PARTS.get(model.stem, {}).items()}
        given = [] if parts else [str(model.with_name(f"{model.stem}.props.jani"))]
        task = load_task(
            model,
            *given,
            failure=parts.get("failure"),
            goal=parts.get("goal"),
            start=parts.get("start"),
        )
        policy = write_network(task, tmp_path / "p.nnet")
        options = ["--properties", *given] if given else []
        options += [text for part, name in parts.items() for text in (f"--{part}", name)]
        short = ["--runs", "100", "--max-steps", "500", "--starts", "20"]
        found = as_json("test", str(model), *options, "--policy", policy, *short)
        assert found["runs"] == 100
        assert found["unavoidable"] + found["unresolved"] <= found["unsafe_runs"]
        real += task.dtype.kind == "f"
    assert len(models) >= 20
    assert real >= 5
