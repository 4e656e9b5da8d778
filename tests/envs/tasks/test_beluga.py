from __future__ import annotations

from itertools import permutations
from math import factorial
from pathlib import Path
from typing import Any

import pytest

from safetest_gym.envs.tasks.beluga import Beluga
from safetest_gym.errors import ConfigError
from safetest_gym.task import load_task
from tests.envs.tasks.document import Document, State, read_json
from tests.envs.tasks.equivalence import (
    Planning,
    Published,
    counts,
    require_equivalent,
    require_same_steps,
    require_same_variables,
    space,
)
from tests.envs.tasks.runs import (
    generated,
    loaded,
    require_same_tasks,
)


def test_three_jigs_equal_the_published_model(shared: Path) -> None:
    published = Published.read(shared / "models" / "planning", "beluga_3_2")
    starts = published.listed.starts(published.document)
    assert require_equivalent(Beluga(jigs=3), published, starts) == 3003
    ours, planning = generated(Beluga(jigs=3))
    assert sorted(planning.starts(ours)) == sorted(published.condition.starts(published.document))


def _four_jigs(shared: Path) -> tuple[Document, Planning]:
    """The published model with its only property, a list of starts."""
    folder = shared / "models" / "planning"
    [listed] = read_json(folder / "beluga_4_2.props.jani")["properties"]
    return Document(read_json(folder / "beluga_4_2.jani")), Planning.of(listed)


def test_four_jigs_equal_the_published_model(shared: Path) -> None:
    theirs, listed = _four_jigs(shared)
    ours, planning = generated(Beluga())
    starts = listed.starts(theirs)
    require_same_variables(ours, theirs)
    assert ours.actions == theirs.actions
    states = space(theirs, starts)
    require_same_steps(ours, theirs, states)
    for part in ("goal", "failure"):
        mine, other = ours.function(getattr(planning, part)), theirs.function(getattr(listed, part))
        assert all(bool(mine(state)) == bool(other(state)) for state in states)
    assert counts(ours, planning, starts) == {
        "states": 11349,
        "choices": 40813,
        "failing": 2635,
        "goal": 3,
        "safe": 4230,
        "deadlocks_not_failing": 2,
        "start_states": 24,
        "start_states_safe": 24,
    }


def test_the_second_property_starts_where_the_published_list_does(shared: Path) -> None:
    theirs, listed = _four_jigs(shared)
    second = Planning.of(Beluga().properties()[1])
    assert sorted(second.starts(Document(Beluga().model()))) == sorted(listed.starts(theirs))


def test_three_jigs_have_the_known_counts() -> None:
    document, planning = generated(Beluga(jigs=3))
    assert counts(document, planning, planning.starts(document)) == {
        "states": 3003,
        "choices": 10340,
        "failing": 377,
        "goal": 7,
        "safe": 2170,
        "deadlocks_not_failing": 6,
        "start_states": 6,
        "start_states_safe": 6,
    }


@pytest.mark.parametrize(("jigs", "racks"), [(2, 1), (2, 3), (3, 1), (4, 2), (5, 2)])
def test_jigs_start_in_any_order(jigs: int, racks: int) -> None:
    document, planning = generated(Beluga(jigs=jigs, racks=racks))
    starts = planning.starts(document)
    assert {start[:jigs] for start in starts} == set(permutations(range(jigs)))
    assert len(starts) == factorial(jigs)
    assert document.actions[-1] == "unload_truck_0"
    assert len(document.actions) == 3 + 4 * racks


@pytest.mark.parametrize(("jigs", "racks"), [(2, 1), (2, 2), (3, 1)])
def test_racks_stay_consistent_lists(jigs: int, racks: int) -> None:
    document, planning = generated(Beluga(jigs=jigs, racks=racks))
    names = [variable.name for variable in document.variables]
    for state in space(document, planning.starts(document)):
        row = dict(zip(names, state, strict=False))
        for rack in range(racks):
            stored = [jig for jig in range(jigs) if row[f"jig_{jig}"] == jigs + rack]
            assert _walked(row, rack, "front", "back") == _walked(row, rack, "back", "front")[::-1]
            assert sorted(_walked(row, rack, "front", "back")) == stored
            assert row[f"rack_load_{rack}"] == 3 * jigs - len(stored)


def _walked(row: dict[str, int], rack: int, end: str, other: str) -> list[int]:
    jig, found = row[f"{end}_rack_{rack}"], []
    while jig != -1:
        found.append(jig)
        jig = row[f"{other}_jig_{jig}"]
    return found


def test_all_jigs_can_be_delivered_in_every_order_of_arrival() -> None:
    document, planning = generated(Beluga(jigs=3, racks=1))
    goal = document.function(planning.goal)
    for start in planning.starts(document):
        assert any(goal(state) for state in space(document, [start]))


def test_the_chance_decides_which_line_asks_next() -> None:
    document = Document(Beluga(probability=0.75).model())
    state = document.state({"jig_3": 6, "empty_trailer_0": 0, "beluga_0": 3})
    [choice] = [c for c in document.choices(state) if c[0] == "push_front_rack_0"]
    names = [variable.name for variable in document.variables]
    drawn = {target[names.index("next_jig")]: chance for chance, target in choice[1]}
    assert drawn == {0: 0.75, 2: 0.25}


def test_a_rack_limit_replaces_the_limit_on_swaps() -> None:
    task = Beluga(jigs=4, racks=3, max_swaps=50, rack_limit=3)
    document, planning = generated(task)
    failing = document.function(planning.failure)
    assert not failing(document.state({"num_swaps": 50}))
    assert not failing(document.state({"rack_load_1": 9, "rack_load_2": 10}))
    assert failing(document.state({"rack_load_2": 9}))
    assert len(planning.starts(document)) == factorial(4) * 51


def test_lines_can_be_given() -> None:
    document, planning = generated(Beluga(lines=((2, 3), (0, 1)), max_swaps=12))
    starts: list[State] = planning.starts(document)
    names = [variable.name for variable in document.variables]
    row = dict(zip(names, starts[0], strict=False))
    assert (row["line_0"], row["line_1"], row["next_jig"]) == (2, 0, 0)
    assert document.variables[-1].upper == 12


def test_name_tells_what_is_unusual() -> None:
    assert Beluga().name == "beluga_4_2"
    assert Beluga(lines=((0, 3), (2, 1))).name == "beluga_4_2"
    task = Beluga(jigs=3, racks=1, lines=((0, 1), (2,)), max_swaps=7, rack_limit=2)
    assert task.name == "beluga_3_1_lines0.1-2_swaps7_rack2"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"jigs": 1}, "jigs"),
        ({"racks": 0}, "racks"),
        ({"lines": ((0, 1), (2, 2))}, "lines"),
        ({"lines": ((0, 1, 2, 3), ())}, "lines"),
        ({"lines": [[0, 1], [2, 3]]}, "lines"),
        ({"lines": (0, 1)}, "lines"),
        ({"max_swaps": 0}, "max_swaps"),
        ({"rack_limit": 5}, "rack_limit"),
        ({"probability": 1.5}, "probability"),
    ],
)
def test_nonsense_is_refused(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Beluga(**bad)


@pytest.mark.parametrize(("name", "task"), [("3_2", Beluga(jigs=3)), ("4_2", Beluga())])
def test_the_package_reads_both_as_the_same_task(shared: Path, name: str, task: Beluga) -> None:
    folder = shared / "models" / "planning"
    theirs = load_task(folder / f"beluga_{name}.jani", folder / f"beluga_{name}.props.jani")
    assert require_same_tasks(loaded(task), theirs, 100, 100) == 10_000


def test_the_package_counts_the_starts() -> None:
    assert loaded(Beluga(jigs=6, racks=3)).initial.count() == 720
