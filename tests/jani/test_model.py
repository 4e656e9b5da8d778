"""What the reader makes of correct models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safetest_gym.errors import JaniError
from safetest_gym.jani import format_expression, read_model
from safetest_gym.jani.tree import Edge, Expression, Literal, Model, Vector
from tests.jani.small import binary, changed, guarded, minimal_model, small_model, variable


def first_edge(model: Model) -> Edge:
    return model.automata[0].edges[0]


def value_of(node: Expression | None) -> Any:
    assert isinstance(node, Literal)
    return node.value


def with_constants(*constants: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return minimal_model(constants=list(constants), **changes)


def constant(name: str, kind: Any, value: Any = None) -> dict[str, Any]:
    return {"name": name, "type": kind} | ({} if value is None else {"value": value})


def test_constants_may_use_each_other_in_any_order() -> None:
    model = read_model(
        with_constants(
            constant("a", "int", binary("+", "b", 1)),
            constant("b", "int", binary("*", "c", 2)),
            constant("c", "int", 5),
            constant("d", "real", binary("/", "a", 2)),
            constant("e", "bool", binary("<", "b", "d")),
        )
    )
    assert dict(model.constants) == {"a": 11, "b": 10, "c": 5, "d": 5.5, "e": False}


def test_an_int_given_for_a_real_constant_becomes_a_real() -> None:
    value = read_model(with_constants(constant("a", "real", 2))).constants["a"]
    assert isinstance(value, float)


@pytest.mark.parametrize("given", [3, "3"])
def test_open_constants_take_values_from_outside(given: Any) -> None:
    model = with_constants(constant("N", "int"), variables=[variable("x", 0, "N")])
    assert read_model(model, constants={"N": given}).variables[0].upper == 3


def test_an_open_constant_without_a_value_tells_how_to_give_one() -> None:
    with pytest.raises(JaniError, match="constant 'N' has no value") as caught:
        read_model(with_constants(constant("N", "int")))
    assert "--const N=" in caught.value.hint


def test_a_value_for_an_unknown_constant_is_an_error_with_a_guess() -> None:
    with pytest.raises(JaniError, match="no constant 'Count'") as caught:
        read_model(with_constants(constant("count", "int", 3)), constants={"Count": 2})
    assert caught.value.hint == "did you mean 'count'?"


def test_a_constant_with_a_value_cannot_be_given_another() -> None:
    with pytest.raises(JaniError, match="has a value in the document"):
        read_model(with_constants(constant("N", "int", 3)), constants={"N": 2})


@pytest.mark.parametrize(
    ("kind", "given"), [("int", 2.5), ("int", True), ("bool", 1), ("real", "x"), ("real", "inf")]
)
def test_a_value_of_the_wrong_kind_is_an_error(kind: str, given: Any) -> None:
    with pytest.raises(JaniError) as caught:
        read_model(with_constants(constant("N", kind)), constants={"N": given})
    assert caught.value.path == "$.constants[0]"


def test_bounds_of_a_constant_hold_for_values_from_outside() -> None:
    kind = {"kind": "bounded", "base": "int", "lower-bound": 1, "upper-bound": 5}
    with pytest.raises(JaniError, match="above its upper bound 5"):
        read_model(with_constants(constant("N", kind)), constants={"N": 6})


def test_bounds_and_initial_values_are_evaluated() -> None:
    model = with_constants(
        constant("N", "int", 4),
        variables=[
            variable("x", binary("-", 0, "N"), binary("*", 2, "N"), "N"),
            {"name": "free", "type": "int"},
            {"name": "half", "type": {"kind": "bounded", "base": "real", "lower-bound": 0}},
        ],
    )
    x, free, half = read_model(model).variables
    assert (x.lower, x.upper, x.initial) == (-4, 8, 4)
    assert (free.lower, free.upper, free.initial) == (None, None, None)
    assert (half.lower, half.upper) == (0.0, None)


def test_a_bool_has_the_bounds_0_and_1() -> None:
    model = minimal_model(variables=[{"name": "b", "type": "bool", "initial-value": True}])
    b = read_model(model).variables[0]
    assert (b.lower, b.upper, b.initial) == (0, 1, True)


def test_locals_keep_their_name_where_it_is_unique() -> None:
    model = read_model(small_model())
    assert [v.name for v in model.variables] == ["x", "b", "r", "own", "Left.location"]
    assert [v.name for v in model.transients] == ["cost"]


def test_an_automaton_listed_twice_has_locals_of_its_own() -> None:
    model = minimal_model()
    model["automata"][0]["variables"] = [variable("own", 0, 3)]
    edge = model["automata"][0]["edges"][0]
    edge["destinations"][0]["assignments"] = [{"ref": "own", "value": binary("+", "own", 1)}]
    model["system"] = {
        "elements": [{"automaton": "A"}, {"automaton": "A"}],
        "syncs": [{"synchronise": ["go", "go"], "result": "go"}],
    }
    tree = read_model(model)
    assert [automaton.name for automaton in tree.automata] == ["A", "A#2"]
    assert [v.name for v in tree.variables] == ["x", "A.own", "A#2.own"]
    targets = [a.edges[0].destinations[0].assignments[0].variable for a in tree.automata]
    assert targets == list(tree.variables[1:])


def test_an_automaton_outside_the_composition_is_checked_but_left_out() -> None:
    model = minimal_model()
    model["automata"].append({**model["automata"][0], "name": "B"})
    assert len(read_model(model).automata) == 1
    model["automata"][1]["initial-locations"] = ["nowhere"]
    with pytest.raises(JaniError) as caught:
        read_model(model)
    assert caught.value.path == "$.automata[1].initial-locations[0]"


def test_errors_of_an_automaton_listed_twice_are_told_once() -> None:
    model = guarded("nothing")
    model["system"]["elements"] *= 2
    with pytest.raises(JaniError) as caught:
        read_model(model)
    assert "unknown identifier" in caught.value.message


def test_a_lone_automaton_without_syncs_acts_on_its_own() -> None:
    model = read_model(minimal_model(actions=[{"name": "stop"}, {"name": "go"}]))
    assert model.vectors[0].synchronise == ("go",)
    assert model.actions == ("go",)


def test_an_empty_list_of_syncs_means_that_nothing_labelled_happens() -> None:
    model = minimal_model()
    model["system"]["syncs"] = []
    assert read_model(model).vectors == ()


def test_several_automata_without_syncs_only_do_silent_steps() -> None:
    model = minimal_model()
    model["system"]["elements"] *= 2
    assert read_model(model).vectors == ()


def test_vectors_keep_their_order_and_may_be_silent() -> None:
    model = small_model()
    model["system"]["syncs"].append({"synchronise": ["stop", None]})
    vectors = read_model(model).vectors
    assert [(v.synchronise, v.result) for v in vectors] == [
        (("go", None), "go"),
        (("stop", "stop"), "stop"),
        (("stop", None), None),
    ]
    assert isinstance(vectors[0], Vector)


def test_actions_are_results_in_declaration_order() -> None:
    model = small_model()
    model["actions"] = [{"name": "unused"}, {"name": "stop"}, {"name": "go"}]
    assert read_model(model).actions == ("stop", "go")


def test_input_enabling_adds_a_self_loop_where_no_edge_is_enabled() -> None:
    right = read_model(small_model()).automata[1]
    assert [edge.action for edge in right.edges] == ["stop", "stop"]
    assert format_expression(right.edges[1].guard) == "¬(x = 0)"
    assert right.edges[1].destinations[0].assignments == ()


def test_input_enabling_adds_nothing_where_an_edge_is_always_enabled() -> None:
    model = minimal_model()
    model["system"]["elements"][0]["input-enable"] = ["go"]
    assert len(read_model(model).automata[0].edges) == 1


def test_input_enabling_covers_locations_without_edges() -> None:
    model = minimal_model()
    model["automata"][0]["locations"].append({"name": "m"})
    model["system"]["elements"][0]["input-enable"] = ["go"]
    loop = read_model(model).automata[0].edges[1]
    assert (loop.location, value_of(loop.guard)) == (1, True)


def test_all_restrictions_of_initial_states_count_together() -> None:
    model = small_model()
    model["automata"][0]["restrict-initial"] = {"exp": binary("<", "own", 3)}
    assert format_expression(read_model(model).initial) == "x ≤ 2 ∧ own < 3"


def test_several_initial_locations_leave_the_location_open() -> None:
    model = changed(("automata", 0, "initial-locations"), ["near", "far"])
    left = read_model(model).automata[0]
    assert left.initial_locations == (0, 1)
    assert left.location_variable is not None
    assert left.location_variable.initial is None


def test_conditions_read_what_locations_give_to_transient_variables() -> None:
    model = changed(("restrict-initial", "exp"), binary("<", "cost", 7))
    written = format_expression(read_model(model).initial)
    assert written == "ite(Left.location = 'near', 1.0 * (2 * x), 0.0) < 7"


def test_guards_read_transients_of_their_own_automaton_first_come_first_served() -> None:
    model = small_model()
    model["automata"][1]["locations"][0]["transient-values"] = [{"ref": "cost", "value": 5}]
    model["automata"][1]["edges"][0]["guard"] = {"exp": binary("=", "cost", 5)}
    guard = read_model(model).automata[1].edges[0].guard
    assert format_expression(guard) == "ite(Left.location = 'near', 1.0 * (2 * x), 5.0) = 5"


def test_assignments_read_transients_themselves() -> None:
    model = small_model()
    edge = model["automata"][1]["edges"][0]["destinations"][0]
    edge["assignments"] = [
        {"ref": "cost", "value": 3},
        {"ref": "r", "value": binary("+", "cost", 0.5), "index": 1},
    ]
    value = read_model(model).automata[1].edges[0].destinations[0].assignments[1].value
    assert format_expression(value) == "cost + 0.5"


def test_a_bool_transient_is_replaced_by_its_value() -> None:
    model = minimal_model()
    model["variables"].append(
        {"name": "done", "type": "bool", "transient": True, "initial-value": False}
    )
    model["automata"][0]["locations"] = [
        {"name": "l"},
        {"name": "end", "transient-values": [{"ref": "done", "value": True}]},
    ]
    model["automata"][0]["edges"][0]["guard"] = {"exp": "done"}
    assert format_expression(first_edge(read_model(model)).guard) == (
        "ite(A.location = 'end', true, false)"
    )


def test_probability_one_is_the_same_as_none() -> None:
    model = changed(("automata", 1, "edges", 0, "destinations", 0, "probability"), {"exp": 1})
    assert read_model(model).automata[1].edges[0].destinations[0].probability is None


def test_an_lts_has_one_destination_per_edge() -> None:
    model = minimal_model(type="lts")
    model["automata"][0]["edges"][0]["destinations"] *= 2
    with pytest.raises(JaniError, match="one destination"):
        read_model(model)


@pytest.mark.parametrize(
    "keys", [(), ("variables", 0), ("automata", 0, "edges", 0), ("system",), ("actions", 0)]
)
def test_comments_and_extensions_are_fine_everywhere(keys: tuple[str | int, ...]) -> None:
    model = small_model()
    item: Any = model
    for key in keys:
        item = item[key]
    item["comment"] = item["x-mine"] = {"anything": [1]}
    assert read_model(model).digest == read_model(small_model()).digest


def test_the_digest_ignores_layout_order_of_keys_and_properties(tmp_path: Path) -> None:
    file = tmp_path / "model.jani"
    plain = read_model(small_model()).digest
    other = dict(reversed(small_model().items())) | {"properties": [], "metadata": {}}
    file.write_text(json.dumps(other, indent=3), "utf-8")
    assert read_model(file).digest == plain


def test_the_digest_depends_on_behaviour_and_constants() -> None:
    model = with_constants(constant("N", "int"))
    digests = {read_model(model, constants={"N": n}).digest for n in (1, 2)}
    assert len(digests) == 2
    assert (
        read_model(small_model()).digest
        != read_model(changed(("automata", 1, "edges", 0, "guard", "exp", "right"), 1)).digest
    )


def test_paths_tell_where_edges_and_assignments_stand() -> None:
    edge = first_edge(read_model(small_model()))
    assert edge.path == "$.automata[0].edges[0]"
    assignment = edge.destinations[0].assignments[1]
    assert assignment.path == "$.automata[0].edges[0].destinations[0].assignments[1]"
    assert assignment.index == 1


def test_local_functions_read_local_variables() -> None:
    model = small_model()
    call = {"op": "call", "function": "shift", "args": ["x"]}
    model["automata"][0]["edges"][1]["guard"] = {"exp": binary("<", call, 4)}
    guard = read_model(model).automata[0].edges[1].guard
    assert format_expression(guard) == "shift(x) < 4"


def test_functions_may_call_functions_declared_later() -> None:
    first = {
        "name": "f",
        "type": "int",
        "parameters": [],
        "body": {"op": "call", "function": "g", "args": []},
    }
    later = {"name": "g", "type": "int", "parameters": [], "body": 4}
    model = guarded(binary("<", "x", first["body"]), functions=[first, later])
    assert format_expression(first_edge(read_model(model)).guard) == "x < 4"


def test_mutually_recursive_functions_are_named_in_the_error() -> None:
    functions = [
        {
            "name": a,
            "type": "int",
            "parameters": [],
            "body": {"op": "call", "function": b, "args": []},
        }
        for a, b in (("f", "g"), ("g", "h"), ("h", "f"))
    ]
    with pytest.raises(JaniError, match="f → g → h → f"):
        read_model(minimal_model(functions=functions))


def test_all_errors_of_a_document_come_at_once() -> None:
    model = changed(("automata", 1, "edges", 0, "guard", "exp", "right"), "u")
    model["variables"][0]["initial-value"] = 77
    model["system"]["syncs"][0]["result"] = "v"
    with pytest.raises(JaniError) as caught:
        read_model(model)
    assert [error.path for error in caught.value.errors] == [  # type: ignore[attr-defined]
        "$.variables[0].initial-value",
        "$.automata[1].edges[0].guard.exp.right",
        "$.system.syncs[0].result",
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_a_function_of_an_automaton_cannot_hide_one_of_the_model(order: int) -> None:
    def function(name: str, body: Any) -> dict[str, Any]:
        return {"name": name, "type": "int", "parameters": [], "body": body}

    model = minimal_model(functions=[function("f", 1)])
    own = [function("g", {"op": "call", "function": "f", "args": []}), function("f", 2)]
    model["automata"][0]["functions"] = own[::order]
    with pytest.raises(JaniError, match="function 'f' is declared twice"):
        read_model(model)


def test_instances_get_names_that_no_automaton_has() -> None:
    model = minimal_model()
    model["automata"].append({**model["automata"][0], "name": "A#2"})
    elements = [{"automaton": name} for name in ("A", "A", "A#2")]
    model["system"] = {"elements": elements, "syncs": []}
    assert [automaton.name for automaton in read_model(model).automata] == ["A", "A#3", "A#2"]


@pytest.mark.parametrize("elements", [5, None, "A", {"automaton": "A"}])
def test_elements_that_are_no_list_are_an_error_also_where_they_synchronise(elements: Any) -> None:
    syncs = [{"synchronise": ["go"], "result": "go"}]
    with pytest.raises(JaniError) as caught:
        read_model(minimal_model(system={"elements": elements, "syncs": syncs}))
    assert caught.value.path == "$.system.elements"


def test_a_constant_may_have_any_number_of_digits() -> None:
    model = minimal_model(constants=[{"name": "N", "type": "int"}])
    digests = {read_model(model, constants={"N": 10**n}).digest for n in (5000, 5001)}
    assert len(digests) == 2


@pytest.mark.parametrize("value", [np.int64(5), np.array([True, False]), 1])
def test_a_bool_constant_is_given_as_a_bool(value: Any) -> None:
    model = minimal_model(constants=[{"name": "B", "type": "bool"}])
    assert read_model(model, constants={"B": np.bool_(True)}).constants == {"B": True}
    with pytest.raises(JaniError, match="of type bool"):
        read_model(model, constants={"B": value})
