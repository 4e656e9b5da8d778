"""The interpreter follows each rule of its module, on models small enough to check by eye."""

from __future__ import annotations

from typing import Any

import pytest

from safetest_gym.engine.interpreter import Interpreter
from safetest_gym.errors import EvaluationError, LimitError, OutOfBoundsError, StartError
from safetest_gym.jani import read_condition
from tests.oracles.small_models import (
    UNDEFINED,
    assign,
    automaton,
    binary,
    bounded,
    destination,
    edge,
    interpreter,
    less,
    plus,
    single,
)

Json = Any

X = bounded("x", 5)
Y = bounded("y", 5)


def test_a_choice_knows_its_label_its_number_and_its_outcomes_in_document_order() -> None:
    half = [destination(assign("x", n), probability=0.5) for n in (4, 2)]
    (choice,) = single([X], edge(*half)).choices((0,))
    assert choice.label == "a"
    assert choice.edges == (0,)
    assert choice.outcomes == ((0.5, (4,)), (0.5, (2,)))


def test_only_edges_whose_guard_holds_are_choices() -> None:
    twin = single([X], edge(guard=less("x", 2)), edge(guard=less(1, "x")), edge())
    assert [choice.edges for choice in twin.choices((0,))] == [(0,), (2,)]
    assert [choice.edges for choice in twin.choices((2,))] == [(1,), (2,)]


def test_only_edges_of_the_current_location_are_choices_and_a_destination_moves_on() -> None:
    places = {"locations": [{"name": "l"}, {"name": "m"}], "initial-locations": ["m"]}
    twin = interpreter([X], [automaton("A", edge(at="m"), edge(destination(to="m")), **places)])
    assert twin.initial_states() == ((0, 1),)
    ((choice,), (back,)) = twin.choices((0, 0)), twin.choices((0, 1))
    assert choice.outcomes == ((1.0, (0, 1)),)
    assert back.outcomes == ((1.0, (0, 0)),)


def test_guards_of_other_locations_are_not_evaluated() -> None:
    places = {"locations": [{"name": "l"}, {"name": "m"}], "initial-locations": ["l"]}
    twin = interpreter([X], [automaton("A", edge(at="m", guard=UNDEFINED), edge(), **places)])
    assert len(twin.choices((0, 0))) == 1
    with pytest.raises(
        EvaluationError, match=r"guard of the edge at \$\.automata\[0\]\.edges\[0\]"
    ):
        twin.choices((0, 1))


def test_a_guard_without_value_is_an_error_even_when_no_partner_is_ready() -> None:
    automata = [automaton("A", edge(guard=UNDEFINED)), automaton("B", edge(guard=False))]
    with pytest.raises(EvaluationError, match="division by zero"):
        interpreter([X], automata).choices((0,))


def test_edges_that_take_part_in_no_synchronisation_do_not_exist() -> None:
    automata = [automaton("A", edge(guard=UNDEFINED, action="b"), edge()), automaton("B", edge())]
    assert len(interpreter([X], automata).choices((0,))) == 1


def test_the_destinations_of_an_edge_without_ready_partner_are_not_evaluated() -> None:
    bad = edge(destination(assign("x", 9)))
    automata = [automaton("A", bad), automaton("B", edge(guard=False))]
    assert interpreter([X], automata).choices((0,)) == ()


def test_destinations_of_probability_0_do_not_exist() -> None:
    never = destination(assign("x", 9), probability=binary("/", "x", 5))
    always = destination(assign("x", 3), probability=binary("-", 1, binary("/", "x", 5)))
    (choice,) = single([X], edge(never, always)).choices((0,))
    assert choice.outcomes == ((1.0, (3,)),)


def test_equal_successors_stay_separate_outcomes() -> None:
    (choice,) = single([X], edge(*[destination(probability=0.5)] * 2)).choices((0,))
    assert choice.outcomes == ((0.5, (0,)), (0.5, (0,)))


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (plus(0.5, "x"), 0.4, r"edge at \$\.automata\[0\]\.edges\[0\] sum to 0\.9, not 1"),
        (plus(1.5, "x"), binary("-", -0.5, "x"), r"probability 1\.5 .* is not within 0 and 1"),
        (binary("/", 1, "x"), 0.5, "division by zero"),
    ],
)
def test_improper_probabilities_are_an_error(first: Json, second: Json, message: str) -> None:
    twin = single([X], edge(destination(probability=first), destination(probability=second)))
    with pytest.raises(EvaluationError, match=message):
        twin.choices((0,))


def test_probabilities_that_miss_1_by_rounding_are_fine() -> None:
    tenths = [destination(probability=0.1)] * 10
    assert len(single([X], edge(*tenths)).choices((0,))[0].outcomes) == 10


def test_assignments_of_one_index_happen_at_once() -> None:
    swap = destination(assign("x", "y"), assign("y", "x"))
    (choice,) = single([X, Y], edge(swap)).choices((1, 2))
    assert choice.outcomes == ((1.0, (2, 1)),)


def test_assignments_of_a_higher_index_read_what_lower_ones_left() -> None:
    late = destination(assign("y", "x", 7), assign("x", 4, -3))
    (choice,) = single([X, Y], edge(late)).choices((1, 2))
    assert choice.outcomes == ((1.0, (4, 4)),)


def test_participants_share_assignment_indices() -> None:
    automata = [
        automaton("A", edge(destination(assign("x", plus("y", 1), 1)))),
        automaton("B", edge(destination(assign("y", 3, 0)))),
    ]
    (choice,) = interpreter([X, Y], automata).choices((0, 0))
    assert choice.outcomes == ((1.0, (4, 3)),)


def test_participants_may_assign_equal_but_not_different_values_at_one_index() -> None:
    automata = [
        automaton("A", edge(destination(assign("x", 2)))),
        automaton("B", edge(destination(assign("x", "y")))),
    ]
    twin = interpreter([X, Y], automata)
    assert twin.choices((0, 2))[0].outcomes == ((1.0, (2, 2)),)
    with pytest.raises(EvaluationError, match="'x' is assigned both 2 and 3 at index 0"):
        twin.choices((0, 3))


def test_participants_may_disagree_on_a_transient_variable_that_nobody_reads_afterwards() -> None:
    reward = {"name": "t", "type": "int", "transient": True, "initial-value": 0}

    def twin(*later: Json) -> Interpreter:
        first = edge(destination(assign("t", 1), *later))
        automata = [automaton("A", first), automaton("B", edge(destination(assign("t", 2))))]
        return interpreter([X, reward], automata)

    assert twin().choices((0,))[0].outcomes == ((1.0, (0,)),)
    with pytest.raises(EvaluationError, match="'t' is assigned both 1 and 2"):
        twin(assign("x", "t", 1)).choices((0,))


def test_transient_variables_start_every_transition_at_their_initial_value() -> None:
    transient = {"name": "t", "type": "int", "transient": True, "initial-value": 2}
    steps = destination(assign("x", "t", 0), assign("t", 5, 0), assign("y", "t", 1))
    twin = single([X, Y, transient], edge(steps))
    assert twin.choices((0, 0))[0].outcomes == ((1.0, (2, 5)),)
    assert twin.choices((2, 5))[0].outcomes == ((1.0, (2, 5)),)


def test_guards_read_transient_variables_as_the_location_gives_them() -> None:
    transient = {"name": "t", "type": "int", "transient": True, "initial-value": 2}
    value = [{"ref": "t", "value": plus("x", 1)}]
    places = {"locations": [{"name": "l", "transient-values": value}]}
    twin = interpreter([X, transient], [automaton("A", edge(guard=less("t", 3)), **places)])
    assert len(twin.choices((1,))) == 1
    assert twin.choices((2,)) == ()


def test_only_the_final_value_must_be_within_the_bounds() -> None:
    detour = destination(assign("x", 9, 0), assign("x", binary("-", "x", 5), 1))
    assert single([X], edge(detour)).choices((0,))[0].outcomes == ((1.0, (4,)),)


def test_a_value_out_of_bounds_is_an_error_that_names_everything() -> None:
    bad = destination(assign("x", plus("x", 1)))
    with pytest.raises(OutOfBoundsError) as caught:
        single([X], edge(), edge(bad, action="b")).choices((5,))
    for part in ("$.automata[0].edges[1]", "destinations[0]", "'x'", "6", "0..5", "(x=5)"):
        assert part in str(caught.value)


def test_an_int_assigned_to_a_real_becomes_a_real() -> None:
    real = {"name": "r", "type": "real", "initial-value": 0}
    twin = single([real], edge(destination(assign("r", 3))))
    assert isinstance(twin.initial_states()[0][0], float)
    assert isinstance(twin.choices((0.0,))[0].outcomes[0][1][0], float)


def test_states_have_no_negative_zero() -> None:
    real = {"name": "r", "type": "real", "initial-value": 0}
    twin = single([real], edge(destination(assign("r", binary("*", "r", -1.0)))))
    assert str(twin.choices((0.0,))[0].outcomes[0][1]) == "(0.0,)"


def test_an_assigned_int_beyond_64_bits_is_an_error_also_for_unbounded_variables() -> None:
    free = {"name": "i", "type": "int", "initial-value": 2**63 - 1}
    with pytest.raises(EvaluationError, match="64 bits"):
        single([free], edge(destination(assign("i", plus("i", 1))))).choices((2**63 - 1,))


def test_outcomes_of_several_participants_are_the_product_last_one_fastest() -> None:
    def coin(name: str) -> Json:
        return edge(
            destination(assign(name, 1), probability=0.25),
            destination(assign(name, 2), probability=0.75),
        )

    automata = [automaton("A", coin("x")), automaton("B", coin("y"))]
    (choice,) = interpreter([X, Y], automata).choices((0, 0))
    assert choice.outcomes == (
        (0.0625, (1, 1)),
        (0.1875, (1, 2)),
        (0.1875, (2, 1)),
        (0.5625, (2, 2)),
    )


def test_composed_edges_are_numbered_with_the_last_participant_fastest() -> None:
    automata = [
        automaton("A", edge(destination(assign("x", 1))), edge(destination(assign("x", 2)))),
        automaton("B", edge(destination(assign("y", 1))), edge(destination(assign("y", 2)))),
    ]
    twin = interpreter([X, Y], automata)
    found = [(choice.edges, choice.outcomes[0][1]) for choice in twin.choices((0, 0))]
    assert found == [((0,), (1, 1)), ((1,), (1, 2)), ((2,), (2, 1)), ((3,), (2, 2))]


def test_vectors_choose_who_takes_part_and_what_it_is_called() -> None:
    automata = [
        automaton("A", edge(destination(assign("x", 1)))),
        automaton("B", edge(destination(assign("y", 1)), action="b")),
    ]
    syncs = [
        {"synchronise": ["a", "b"], "result": "both"},
        {"synchronise": ["a", None], "result": "b"},
        {"synchronise": [None, "b"]},
    ]
    choices = interpreter([X, Y], automata, syncs).choices((0, 0))
    found = [(choice.label, choice.outcomes[0][1]) for choice in choices]
    assert found == [("b", (1, 0)), ("both", (1, 1)), ("τ", (0, 1))]


def test_silent_edges_happen_on_their_own() -> None:
    automata = [automaton("A", edge(action=None)), automaton("B", edge(guard=False))]
    assert [choice.label for choice in interpreter([X], automata).choices((0,))] == ["τ"]


def test_an_action_has_the_outcomes_of_all_its_enabled_edges() -> None:
    coin = [destination(assign("x", n), probability=0.5) for n in (1, 2)]
    twin = single(
        [X], edge(*coin), edge(destination(assign("x", 3))), edge(guard=False), edge(action="b")
    )
    first, second = twin.actions((0,))
    assert (first.label, first.edges) == ("a", (0, 1))
    assert first.outcomes == ((0.25, (1,)), (0.25, (2,)), (0.5, (3,)))
    assert (second.label, second.edges) == ("b", (3,))
    assert twin.actions((0,), "edge") == twin.choices((0,))


def test_all_enabled_edges_of_a_dtmc_are_one_action_in_both_modes() -> None:
    twin = single(
        [X], edge(destination(assign("x", 1))), edge(action="b"), edge(guard=False), type="dtmc"
    )
    (step,) = twin.actions((0,))
    assert (step.label, step.edges) == ("step", (0, 2))
    assert step.outcomes == ((0.5, (1,)), (0.5, (0,)))
    assert twin.actions((0,), "edge") == (step,)


def test_a_state_without_enabled_edge_has_no_action() -> None:
    assert single([X], edge(guard=False), type="dtmc").actions((0,)) == ()


def test_input_enabled_automata_ignore_what_they_are_not_ready_for() -> None:
    automata = [automaton("A", edge()), automaton("B", edge(guard=less("x", 2)))]
    elements = [{"automaton": "A"}, {"automaton": "B", "input-enable": ["a"]}]
    system = {"elements": elements, "syncs": [{"synchronise": ["a", "a"], "result": "a"}]}
    twin = interpreter([X], automata, system=system)
    assert len(twin.choices((1,))) == 1
    assert len(twin.choices((2,))) == 1


def test_initial_states_are_all_values_that_satisfy_the_restriction() -> None:
    flag = {"name": "b", "type": "bool"}
    twin = single(
        [bounded("x", 2, None), flag, Y], edge(), **{"restrict-initial": {"exp": less(0, "x")}}
    )
    assert twin.initial_states() == (
        (1, False, 0),
        (1, True, 0),
        (2, False, 0),
        (2, True, 0),
    )
    with pytest.raises(LimitError, match="more than 5"):
        twin.initial_states(5)


def test_initial_states_of_an_unbounded_variable_without_initial_value_are_an_error() -> None:
    with pytest.raises(StartError, match="'i'"):
        single([{"name": "i", "type": "int"}], edge()).initial_states()


def test_conditions_hold_and_have_a_distance() -> None:
    twin = single([X, Y], edge())
    condition = read_condition("x >= 2 and y == 1", twin.model)
    assert twin.holds(condition, (3, 1))
    assert not twin.holds(condition, (0, 4))
    assert twin.distance(condition, (0, 4)) == 5.0
    assert twin.value(condition, (2, 1)) is True
