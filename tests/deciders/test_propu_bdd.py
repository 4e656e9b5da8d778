"""Regression with decision diagrams decides as the definitions say."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("dd")

from safetest_gym.deciders import Budget, Verdict, make_decider
from safetest_gym.deciders.checking import check_certificate
from safetest_gym.deciders.symbolic import Encoding
from safetest_gym.engine.evaluation import evaluate
from safetest_gym.errors import ConfigError, EngineError, EvaluationError
from safetest_gym.jani import read_condition
from safetest_gym.task import Task, load_task
from tests.deciders import agreement
from tests.oracles.random_tasks import grid_task, random_task

NAME = "propu-bdd"


@pytest.mark.parametrize("mode", ["label", "edge"])
def test_all_states_of_random_tasks_are_decided_as_by_otf(mode: Any) -> None:
    for seed in range(12):
        _agrees(random_task(seed, mode=mode))


@pytest.mark.slow
def test_very_many_random_tasks_are_decided_as_by_otf() -> None:
    for seed in range(12, 300):
        _agrees(random_task(seed, states=20, actions=4))


def _agrees(task: Task) -> None:
    states = task.initial.enumerate(500)
    truth = make_decider("otf", task).decide_many(states)
    assert np.array_equal(make_decider(NAME, task).decide_many(states), truth)


def test_the_diagrams_written_in_python_do_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dd.cudd", None)
    _agrees(random_task(5))


def test_without_the_package_there_is_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("dd", "dd.cudd", "dd.autoref"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=r"install safetest-gym\[bdd\]"):
        make_decider(NAME, random_task(5))


def test_variables_that_change_together_are_followed_together() -> None:
    _agrees(grid_task())


@pytest.mark.parametrize(("name", "constants"), [("ferry", {}), ("handover", {"N": 3})])
def test_several_automata_are_followed_together(data: Path, name: str, constants: Any) -> None:
    plain = load_task(data / f"{name}.jani", constants=constants)
    variable = next(v for v in plain.variables if v.kind != "bool" and not v.locations)
    failure = f"{variable.name} = {variable.upper}"
    task = load_task(data / f"{name}.jani", constants=constants, failure=failure)
    states = task.initial.sample(20, np.random.default_rng(0))
    truth = make_decider("otf", task).decide_many(states)
    assert np.array_equal(make_decider(NAME, task).decide_many(states), truth)


@pytest.mark.parametrize("name", ["blocksworld", "flappy_bird", "layered", "outer_loop"])
def test_bundled_tasks_are_decided_as_by_otf(name: str) -> None:
    task = agreement.bundled(name)
    states = task.initial.sample(40, np.random.default_rng(0))
    truth = make_decider("otf", task).decide_many(states)
    decider = make_decider(NAME, task)
    assert np.array_equal(decider.decide_many(states), truth)
    decider.clear()
    assert decider.decide(states[0]) == truth[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one_way_line", "two_way_line", "beluga"])
def test_larger_tasks_are_decided_as_by_otf(name: str) -> None:
    task = agreement.bundled(name)
    states = task.initial.sample(40, np.random.default_rng(0))
    truth = make_decider("otf", task).decide_many(states)
    assert np.array_equal(make_decider(NAME, task).decide_many(states), truth)


def test_certificates_prove_the_verdicts() -> None:
    task = random_task(3)
    decider = make_decider(NAME, task)
    for state in task.initial.enumerate(100):
        certificate = decider.certificate(state)
        assert certificate.verdict is decider.decide(state)
        check_certificate(task, certificate)


def test_a_budget_of_time_ends_with_unknown_and_a_raised_one_goes_on() -> None:
    task = agreement.bundled("one_way_line")
    start = task.initial.sample(1, np.random.default_rng(0))[0]
    decider = make_decider(NAME, task, budget=Budget(seconds=1e-9))
    assert decider.decide(start) is Verdict.UNKNOWN
    decider.budget = Budget()
    assert decider.decide(start) is make_decider("otf", task).decide(start)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"radius": 1}, "cannot decide with a finite radius"), ({"order": "rand"}, "has the orders")],
)
def test_what_makes_no_sense_is_refused(options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_decider(NAME, random_task(0), **options)


def test_real_variables_are_refused(data: Path) -> None:
    task = load_task(data / "glider.jani", failure="height <= 0")
    with pytest.raises(ConfigError, match=r"needs bounded variables, but .* is real"):
        make_decider(NAME, task)


def test_states_without_a_value_matter_only_where_they_decide() -> None:
    decider = make_decider(NAME, agreement.counting_task(2))
    assert decider.decide(np.array([4])) is Verdict.UNSAFE
    assert decider.decide(np.array([2])) is Verdict.SAFE
    with pytest.raises(EngineError, match="in which the model has no value"):
        make_decider(NAME, agreement.counting_task(5)).decide(np.array([1]))


@pytest.mark.parametrize(
    "condition",
    [
        "n + 2 * m = 3",
        "n / m > 1",
        "m > 0 and n / m >= 2",
        "n = 0 or 6 / n > m",
        "n % 2 = 1",
        "(n if n > m else m + 0.5) > 2.2",
        "min(n, m, 2) = max(n - m, 1)",
        "not (n = m) => pow(2, n) > 4",
        "floor(n / 2) = m",
    ],
)
def test_conditions_hold_where_the_interpreter_says(condition: str) -> None:
    kind = {"kind": "bounded", "base": "int", "lower-bound": 0, "upper-bound": 5}
    variables = [{"name": name, "type": kind, "initial-value": 0} for name in ("n", "m")]
    model = load_task(
        {
            "jani-version": 1,
            "name": "two numbers",
            "type": "mdp",
            "variables": variables,
            "automata": [
                {
                    "name": "a",
                    "locations": [{"name": "l"}],
                    "initial-locations": ["l"],
                    "edges": [],
                }
            ],
            "system": {"elements": [{"automaton": "a"}]},
        }
    ).model
    expression = read_condition(condition, model)
    encoding = Encoding(model.variables)
    partition = encoding.partition(expression, encoding.state)
    for values in itertools.product(range(6), repeat=2):
        bits: dict[str, bool] = {}
        for variable, value in zip(model.variables, values, strict=True):
            bits |= encoding.bits_of(variable, value)
        let, true = encoding.bdd.let, encoding.bdd.true
        found = [v for v, when in partition.items() if let(bits, when) == true]
        try:
            expected = [evaluate(expression, dict(zip(model.variables, values, strict=True)))]
        except EvaluationError:
            expected = []
        assert found == expected, values
