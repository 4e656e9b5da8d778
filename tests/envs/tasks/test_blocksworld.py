from __future__ import annotations

from pathlib import Path

import pytest

from safetest_gym.envs.tasks.blocksworld import Blocksworld
from safetest_gym.errors import ConfigError
from tests.envs.tasks.equivalence import FIGURES, Published, counts, require_equivalent, space
from tests.envs.tasks.runs import generated


@pytest.mark.parametrize(
    ("file", "bound", "states"), [("nocost", None, 125), ("bound2", 2, 15_424)]
)
def test_four_blocks_equal_the_published_model(
    shared: Path, file: str, bound: int | None, states: int
) -> None:
    published = Published.read(shared / "models" / "planning", f"blocksworld_4_3_{file}")
    task = Blocksworld(blocks=4, table_limit=3, cost_bound=bound)
    document, planning = generated(task)
    starts = planning.starts(document)
    assert set(starts) == set(published.condition.starts(published.document))
    assert len(starts) == 124
    assert require_equivalent(task, published, starts) == states


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (
            Blocksworld(blocks=3, table_limit=2, cost_bound=2),
            (880, 1384, 52, 36, 828, 153, 21, 21),
        ),
        (
            Blocksworld(blocks=3, table_limit=1, cost_bound=None),
            (22, 42, 10, 1, 12, 0, 12, 12),
        ),
        (
            Blocksworld(blocks=2, table_limit=2, cost_bound=3),
            (132, 193, 0, 24, 132, 17, 5, 5),
        ),
        (
            Blocksworld(blocks=4, table_limit=2, cost_bound=None),
            (125, 272, 17, 1, 108, 0, 108, 108),
        ),
        (
            Blocksworld(blocks=3, table_limit=2, cost_bound=1, failing_probability=0),
            (22, 42, 1, 1, 21, 0, 21, 21),
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Blocksworld) else "",
)
def test_few_blocks_have_the_counts_that_storm_finds(
    task: Blocksworld, expected: tuple[int, ...]
) -> None:
    document, planning = generated(task)
    found = counts(document, planning, planning.starts(document))
    assert found == dict(zip(FIGURES, expected, strict=True))


def test_every_reachable_state_without_costs_is_a_start_unless_it_fails() -> None:
    document, planning = generated(Blocksworld(blocks=4, table_limit=3, cost_bound=None))
    failing = document.function(planning.failure)
    reached = {s for s in space(document, [document.state({})]) if not failing(s)}
    assert reached == set(planning.starts(document))


def test_a_failed_move_costs_and_changes_nothing_else() -> None:
    document, _ = generated(Blocksworld(blocks=3, table_limit=2, cost_bound=4))
    state = document.state({"cost_block_0": 2})
    [(label, outcomes)] = document.choices(state)
    assert label == "choose_block_0"
    assert (0.5, document.state({"cost_block_0": 3, "step_cost": 2})) in outcomes


def test_a_block_at_its_bound_cannot_be_moved() -> None:
    document, _ = generated(Blocksworld(blocks=3, table_limit=2, cost_bound=4))
    assert not list(document.choices(document.state({"cost_block_0": 4})))


def test_the_variants_differ_only_in_what_the_policy_sees() -> None:
    aware = Blocksworld(blocks=3, table_limit=2, cost_bound=1)
    ignoring = Blocksworld(blocks=3, table_limit=2, cost_bound=1, variant="ignoring")
    assert {**aware.model(), "name": ""} == {**ignoring.model(), "name": ""}
    assert aware.observed is not None
    assert ignoring.observed is not None
    costs = {f"cost_block_{block}" for block in range(3)}
    assert set(aware.observed) - set(ignoring.observed) == costs
    assert "step_cost" not in aware.observed


def test_without_costs_everything_is_seen() -> None:
    assert Blocksworld(cost_bound=None).observed is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"blocks": 1},
        {"table_limit": 7},
        {"cost_bound": 0},
        {"variant": "blind"},
        {"failing_probability": 1.5},
        {"failing_probability": None},
    ],
)
def test_parameters_out_of_range_are_refused_by_name(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Blocksworld(**wrong)  # type: ignore[arg-type]  # wrong on purpose
