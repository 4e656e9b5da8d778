"""The engine and the independent reading of the documents see the same models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from safetest_gym.envs.tasks.blocksworld import Blocksworld
from safetest_gym.envs.tasks.families import LayeredFamily, OuterLoop
from safetest_gym.envs.tasks.n_puzzle import NPuzzle
from safetest_gym.envs.tasks.one_way_line import OneWayLine
from safetest_gym.envs.tasks.transport import Transport
from safetest_gym.envs.tasks.two_way_line import TwoWayLine
from safetest_gym.task import Task, load_task
from tests.envs.tasks.document import Document, State
from tests.envs.tasks.equivalence import Planning, space

TASKS = [
    OneWayLine(packages=2, locations=5, variant="icy_park"),
    TwoWayLine(packages=1, locations=6, variant="icy"),
    Transport(packages=2, locations=4),
    Blocksworld(blocks=3, table_limit=2, cost_bound=1),
    NPuzzle(width=2, height=2, cost_bound=1),
    LayeredFamily(layers=4),
    OuterLoop(size=3),
]


@pytest.mark.parametrize("generator", TASKS, ids=lambda generator: generator.name)
def test_the_engine_takes_the_steps_that_the_document_says(generator: Any) -> None:
    data = generator.properties()[-1]
    document, planning = Document(generator.model()), Planning.of(data)
    task = load_task(generator.model(), data, action_mode="edge")
    starts = planning.starts(document)
    failing, goal = document.function(planning.failure), document.function(planning.goal)
    assert task.initial.count() == len(starts)
    for state, choices in space(document, starts, 1_000).items():
        vector = np.array(state[:-1], dtype=task.dtype)
        assert _outcomes(task, vector) == sorted(outcomes for _, outcomes in choices)
        assert task.is_failing(vector) == bool(failing(state))
        assert task.is_goal(vector) == bool(goal(state))


def _outcomes(task: Task, vector: Any) -> list[tuple[tuple[float, State], ...]]:
    """Merged outcomes per edge, in the judge's form."""
    found = []
    for _, outcomes in task.successors(vector):
        merged: dict[State, float] = {}
        for probability, target in outcomes:
            state = (*(int(value) for value in target), 0)
            merged[state] = merged.get(state, 0.0) + probability
        found.append(tuple(sorted((round(p, 9), state) for state, p in merged.items())))
    return sorted(found)
