from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from safetest_gym.engine.interpreter import Interpreter
from safetest_gym.engine.rewrite import Inliner
from safetest_gym.errors import ConfigError, SafetestError
from safetest_gym.jani.tree import FALSE
from safetest_gym.policies import Policy
from safetest_gym.task import Task, load_task
from safetest_gym.verify.boxes import BoxSystem
from safetest_gym.verify.intervals import Bounds
from safetest_gym.verify.narrowing import Narrower
from tests.oracles.random_models import (
    TAME,
    WILD,
    WILD_REAL,
    RandomModel,
    random_examples,
    random_models,
)
from tests.oracles.random_tasks import random_task
from tests.verify.policies import random_ensemble, random_mlp, random_policy

STATES = 6


def _task(model: RandomModel) -> Task:
    failure, goal = ({"op": "state-condition", "exp": e} for e in (model.failure, model.goal))
    return load_task(model.document, constants=model.constants, failure=failure, goal=goal)


def _some_states(task: Task, rng: np.random.Generator) -> NDArray[np.float64]:
    """States anywhere within the bounds; the unbounded near zero."""
    columns = []
    for variable in task.variables:
        low = 0 if variable.kind == "bool" else -5 if variable.lower is None else variable.lower
        high = 1 if variable.kind == "bool" else 5 if variable.upper is None else variable.upper
        if variable.kind == "real":
            columns.append(rng.uniform(float(low), float(high), STATES))
        else:
            columns.append(rng.integers(int(low), int(high), STATES, endpoint=True).astype(float))
    return np.stack(columns, axis=1)


def _outcomes(task: Task, policy: Policy, state: NDArray[Any]) -> list[NDArray[Any]]:
    """What the policy can lead to; nothing where runs end or something has no value."""
    try:
        if task.is_failing(state) or task.is_goal(state):
            return []
        choices = dict(task.successors(state))
        if not choices:
            return []
        mask = np.zeros((1, task.num_actions), np.bool_)
        mask[0, list(choices)] = True
        action = int(policy.actions(state[None, :], mask)[0])
        return [outcome for _, outcome in choices[action]]
    except SafetestError:
        return []


def _compare(model: RandomModel, seed: int, *, network: bool) -> None:
    """All that follows a state must be in the images of every box around it."""
    try:
        task = _task(model)
        policy: Policy = random_mlp(task, seed) if network else random_ensemble(task, seed)
        system = BoxSystem(task, policy.bind(task))
    except SafetestError:
        assume(False)
        return
    system.splits = seed % 4
    rng = np.random.default_rng(seed)
    states = _some_states(task, rng)
    others = states[rng.permutation(STATES)]
    low, high = np.minimum(states, others), np.maximum(states, others)
    low[0] = high[0] = states[0]
    images = system.images((low, high))
    failing, _ = system.can_fail((low, high))
    for number, state in enumerate(states):
        vector = task.engine.vectors(state[None, :])[0]
        mine = images.owner == number
        targets = images.target[0][mine], images.target[1][mine]
        for outcome in _outcomes(task, policy, vector):
            assert ((targets[0] <= outcome) & (outcome <= targets[1])).all(axis=1).any()
        try:
            assert failing[number] or not task.is_failing(vector)
        except SafetestError:
            continue


@random_examples(10)
@given(random_models(WILD), st.integers(0, 1000))
def test_images_have_every_outcome_of_a_tree_policy(model: RandomModel, seed: int) -> None:
    _compare(model, seed, network=False)


@random_examples(10)
@given(random_models(WILD_REAL), st.integers(0, 1000))
def test_images_have_every_outcome_with_real_variables(model: RandomModel, seed: int) -> None:
    _compare(model, seed, network=False)


@random_examples(10)
@given(random_models(TAME), st.integers(0, 1000))
def test_images_have_every_outcome_of_a_network(model: RandomModel, seed: int) -> None:
    _compare(model, seed, network=True)


@random_examples(15)
@given(random_models(WILD_REAL), st.integers(0, 1000), st.booleans())
def test_bounds_and_narrowing_lose_no_state(model: RandomModel, seed: int, wanted: bool) -> None:
    try:
        task = _task(model)
    except SafetestError:
        assume(False)
        return
    condition = Inliner().plain(task.property.failure or FALSE)
    states = _some_states(task, np.random.default_rng(seed))
    low, high = states.min(axis=0)[None, :].copy(), states.max(axis=0)[None, :].copy()
    narrower, interpreter = Narrower(task.variables), Interpreter(task.model)
    bounds = Bounds(narrower.columns, low, high).of(condition)
    part = low.copy(), high.copy()
    alive = narrower.narrow(condition, part, wanted)
    for state in states:
        values = task.engine.values(task.engine.pack(state[None, :])[0])
        try:
            holds = interpreter.holds(condition, values)
        except SafetestError:
            continue
        assert bounds[0][0] <= holds <= bounds[1][0]
        if holds is wanted:
            assert alive[0]
            assert ((part[0] <= state) & (state <= part[1])).all()


def test_a_policy_without_bounds_is_refused() -> None:
    task = random_task(1)
    with pytest.raises(ConfigError, match="explicit"):
        BoxSystem(task, random_policy(task, 0, "hash").bind(task))
