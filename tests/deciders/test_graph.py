"""The explicit graph against the deciders' fixpoints, and its exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx  # type: ignore[import-untyped]  # has no stubs
import numpy as np
import pytest

from safetest_gym.deciders.graph import build_graph
from safetest_gym.errors import LimitError, OutOfBoundsError
from safetest_gym.task import load_task
from tests.deciders.agreement import counting_task
from tests.oracles.fixpoint import safe_states
from tests.oracles.hashed_systems import hashed_task, states_of, systems_of

KINDS: Any = [("label", "mdp"), ("edge", "mdp"), ("label", "dtmc")]


@pytest.mark.parametrize(("mode", "kind"), KINDS)
def test_the_safe_set_of_random_systems_is_the_fixpoint(mode: Any, kind: Any) -> None:
    task = hashed_task(mode=mode, kind=kind)
    states = states_of(range(3000))
    graph = build_graph(task, starts=states)
    assert np.array_equal(graph.states, states)
    assert graph.num_initial == len(states)
    truth = [
        s in safe
        for system in systems_of(task, states)
        for safe in [safe_states(system)]
        for s in system.states
    ]
    assert np.array_equal(graph.safe, truth)


@pytest.mark.parametrize(("mode", "kind"), KINDS)
def test_choices_and_outcomes_are_those_of_the_task(mode: Any, kind: Any) -> None:
    task = hashed_task(mode=mode, kind=kind)
    graph = build_graph(task, starts=states_of(range(20)))
    vectors = graph.states
    for s, state in enumerate(vectors):
        choices = range(graph.first_choice[s], graph.first_choice[s + 1])
        found = [
            (
                int(graph.choice_action[c]),
                [
                    (float(graph.probability[o]), vectors[graph.outcome[o]].tolist())
                    for o in range(graph.first_outcome[c], graph.first_outcome[c + 1])
                ],
            )
            for c in choices
        ]
        expected = [
            (action, [(p, outcome.tolist()) for p, outcome in outcomes])
            for action, outcomes in task.successors(state)
        ]
        if kind == "dtmc":  # the task's own listing has one choice there as well
            assert [action for action, _ in found] == [action for action, _ in expected]
        assert found == expected
        assert bool(graph.failing[s]) == task.is_failing(state)
        assert bool(graph.goal[s]) == task.is_goal(state)


def test_ranks_count_the_steps_to_failing() -> None:
    task = hashed_task()
    states = states_of(range(500))
    graph = build_graph(task, starts=states)
    ranks = graph.ranks
    assert np.array_equal(ranks == 1, graph.failing)
    for s in np.flatnonzero(ranks > 1):
        worst = []
        for c in range(graph.first_choice[s], graph.first_choice[s + 1]):
            outcomes = graph.outcome[graph.first_outcome[c] : graph.first_outcome[c + 1]]
            worst.append(min(ranks[outcomes][ranks[outcomes] > 0]))
        assert ranks[s] == 1 + max(worst)


def test_small_graphs_go_to_networkx_and_graphml(data: Path, tmp_path: Path) -> None:
    task = load_task(data / "ferry.jani", data / "ferry.props.jani")
    graph = build_graph(task)
    drawn = graph.to_networkx()
    assert drawn.number_of_nodes() == graph.num_states == 70
    assert drawn.number_of_edges() == len(graph.outcome)
    assert sum(drawn.nodes[s]["safe"] for s in drawn) == np.count_nonzero(graph.safe)
    graph.write_graphml(tmp_path / "ferry.graphml")
    again = networkx.read_graphml(tmp_path / "ferry.graphml")
    assert again.number_of_nodes() == 70
    assert again.number_of_edges() == len(graph.outcome)


def test_large_graphs_are_not_drawn() -> None:
    graph = build_graph(hashed_task(), starts=states_of(range(3000)))
    with pytest.raises(LimitError, match="too many to export"):
        graph.to_networkx()


def test_a_limit_of_states_is_kept(data: Path) -> None:
    task = load_task(data / "ferry.jani", data / "ferry.props.jani")
    with pytest.raises(LimitError, match="more than 20 states"):
        build_graph(task, max_states=20)
    assert build_graph(task, max_states=70).num_states == 70


def test_a_step_out_of_bounds_is_explained() -> None:
    with pytest.raises(OutOfBoundsError, match="assigns 6 to 'n'"):
        build_graph(counting_task(1, "n = 0"), starts="default")


def test_the_whole_safe_set_of_a_million_states(shared: Path) -> None:
    line = shared / "models" / "planning" / "one_way_line_15_10_det.jani"
    graph = build_graph(load_task(line, line.with_suffix(".props.jani")))
    assert graph.num_states == 1_354_828
    assert np.count_nonzero(graph.safe) == 16_231
