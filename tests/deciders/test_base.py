"""What all deciders share, shown on the default one."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safetest_gym.deciders import Budget, Verdict, make_decider
from safetest_gym.deciders.base import NOT_APPLICABLE
from safetest_gym.envs.tasks.families import LayeredFamily
from safetest_gym.errors import CacheError, ConfigError, OutOfBoundsError
from safetest_gym.policies import CallablePolicy, Interface, TablePolicy
from safetest_gym.task import Task, load_task
from tests.deciders.agreement import counting_task
from tests.oracles.fixpoint import safe_states
from tests.oracles.hashed_systems import hashed_task, states_of, systems_of

ANY: Any = None


def _layers(layers: int) -> Task:
    family = LayeredFamily(layers=layers)
    return load_task(family.model(), failure="layer < 0", start="layer = 0 and side = 0")


def test_an_unknown_name_is_answered_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="did you mean 'tarjan'"):
        make_decider("tarian", _layers(2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": 1}, "need a policy"),
        ({"radius": -1}, "whole number or inf"),
        ({"radius": 0.5}, "whole number or inf"),
        ({"radius": math.nan}, "whole number or inf"),
        ({"radius": 2**40}, "at most"),
        ({"order": "learn"}, "need a policy"),
        ({"order": "best"}, "order must be one of"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_decider("otf", _layers(2), **options)


def test_a_policy_that_only_python_can_call_is_refused_with_a_radius() -> None:
    task = _layers(2)
    policy = CallablePolicy(lambda state, names: names[0], Interface.of(task))
    with pytest.raises(ConfigError, match="only be called from Python"):
        make_decider("otf", task, policy=policy, radius=1)


def test_a_budget_of_states_ends_with_unknown_and_a_raised_one_goes_on() -> None:
    task = _layers(20_000)
    start = task.initial.enumerate(1)[0]
    decider = make_decider("otf", task, budget=Budget(states=100))
    assert decider.decide(start) is Verdict.UNKNOWN
    assert 100 < decider.statistics.states < 110
    expanded = decider.statistics.expanded
    assert decider.decide(start) is Verdict.UNKNOWN
    assert decider.statistics.expanded == expanded
    decider.budget = Budget(states=40_002)
    assert decider.decide(start) is Verdict.SAFE
    assert decider.statistics.expanded == 40_002
    assert decider.statistics.unknown == 2


@pytest.mark.parametrize("budget", [Budget(seconds=1e-9), Budget(megabytes=1.0)])
def test_budgets_of_time_and_memory_end_with_unknown(budget: Budget) -> None:
    task = _layers(200_000)
    start = task.initial.enumerate(1)[0]
    decider = make_decider("otf", task, budget=budget)
    assert decider.decide(start) is Verdict.UNKNOWN
    decider.budget = Budget()
    assert decider.decide(start) is Verdict.SAFE


def test_after_a_deadline_only_what_is_known_is_answered() -> None:
    task = _layers(20_000)
    start = task.initial.enumerate(1)[0]
    decider = make_decider("otf", task)
    decider.deadline = time.monotonic() - 1
    assert decider.decide(start) is Verdict.UNKNOWN
    assert decider.statistics.expanded == 0
    decider.deadline = None
    assert decider.decide(start) is Verdict.SAFE
    decider.deadline = time.monotonic() - 1
    assert decider.decide(start) is Verdict.SAFE


def test_what_an_unfinished_search_leaves_behind_misleads_no_other_query() -> None:
    task = hashed_task()
    states = states_of(range(600))
    truth = make_decider("otf", task).decide_many(states)
    decider = make_decider("otf", task)
    for round_ in range(40):
        decider.budget = Budget(states=1 + round_ * len(states) // 40)
        found = decider.decide_many(states[:: round_ + 1])
        known = found != Verdict.UNKNOWN
        assert np.array_equal(found[known], truth[:: round_ + 1][known])
    decider.budget = Budget()
    assert np.array_equal(decider.decide_many(states), truth)


def test_an_interrupt_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    task = _layers(50_000)
    start = task.initial.enumerate(1)[0]
    decider = make_decider("otf", task)
    grow = decider._continue
    left = [1, 0, 0, 1, 1, 0, 1]

    def interrupted(code: int) -> None:
        if left and left.pop():
            raise KeyboardInterrupt
        grow(code)

    monkeypatch.setattr(decider, "_continue", interrupted)
    for _ in range(4):
        with pytest.raises(KeyboardInterrupt):
            decider.decide(start)
    assert decider.decide(start) is Verdict.SAFE
    assert not left
    assert decider.statistics.expanded == decider.statistics.states == 100_002


def test_work_is_linear_in_the_transitions() -> None:
    for layers in (1000, 100_000):
        task = _layers(layers)
        decider = make_decider("otf", task)
        assert decider.decide(task.initial.enumerate(1)[0]) is Verdict.SAFE
        statistics = decider.statistics
        assert statistics.expanded == statistics.states == 2 * layers + 2
        assert statistics.tried < statistics.states + 100  # once more where a list grew


def test_a_known_state_takes_less_than_48_bytes_besides_itself(shared: Path) -> None:
    line = shared / "models" / "planning" / "one_way_line_15_10_det.jani"
    task = load_task(line, line.with_suffix(".props.jani"))
    decider = make_decider("otf", task, order="app")
    decider.decide_many(task.initial.enumerate(1000))
    statistics = decider.statistics
    assert statistics.states > 300_000
    assert 1e6 * statistics.megabytes / statistics.states < 48 + 8 * task.engine.num_words


@pytest.mark.parametrize("value", [0, -1, float("inf")])
def test_a_budget_must_be_positive(value: float) -> None:
    with pytest.raises(ConfigError, match="seconds of a budget"):
        Budget(seconds=value)


@pytest.mark.parametrize(("mode", "kind"), [("label", "mdp"), ("edge", "mdp"), ("label", "dtmc")])
def test_safe_actions_are_those_whose_outcomes_are_all_safe(mode: Any, kind: Any) -> None:
    task = hashed_task(mode=mode, kind=kind)
    states = states_of(range(200))
    decider = make_decider("otf", task)
    rows = iter(states)
    for system in systems_of(task, states):
        safe = safe_states(system)
        for s in system.states:
            mask = decider.safe_actions(next(rows))
            assert set(np.flatnonzero(mask)) == {
                a for a, outcomes in system.actions[s].items() if outcomes <= safe
            }


def test_with_a_radius_an_action_of_one_s_own_uses_up_a_deviation() -> None:
    task = hashed_task(places=6)
    states = states_of(range(200), places=6)
    live = states[task.applicable_many(states).any(axis=1)]
    chosen = task.applicable_many(live).argmax(axis=1)
    policy = TablePolicy(live, chosen, Interface.of(task))
    deciders = [make_decider("otf", task, policy=policy, radius=r) for r in (0, 1)]
    verdicts = deciders[1].action_verdicts(live)
    strict = deciders[0].action_verdicts(live)
    for i, state in enumerate(live):
        for action, outcomes in task.successors(state):
            r = int(action == chosen[i])
            safe = all(deciders[r].decide(o) is Verdict.SAFE for _, o in outcomes)
            assert (verdicts[i, action] == Verdict.SAFE) == safe
            if not r:
                assert strict[i, action] == Verdict.UNSAFE


def test_actions_that_the_budget_left_open_are_told_apart_and_not_safe() -> None:
    task = _layers(1000)
    decider = make_decider("otf", task, budget=Budget(states=10))
    start = task.initial.enumerate(1)
    assert decider.action_verdicts(start).tolist() == [[Verdict.UNKNOWN]]
    assert not decider.safe_actions(start[0]).any()
    assert decider.statistics.unknown > 0
    ferry = hashed_task()
    dead = states_of(range(50))[~ferry.applicable_many(states_of(range(50))).any(axis=1)]
    assert (make_decider("otf", ferry).action_verdicts(dead) == NOT_APPLICABLE).all()


def test_clearing_forgets_everything() -> None:
    task = hashed_task()
    decider = make_decider("otf", task)
    decider.decide_many(states_of(range(3000)))
    decider.clear()
    assert decider.statistics.states == 0
    assert not decider.space.table.any()
    assert not decider.verdict.any()


def test_facts_stay_true_for_another_policy_and_their_search_is_not_repeated() -> None:
    task = hashed_task()
    states = states_of(range(100))
    live = states[task.applicable_many(states).any(axis=1)]
    masks = task.applicable_many(live)
    first = TablePolicy(live, masks.argmax(axis=1), Interface.of(task))
    last = TablePolicy(live, 2 - masks[:, ::-1].argmax(axis=1), Interface.of(task))
    decider = make_decider("otf", task, policy=first)
    truth = decider.decide_many(states)
    tried = decider.statistics.tried
    decider.follow(last)
    assert np.array_equal(decider.decide_many(states), truth)
    assert decider.statistics.tried == tried
    bounded = make_decider("otf", task, policy=first, radius=1)
    bounded.decide_many(live)
    bounded.follow(last)
    fresh = make_decider("otf", task, policy=last, radius=1)
    assert np.array_equal(bounded.decide_many(live), fresh.decide_many(live))


def test_saved_facts_answer_without_a_search(tmp_path: Path) -> None:
    task = hashed_task()
    states = states_of(range(300))
    decider = make_decider("otf", task, budget=Budget(states=1000))
    partly = decider.decide_many(states)
    decider.save(tmp_path / "facts.npz")
    other = make_decider("otf", task)
    assert other.load(tmp_path / "facts.npz") > 0
    known = partly != Verdict.UNKNOWN
    assert np.array_equal(other.decide_many(states[known]), partly[known])
    assert other.statistics.tried == 0
    assert np.array_equal(other.decide_many(states), make_decider("otf", task).decide_many(states))


@pytest.mark.parametrize("name", ["otf", "tarjan", "ipi", "npi", "propu", "vi", "lrtdp", "lao"])
def test_room_is_made_before_earlier_queries_have_used_up_the_budget(name: str) -> None:
    task, states = hashed_task(), states_of(range(1500))
    truth = make_decider(name, task).decide_many(states)
    decider = make_decider(name, task, budget=Budget(states=4000))
    assert (decider.decide_many(states) == Verdict.UNKNOWN).any()
    decider.clear()
    for first in range(0, len(states), 100):
        decider.make_room()
        part = slice(first, first + 100)
        assert np.array_equal(decider.decide_many(states[part]), truth[part])
    done = decider.statistics
    assert (done.queries, done.unknown) == (len(states), 0)
    assert done.states <= 4000 < done.expanded


def test_nothing_is_forgotten_where_few_answers_fill_the_budget() -> None:
    task, states = hashed_task(), states_of(range(8))
    decider = make_decider("otf", task, budget=Budget(states=20))
    decider.decide_many(states)
    before = decider.statistics.states
    decider.make_room()
    assert decider.statistics.states == before > 10


def test_facts_of_another_task_are_refused(tmp_path: Path) -> None:
    decider = make_decider("otf", hashed_task())
    decider.decide_many(states_of(range(10)))
    decider.save(tmp_path / "facts.npz")
    other = make_decider("otf", hashed_task(mode="edge"))
    with pytest.raises(CacheError, match="another task"):
        other.load(tmp_path / "facts.npz")
    assert other.statistics.states == 0


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nothing", b"text"])
def test_a_broken_file_of_facts_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "facts.npz").write_bytes(content)
    with pytest.raises(CacheError, match="holds no facts"):
        make_decider("otf", hashed_task()).load(tmp_path / "facts.npz")


def test_facts_with_a_part_missing_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "facts.npz"
    decider = make_decider("otf", hashed_task())
    decider.decide_many(states_of(range(10)))
    decider.save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["facts.npz"]
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    for name in arrays.keys() - {"format"}:
        np.savez(path, **{key: array for key, array in arrays.items() if key != name})
        with pytest.raises(CacheError, match=f"{name} is missing"):
            decider.load(path)


def test_facts_about_one_policy_are_not_saved(tmp_path: Path) -> None:
    task = hashed_task()
    policy = TablePolicy(states_of([0]), np.zeros(2, np.int64), Interface.of(task))
    with pytest.raises(ConfigError, match="about one policy"):
        make_decider("otf", task, policy=policy, radius=1).save(tmp_path / "facts.npz")


def test_a_step_out_of_bounds_is_explained_every_time_and_hurts_no_other_query() -> None:
    decider = make_decider("otf", counting_task(1, "n = 0"))
    for _ in range(2):
        with pytest.raises(OutOfBoundsError, match="assigns 6 to 'n'"):
            decider.decide(np.array([3]))
    assert decider.decide(np.array([0])) is Verdict.UNSAFE


def test_a_failure_condition_without_a_value_leaves_no_unjudged_state() -> None:
    task = counting_task(1, "1 / (n - 4) < 0 and n > 1000")
    decider = make_decider("otf", task)
    for _ in range(2):
        with pytest.raises(ArithmeticError):
            decider.decide(np.array([0]))
    assert decider.statistics.states == 4
    assert decider.decide_many(np.zeros((0, 1), np.int64)).shape == (0,)


def test_real_valued_tasks_are_decided_or_unknown(data: Path) -> None:
    task = load_task(data / "glider.jani", failure="height <= 0 and flown < 20")
    start = task.state({"height": 50.0, "flown": 0.0})
    small = make_decider("otf", task, budget=Budget(states=3))
    assert small.decide(start) is Verdict.UNKNOWN
    small.budget = Budget(states=200_000)
    assert small.decide(start) is not Verdict.UNKNOWN
