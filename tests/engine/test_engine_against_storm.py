"""The explorer counts what Storm counts, on random models."""

from __future__ import annotations

import pytest
from hypothesis import given, reject

from safetest_gym.engine.explore import Explorer
from safetest_gym.jani import read_model
from safetest_gym.jani.tree import PlanningProperty
from safetest_gym.task import Task
from tests.oracles.exploration import Exploration
from tests.oracles.random_models import TAME, RandomModel, random_examples, random_models
from tests.oracles.storm import StormRefusal, explore_with_storm, storm_is_missing

pytestmark = [
    pytest.mark.skipif(storm_is_missing(), reason="stormpy is not installed"),
    pytest.mark.usefixtures("own_code_cache"),
]

MAX_STATES = 5000


def compare_with_storm(model: RandomModel) -> None:
    """States, choices, transitions, deadlocks and initial states are the same."""
    tree = read_model(model.document, constants=model.constants)
    explorer = Explorer(Task(tree, PlanningProperty("none", None, None, None)), mode="edge")
    if not explorer.run(MAX_STATES):
        reject()
    ours = explorer.counts()
    try:
        theirs, _ = explore_with_storm(model.document, model.constants)
    except StormRefusal:  # it wants an initial state, and cannot evaluate every expression
        reject()
    assert theirs == Exploration(
        states=ours.states,
        choices=ours.choices,
        transitions=ours.transitions,
        deadlocks=ours.deadlocks,
        initial_states=ours.initial_states,
    )


@random_examples(60)
@given(random_models(TAME))
def test_random_models_have_the_counts_that_storm_finds(model: RandomModel) -> None:
    compare_with_storm(model)


@pytest.mark.slow
@random_examples(1000)
@given(random_models(TAME))
def test_many_random_models_have_the_counts_that_storm_finds(model: RandomModel) -> None:
    compare_with_storm(model)
