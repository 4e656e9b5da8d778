from __future__ import annotations

import pytest

from safetest_gym.envs.tasks.n_puzzle import NPuzzle
from safetest_gym.errors import ConfigError
from tests.envs.tasks.document import Document
from tests.envs.tasks.equivalence import FIGURES, Planning, counts, space


def _generated(task: NPuzzle) -> tuple[Document, Planning]:
    """The model with the property whose starts are all boards."""
    return Document(task.model()), Planning.of(task.properties()[1])


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (NPuzzle(width=2, height=2, cost_bound=None), (12, 24, 5, 1, 7, 0, 7, 7)),
        (NPuzzle(width=2, height=2, cost_bound=1), (96, 120, 40, 8, 44, 14, 7, 3)),
        (
            NPuzzle(width=3, height=2, cost_bound=1),
            (11520, 15840, 3456, 32, 7104, 1704, 252, 156),
        ),
        (NPuzzle(width=2, height=3, cost_bound=None), (360, 840, 108, 1, 252, 0, 252, 252)),
    ],
    ids=lambda value: value.name if isinstance(value, NPuzzle) else "",
)
def test_small_boards_have_the_counts_that_storm_finds(
    task: NPuzzle, expected: tuple[int, ...]
) -> None:
    document, planning = _generated(task)
    found = counts(document, planning, planning.starts(document))
    assert found == dict(zip(FIGURES, expected, strict=True))


@pytest.mark.parametrize(("width", "height"), [(2, 2), (3, 2), (2, 3)])
def test_the_starts_are_the_boards_connected_with_the_goal(width: int, height: int) -> None:
    document, planning = _generated(NPuzzle(width=width, height=height, cost_bound=None))
    failing = document.function(planning.failure)
    home = {f"tile_{tile}": tile - 1 for tile in range(1, width * height)}
    connected = space(document, [document.state(home)])
    assert {s for s in connected if not failing(s)} == set(planning.starts(document))


@pytest.mark.parametrize(("width", "height"), [(2, 2), (3, 3), (2, 5), (4, 3), (4, 4)])
def test_the_initial_board_is_a_start(width: int, height: int) -> None:
    document, planning = _generated(NPuzzle(width=width, height=height))
    assert document.function(planning.start)(document.state({}))


@pytest.mark.parametrize(("width", "height"), [(3, 2), (3, 3), (2, 5), (4, 4)])
def test_listed_starts_are_different_boards_that_satisfy_the_condition(
    width: int, height: int
) -> None:
    task = NPuzzle(width=width, height=height, starts=200)
    document, condition = _generated(task)
    listed = Planning.of(task.properties()[0]).starts(document)
    assert len(listed) == len(task.properties()[0]["expression"]["start"]["values"]) == 200
    assert all(map(document.function(condition.start), listed))


def test_a_small_board_lists_all_its_starts() -> None:
    task = NPuzzle(width=2, height=2)
    document, condition = _generated(task)
    listed = Planning.of(task.properties()[0]).starts(document)
    assert set(listed) == set(condition.starts(document))


def test_the_seed_decides_the_listed_starts() -> None:
    first, again, other = NPuzzle(), NPuzzle(), NPuzzle(seed=1)
    assert first.properties() == again.properties()
    assert first.properties()[0] != other.properties()[0]


def test_a_puzzle_whose_starts_cannot_be_found_is_refused() -> None:
    elsewhere = tuple((t, c) for t in range(1, 9) for c in range(9) if c != t - 1)
    with pytest.raises(ConfigError, match="forbidden"):
        NPuzzle(forbidden=elsewhere).properties()


@pytest.mark.slow
def test_all_boards_of_the_eight_puzzle_are_reached_and_safe_without_costs() -> None:
    document, planning = _generated(NPuzzle(cost_bound=None))
    found = counts(document, planning, [document.state({})])
    assert found["states"] == 181_440
    assert found["failing"] == 37_800
    assert found["safe"] == 181_440 - 37_800


def test_the_blank_and_the_tile_change_places() -> None:
    document, _ = _generated(NPuzzle(width=3, height=2, cost_bound=None, failing_probability=0))
    home = {f"tile_{tile}": tile - 1 for tile in range(1, 6)}
    after = {label: outcomes[0][1] for label, outcomes in document.choices(document.state(home))}
    assert after == {
        "slide_right": document.state({**home, "tile_5": 5, "blank": 4}),
        "slide_down": document.state({**home, "tile_3": 5, "blank": 2}),
    }


def test_a_failed_move_costs_and_changes_nothing_else() -> None:
    document, _ = _generated(NPuzzle(width=2, height=2, cost_bound=3))
    home = {f"tile_{tile}": tile - 1 for tile in range(1, 4)}
    choices = dict(document.choices(document.state({**home, "cost_tile_3": 1})))
    stuck = document.state({**home, "cost_tile_3": 2, "step_cost": 1})
    assert (0.5, stuck) in choices["slide_right"]


def test_a_tile_at_its_bound_stays() -> None:
    document, _ = _generated(NPuzzle(width=2, height=2, cost_bound=3))
    home = {f"tile_{tile}": tile - 1 for tile in range(1, 4)}
    state = document.state({**home, "cost_tile_3": 3})
    assert [label for label, _ in document.choices(state)] == ["slide_down"]


def test_the_variants_differ_only_in_what_the_policy_sees() -> None:
    aware, ignoring = NPuzzle(), NPuzzle(variant="ignoring")
    assert {**aware.model(), "name": ""} == {**ignoring.model(), "name": ""}
    assert aware.observed is not None
    assert ignoring.observed is not None
    costs = {f"cost_tile_{tile}" for tile in range(1, 9)}
    assert set(aware.observed) - set(ignoring.observed) == costs


@pytest.mark.parametrize(
    "wrong",
    [
        {"width": 1},
        {"height": 1},
        {"cost_bound": 0},
        {"variant": "blind"},
        {"forbidden": ((9, 0),)},
        {"forbidden": ((1, 9),)},
        {"forbidden": ((1, 0),)},
        {"forbidden": 5},
        {"forbidden": ((1,),)},
        {"failing_probability": -1},
        {"failing_probability": "often"},
        {"starts": 0},
        {"seed": -1},
    ],
)
def test_parameters_out_of_range_are_refused_by_name(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        NPuzzle(**wrong)  # type: ignore[arg-type]  # wrong on purpose
