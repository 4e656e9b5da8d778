"""Every experiment measures one tiny cell, and shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safetest_gym.bench import (
    callbacks,
    fuzzing,
    interleaving,
    oracles,
    policy_testing,
    repair,
    speed,
)
from safetest_gym.bench import faults as fault_analysis
from safetest_gym.bench.experiment import Cell, Experiment, Facts, Row, Setting
from safetest_gym.bench.policy_testing import unique_pairs

TINY: dict[str, Any] = {"steps": [256]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Policies are trained once for all."""
    return tmp_path_factory.mktemp("bench")


def _measure(experiment: Experiment, folder: Path, **sizes: Any) -> tuple[Cell, Facts]:
    """The first cell, with other sizes."""
    cell = {**experiment.plan(Setting(quick=True))[0], **sizes}
    return cell, experiment.measure(cell, folder)


def test_fuzzing_counts_unsafe_runs(folder: Path) -> None:
    cell, facts = _measure(fuzzing.EXPERIMENT, folder, **TINY, runs=20)
    assert 0 <= facts["unsafe"] <= 20
    shown = fuzzing.EXPERIMENT.present([Row(cell, facts)])
    assert shown.tables[0].rows[0][:2] == ["Beluga", f"{5 * facts['unsafe']:.1f}"]


def test_fuzzing_finds_the_same_again(folder: Path, tmp_path: Path) -> None:
    _, first = _measure(fuzzing.EXPERIMENT, folder, **TINY, runs=20)
    _, again = _measure(fuzzing.EXPERIMENT, tmp_path, **TINY, runs=20)
    assert first | {"seconds": 0} == again | {"seconds": 0}


def test_oracles_time_every_state(folder: Path) -> None:
    cell, facts = _measure(oracles.EXPERIMENT, folder, **TINY, states=5)
    assert len(facts["seconds"]) == len(facts["verdicts"]) == 5
    assert 0 not in facts["verdicts"]
    shown = oracles.EXPERIMENT.present([Row(cell, facts)])
    assert set(shown.figures) == {"safe", "unsafe"}


def test_oracles_that_contradict_each_other_are_not_shown() -> None:
    cell = {"task": "Beluga", "limits": [1]}
    rows = [
        Row({**cell, "algorithm": "otf"}, {"seconds": [0.1], "verdicts": [1]}),
        Row({**cell, "algorithm": "LRTDP"}, {"seconds": [0.1], "verdicts": [2]}),
    ]
    with pytest.raises(RuntimeError, match="differ at state 0"):
        oracles.EXPERIMENT.present(rows)


def test_oracles_leave_open_what_they_have_no_time_for(folder: Path) -> None:
    _, facts = _measure(oracles.EXPERIMENT, folder, **TINY, states=5, cap=0.0)
    assert facts["verdicts"] == facts["seconds"] == [0] * 5
    assert facts["complete"] == 0


def test_fault_analysis_looks_at_every_unsafe_run(folder: Path) -> None:
    cell, facts = _measure(fault_analysis.EXPERIMENT, folder, **TINY, runs=3)
    assert len(facts["seconds"]) == len(facts["faults"]) == len(facts["states"])
    assert fault_analysis.EXPERIMENT.present([Row(cell, facts)]).tables[0].rows


def test_faults_are_compared_on_the_runs_that_all_algorithms_finished() -> None:
    first, second = fault_analysis.EXPERIMENT.plan(Setting(quick=True))[:2]

    def facts(runs: int) -> Facts:
        names = ("seconds", "faults", "states", "unresolved")
        return {**{name: [1] * runs for name in names}, "steps": 256}

    shown = fault_analysis.EXPERIMENT.present([Row(first, facts(3)), Row(second, facts(2))])
    assert [line[1] for line in shown.tables[0].rows[:2]] == ["2", "2"]
    assert any("Beluga 2 of 3" in note for note in shown.notes)


def test_policy_testing_finds_no_more_bugs_than_the_perfect_oracle(folder: Path) -> None:
    cell, facts = _measure(policy_testing.EXPERIMENT, folder, steps=256, pool=8)
    for kind in ("qualitative", "quantitative"):
        assert facts[kind]["any"] == facts[kind]["perfect"]
    assert policy_testing.EXPERIMENT.present([Row(cell, facts)]).tables[0].rows


def test_states_that_share_all_pairs_are_not_unique() -> None:
    assert unique_pairs(np.array([[0, 0, 1], [0, 0, 1]])) == 0
    assert unique_pairs(np.array([[0, 0, 1], [0, 0, 2]])) == 2


@pytest.mark.slow
@pytest.mark.parametrize("way", interleaving.WAYS)
def test_every_way_of_interleaving_is_judged(folder: Path, way: str) -> None:
    cell, facts = _measure(
        interleaving.EXPERIMENT, folder, way=way, before=4_096, steps=8_192, seconds=3
    )
    assert facts["shielded_unsafe"] == 0
    assert facts["timesteps"] == (0 if way == "start" else 8_192)
    assert interleaving.EXPERIMENT.present([Row(cell, facts)]).tables[0].rows[0][0] == way


def test_speed_shows_the_ratio_to_a_peer() -> None:
    cell = {"work": "step", "model": "line", "repeat": 0}
    rows = [
        Row({**cell, "tool": "ours"}, {"rate": 300_000.0}),
        Row({**cell, "tool": "Momba"}, {"rate": 20_000.0}),
    ]
    (line,) = speed.EXPERIMENT.present(rows).tables[0].rows
    assert line[1:] == ["300,000", "Momba 20,000", "15.0"]


def test_otf_is_compared_with_the_best_other_algorithm_first() -> None:
    cell = {"work": "query", "model": speed.PUBLISHED, "fresh": True, "repeat": 0}
    rates = {"otf": 300.0, "npi": 10.0, "tarjan": 200.0}
    rows = [
        Row({**cell, "tool": tool}, {"rate": rate, "first": 0.9 * rate})
        for tool, rate in rates.items()
    ]
    best, second, learning = speed.EXPERIMENT.present(rows).tables[0].rows
    assert best[0].startswith("otf beside tarjan: published start states")
    assert (best[3], second[3]) == ("1.5", "30.0")
    assert learning[1:] == ["270", "tarjan 200", "1.4"]


def test_rates_measured_before_first_passes_were_told_are_shown() -> None:
    cell = {"work": "query", "model": speed.PUBLISHED, "fresh": True, "repeat": 0}
    rows = [Row({**cell, "tool": tool}, {"rate": 2.0}) for tool in ("otf", "ipi")]
    assert len(speed.EXPERIMENT.present(rows).tables[0].rows) == 1


def test_published_start_states_are_left_out_where_they_are_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("safetest_gym.bench.speed_work.published_files", lambda: None)
    plan = speed.EXPERIMENT.plan(Setting())
    assert not any(cell["model"] == speed.PUBLISHED for cell in plan)
    rows = [Row(plan[0], None)]
    assert any("are missing" in note for note in speed.EXPERIMENT.present(rows).notes)


def test_speed_refuses_state_spaces_of_different_sizes() -> None:
    cell = {"work": "explore", "model": "line", "repeat": 0}
    facts = {"seconds": 1.0, "peak_mb": 1.0}
    rows = [
        Row({**cell, "tool": "ours"}, {**facts, "states": 2}),
        Row({**cell, "tool": "Storm"}, {**facts, "states": 3}),
    ]
    with pytest.raises(RuntimeError, match="states differ"):
        speed.EXPERIMENT.present(rows)


@pytest.mark.slow
def test_repair_makes_nothing_of_the_same_faults_but_what_the_loop_made(folder: Path) -> None:
    sizes = {"steps": [2_048], "size": 100}
    cell, loop = _measure(repair.EXPERIMENT, folder, **sizes)
    part = {**cell, "method": "ablation"}
    facts = repair.EXPERIMENT.measure(part, folder)
    assert facts["faults"] == loop["faults"] > 0
    findings = repair.EXPERIMENT.present([Row(cell, loop), Row(part, facts)])
    assert findings.tables[-1].rows[-1][1] == f"{facts['faults']:.2f}"


def test_a_repair_that_did_not_end_is_shown_as_missing() -> None:
    cell = repair.EXPERIMENT.plan(Setting(quick=True))[0]
    findings = repair.EXPERIMENT.present([Row(cell, None)])
    assert findings.tables[0].rows[0][2] == "-"
    assert any("1 cells did not end" in note for note in findings.notes)


@pytest.mark.slow
@pytest.mark.parametrize("training", callbacks.TRAININGS)
def test_every_training_with_callbacks_is_judged(folder: Path, training: str) -> None:
    cell, facts = _measure(callbacks.EXPERIMENT, folder, training=training)
    shields = ("faults as masks", "the same, no lessons", "decider shield")
    assert (facts["shielded_unsafe"] is not None) == (training in shields)
    assert callbacks.EXPERIMENT.present([Row(cell, facts)]).tables[0].rows
