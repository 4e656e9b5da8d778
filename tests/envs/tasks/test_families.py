from __future__ import annotations

import pytest

from safetest_gym.envs.tasks.families import LayeredFamily, OuterLoop
from safetest_gym.errors import ConfigError
from tests.envs.tasks.document import Document, State
from tests.envs.tasks.equivalence import Planning, counts, space
from tests.envs.tasks.runs import generated


@pytest.mark.parametrize("layers", [1, 2, 5, 9])
def test_the_layered_family_is_small_and_all_safe(layers: int) -> None:
    document, planning = generated(LayeredFamily(layers=layers))
    found = counts(document, planning, planning.starts(document))
    assert found["states"] == found["choices"] == found["safe"] == 2 * layers + 2
    assert found["start_states"] == 1
    assert found["failing"] == found["goal"] == 0


@pytest.mark.parametrize("layers", [1, 4, 8])
def test_the_layered_family_has_two_to_the_layers_paths(layers: int) -> None:
    document, planning = generated(LayeredFamily(layers=layers))
    [start] = planning.starts(document)
    last = document.state({"layer": layers + 1})

    def paths(state: State) -> int:
        return (
            1 if state == last else sum(paths(t) for _, o in document.choices(state) for _, t in o)
        )

    assert paths(start) == 2**layers


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_nothing_in_the_outer_loop_family_is_safe(size: int) -> None:
    document, planning = generated(OuterLoop(size=size))
    found = counts(document, planning, planning.starts(document))
    assert found["states"] == size + 2
    assert found["safe"] == 0


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_policy_iteration_needs_one_round_per_state_of_the_chain(size: int) -> None:
    document, planning = generated(OuterLoop(size=size))
    assert _rounds(document, planning) == size


def _rounds(document: Document, planning: Planning) -> int:
    """Rounds of depth-first policy construction until the start is refuted."""
    [start] = planning.starts(document)
    failing = document.function(planning.failure)
    unsafe = {state for state in space(document, [start]) if failing(state)}
    rounds = 0
    while start not in unsafe:
        rounds += 1
        _seems_safe(document, start, unsafe, set())
        assert rounds < 100
    return rounds


def _seems_safe(document: Document, state: State, unsafe: set[State], seen: set[State]) -> bool:
    """One round below a state: outcomes in the document's order, seen states are believed."""
    if state in unsafe:
        return False
    if state in seen:
        return True
    seen.add(state)
    for _, outcomes in document.ordered_choices(state):
        seem_safe = [_seems_safe(document, target, unsafe, seen) for target in outcomes]
        if all(seem_safe):
            return True
    unsafe.add(state)
    return False


def test_the_smallest_outer_loop_is_the_published_example() -> None:
    document, _ = generated(OuterLoop())
    steps = {
        (state[0], label, tuple(target[0] for target in targets))
        for state in space(document, [document.state({})])
        for label, targets in document.ordered_choices(state)
    }
    assert steps == {(0, "enter_1", (1,)), (0, "enter_2", (2,)),
                     (1, "step", (2, 3)), (2, "step", (1,))}  # fmt: skip


def test_sizes_below_one_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="layers"):
        LayeredFamily(layers=0)
    with pytest.raises(ConfigError, match="size"):
        OuterLoop(size=0)
