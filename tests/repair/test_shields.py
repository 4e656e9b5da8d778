from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from safetest_gym.deciders import Verdict, make_decider
from safetest_gym.envs.options import open_task
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.envs.tasks.two_way_line import TwoWayLine
from safetest_gym.errors import ConfigError
from safetest_gym.faults import Fault
from safetest_gym.repair.learned_shield import LearnConfig, LearnedShield, walked_states
from safetest_gym.repair.shields import (
    CombinedShield,
    DeciderShield,
    FaultShield,
    Shield,
    ShieldError,
    require_same_task,
)
from safetest_gym.repair.shields_file import load_shield, save_shield
from safetest_gym.task import Task


@pytest.fixture(scope="module")
def task() -> Task:
    return open_task(OneWayLine(packages=1, locations=5), {})[0]


@pytest.fixture(scope="module")
def other() -> Task:
    return open_task(OneWayLine(packages=1, locations=6), {})[0]


def _fault(task: Task) -> Fault:
    """Some safe state with a safe and an unsafe action."""
    decider = make_decider("otf", task)
    for state in walked_states(task, 300):
        verdicts = decider.action_verdicts(state[None])[0]
        unsafe = np.flatnonzero(verdicts == Verdict.UNSAFE)
        safe = np.flatnonzero(verdicts == Verdict.SAFE)
        if len(unsafe) and len(safe):
            return Fault(state, int(unsafe[0]), state, tuple(safe.tolist()))
    raise AssertionError("no fault")


def test_a_fault_shield_forbids_exactly_the_faults_pair(task: Task) -> None:
    fault = _fault(task)
    shield = FaultShield(task, [fault])
    assert np.flatnonzero(~shield.mask(fault.state)).tolist() == [fault.action]
    others = walked_states(task, 200)
    others = others[(others != fault.state).any(axis=1)]
    assert shield.mask_many(others).all()


def test_adding_a_known_fault_changes_nothing(task: Task) -> None:
    fault = _fault(task)
    shield = FaultShield(task, [fault])
    assert shield.add([fault]) == 0
    assert len(shield) == 1


def test_a_fault_shield_leaves_the_last_applicable_action_open(task: Task) -> None:
    state = _fault(task).state
    applicable = np.flatnonzero(task.applicable(state))
    shield = FaultShield(task)
    shield.add_pairs(np.repeat(state[None], len(applicable), axis=0), applicable)
    assert shield.allowed(state[None])[0].sum() == 1
    assert shield.report()["stepped_aside"] == 1


def test_a_decider_shield_permits_exactly_the_safe_actions_of_safe_states(task: Task) -> None:
    states = walked_states(task, 300)
    verdicts = make_decider("tarjan", task).action_verdicts(states)
    helped = (verdicts == Verdict.SAFE).any(axis=1)
    shield = DeciderShield(task)
    masks = shield.allowed(states)
    assert (masks[helped] == (verdicts[helped] == Verdict.SAFE)).all()
    assert (masks[~helped] == task.applicable_many(states[~helped])).all()
    assert shield.report()["stepped_aside"] == (~helped).sum()


def test_masks_of_one_state_and_of_many_agree(task: Task) -> None:
    states = walked_states(task, 50)
    fault = _fault(task)
    parts: list[Shield] = [FaultShield(task, [fault]), DeciderShield(task)]
    for shield in [*parts, CombinedShield(*parts)]:
        single = np.array([shield.mask(state) for state in states])
        assert (single == shield.mask_many(states)).all()


def test_following_a_decider_shield_from_a_safe_start_never_fails() -> None:
    task = open_task(TwoWayLine(packages=1, locations=4, variant="icy_park"), {})[0]
    rng = np.random.default_rng(0)
    states = task.initial.sample(200, rng)
    states = states[make_decider("otf", task).decide_many(states) == Verdict.SAFE]
    assert len(states)
    shield = DeciderShield(task)
    for _ in range(60):
        masks = shield.allowed(states)
        running = masks.any(axis=1) & (task.classify(states) == 0)
        states, masks = states[running], masks[running]
        if not len(states):
            break
        actions = np.where(masks, rng.random(masks.shape), -1.0).argmax(axis=1)
        states = task.step_many(states, actions, rng)
        assert not (task.classify(states) & 1).any()


def test_terminal_states_are_not_judged(task: Task) -> None:
    states = walked_states(task, 500)
    masks = task.applicable_many(states)
    after = task.step_many(states, masks.argmax(axis=1), np.random.default_rng(0))
    terminal = after[task.classify(after) != 0]
    assert len(terminal)
    shield = DeciderShield(task)
    assert shield.mask_many(terminal).all()
    assert shield.judged == 0


def test_a_combination_hears_the_first_part_where_the_parts_exclude_each_other(
    task: Task,
) -> None:
    fault = _fault(task)
    decider = DeciderShield(task)
    safe = np.flatnonzero(decider.allowed(fault.state[None])[0])
    against = FaultShield(task)
    against.add_pairs(np.repeat(fault.state[None], len(safe), axis=0), safe)
    combined = CombinedShield(decider, against)
    assert np.flatnonzero(combined.allowed(fault.state[None])[0]).tolist() == safe.tolist()


def test_unknown_actions_are_permitted_only_where_none_is_known_to_be_safe(task: Task) -> None:
    shield = DeciderShield(task, budget={"states": 1})
    states = walked_states(task, 20)
    verdicts = make_decider("otf", task, budget=shield.budget).action_verdicts(states)
    masks = shield.allowed(states)
    assert masks.any(axis=1).all()
    assert shield.unknown == (verdicts == Verdict.UNKNOWN).any(axis=1).sum() > 0


def test_a_budget_is_not_used_up_by_what_earlier_states_needed() -> None:
    task = open_task(OneWayLine(packages=4, locations=8), {})[0]
    states = walked_states(task, 3000)
    limited = DeciderShield(task, budget={"states": 10_000})
    exact = DeciderShield(task)
    for part in np.array_split(states, 5):
        assert (limited.mask_many(part) == exact.mask_many(part)).all()
    assert limited.unknown == 0
    assert limited.decider.statistics.states <= 10_000 < exact.decider.statistics.states


@pytest.mark.parametrize("kind", ["faults", "decider", "learned", "combined"])
def test_a_saved_shield_masks_the_same_when_loaded(task: Task, tmp_path: Path, kind: str) -> None:
    shield = _shield(task, kind)
    save_shield(shield, tmp_path / "shield")
    loaded = load_shield(tmp_path / "shield", task)
    states = walked_states(task, 200)
    assert type(loaded) is type(shield)
    assert (loaded.mask_many(states) == shield.mask_many(states)).all()


@pytest.mark.parametrize("kind", ["faults", "decider", "learned", "combined"])
def test_shields_survive_pickling_and_copying(task: Task, kind: str) -> None:
    shield = _shield(task, kind)
    states = walked_states(task, 100)
    for twin in (pickle.loads(pickle.dumps(shield)), copy.deepcopy(shield)):
        assert (twin.mask_many(states) == shield.mask_many(states)).all()


def _shield(task: Task, kind: str) -> Shield:
    faults = FaultShield(task, [_fault(task)])
    if kind == "faults":
        return faults
    if kind == "learned":
        return LearnedShield.learn(task, walked_states(task, 400), LearnConfig(trees=3))
    return DeciderShield(task) if kind == "decider" else CombinedShield(faults, DeciderShield(task))


def test_a_shield_of_another_model_is_refused_by_name(
    task: Task, other: Task, tmp_path: Path
) -> None:
    save_shield(FaultShield(other), tmp_path / "shield")
    with pytest.raises(ShieldError, match="was made for one_way_line_1_6_det with the variables"):
        load_shield(tmp_path / "shield", task)
    with pytest.raises(ShieldError, match="make the shield from this task"):
        require_same_task(FaultShield(other), task)


def test_a_shield_of_the_same_names_with_another_failure_condition_is_refused(
    task: Task, tmp_path: Path
) -> None:
    twin = open_task(OneWayLine(packages=1, locations=5), {"failure": "truck_0 == 0"})[0]
    save_shield(FaultShield(task), tmp_path / "shield")
    with pytest.raises(ShieldError, match="the names are the same"):
        load_shield(tmp_path / "shield", twin)


def test_a_file_that_holds_no_shield_is_refused(task: Task, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no shield")
    with pytest.raises(ShieldError, match="holds no shield"):
        load_shield(tmp_path / "text", task)
    np.savez(tmp_path / "array.npz", header=np.array("{}"))
    with pytest.raises(ShieldError, match="holds no shield"):
        load_shield(tmp_path / "array.npz", task)


@pytest.mark.parametrize("kind", ["faults", "decider", "learned"])
def test_a_damaged_file_is_named(task: Task, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "shield"
    save_shield(_shield(task, kind), path)
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    header = json.loads(str(arrays["header"]))
    lame = [
        {**header, "parts": [{**header["parts"][0], "kind": "magic"}]},
        {**header, "parts": [{"kind": kind}]},
        {name: value for name, value in header.items() if name != "digest"},
    ]
    for wrong in lame:
        np.savez(tmp_path / "lame.npz", **{**arrays, "header": np.array(json.dumps(wrong))})
        with pytest.raises(ShieldError, match="is damaged"):
            load_shield(tmp_path / "lame.npz", task)
    if kind == "decider":
        return
    for name in arrays.keys() - {"header"}:
        part = {key: array for key, array in arrays.items() if key != name}
        np.savez(tmp_path / "lame.npz", **part)
        with pytest.raises(ShieldError, match="is damaged"):
            load_shield(tmp_path / "lame.npz", task)


def test_a_pair_that_is_none_of_the_task_is_refused(task: Task) -> None:
    state = walked_states(task, 1)
    for action in (-1, task.num_actions):
        with pytest.raises(ShieldError, match="has the actions"):
            FaultShield(task).add_pairs(state, np.array([action]))


def test_a_combination_of_combinations_is_saved_part_by_part(task: Task, tmp_path: Path) -> None:
    inner = _shield(task, "combined")
    shield = CombinedShield(inner, _shield(task, "learned"))
    assert [part.kind for part in shield.parts] == ["faults", "decider", "learned"]
    save_shield(shield, tmp_path / "shield")
    states = walked_states(task, 100)
    loaded = load_shield(tmp_path / "shield", task)
    assert (loaded.mask_many(states) == shield.mask_many(states)).all()


def test_a_combination_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one"):
        CombinedShield()
