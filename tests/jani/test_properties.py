"""Properties, and their parts in files of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from safetest_gym.errors import JaniError, JaniErrorGroup
from safetest_gym.jani import (
    format_expression,
    read_condition,
    read_goal,
    read_model,
    read_properties,
    read_start,
)
from safetest_gym.jani.tree import (
    FilterProperty,
    Model,
    PlanningProperty,
    Property,
    StartCondition,
    StartValues,
    UnsupportedProperty,
)
from tests.jani.small import binary, minimal_model, small_model, variable


@pytest.fixture(scope="module")
def model() -> Model:
    return read_model(small_model())


def state_condition(exp: Any, *locations: dict[str, Any]) -> dict[str, Any]:
    places = {"locations": list(locations)} if locations else {}
    return {"op": "state-condition", "exp": exp} | places


def at(location: str, automaton: str = "Left", **more: Any) -> dict[str, Any]:
    return {"automaton": automaton, "location": location} | more


def values(*states: dict[str, Any]) -> dict[str, Any]:
    rows = [{"variables": [{"var": k, "value": v} for k, v in s.items()]} for s in states]
    return {"op": "states-values", "values": rows}


def planning(**parts: Any) -> dict[str, Any]:
    return {"op": "PA"} | parts


def one(expression: Any, model: Model) -> Property:
    (found,) = read_properties([{"name": "p", "expression": expression}], model)
    return found


def one_planning(expression: Any, model: Model) -> PlanningProperty:
    found = one(expression, model)
    assert isinstance(found, PlanningProperty)
    return found


def write(folder: Path, name: str, data: Any) -> Path:
    (folder / name).write_text(json.dumps(data), "utf-8")
    return folder / name


def test_all_parts_of_a_planning_property_are_read(model: Model) -> None:
    objective = {
        "op": "objective",
        "goal": state_condition(binary("=", "x", 3)),
        "goal-potential": binary("*", 10, "x"),
        "goal-reward": 5,
        "step-reward": -1,
        "accumulate": ["steps"],
    }
    reach = state_condition(binary("=", "x", 4))
    found = one_planning(planning(objective=objective, reach=reach, start=values({"x": 1})), model)
    written = [
        format_expression(node)
        for node in (found.goal, found.failure, found.goal_potential, found.step_reward)
        if node is not None
    ]
    assert written == ["x = 3", "x = 4", "10 * x", "-1"]
    assert found.goal_reward is not None


def test_missing_values_of_a_start_state_are_initial_values(model: Model) -> None:
    found = one_planning(planning(start=values({"x": 1}, {"r": 2, "b": True})), model)
    assert isinstance(found.start, StartValues)
    assert found.start.states == ((1, False, 0.5, 0, 0), (0, True, 2.0, 0, 0))
    assert isinstance(found.start.states[1][2], float)


def test_a_missing_value_without_an_initial_value_is_an_error() -> None:
    free = {"name": "free", "type": "int"}
    model = read_model(minimal_model(variables=[variable("x", 0, 9), free]))
    with pytest.raises(JaniError, match="'free' gets no value") as caught:
        one(planning(start=values({"x": 1})), model)
    assert caught.value.path == "$[0].expression.start.values[0]"


@pytest.mark.parametrize(
    ("name", "value", "key", "word"),
    [
        ("x", 9, "value", "above its upper bound 4"),
        ("x", 0.5, "value", "an int"),
        ("b", 1, "value", "a bool"),
        ("cost", 1, "var", "unknown variable"),
        ("y", 1, "var", "unknown variable"),
        ("r", "x", "value", "constant"),
        (["x"], 1, "var", "a list"),
    ],
)
def test_impossible_start_values_are_errors(
    name: Any, value: Any, key: str, word: str, model: Model
) -> None:
    start = {"op": "states-values", "values": [{"variables": [{"var": name, "value": value}]}]}
    with pytest.raises(JaniError) as caught:
        one(planning(start=start), model)
    assert caught.value.path == f"$[0].expression.start.values[0].variables[0].{key}"
    assert word in caught.value.message


def test_a_variable_with_two_values_is_an_error(model: Model) -> None:
    start = values({"x": 1})
    start["values"][0]["variables"] *= 2
    with pytest.raises(JaniError, match="two values"):
        one(planning(start=start), model)


def test_start_states_may_name_their_location(model: Model) -> None:
    start = values({"x": 1})
    start["values"][0]["locations"] = [at("far", index=0)]
    found = one_planning(planning(start=start), model)
    assert isinstance(found.start, StartValues)
    assert found.start.states[0][-1] == 1


def test_locations_of_a_condition_are_part_of_it(model: Model) -> None:
    start = state_condition(binary("=", "x", 1), at("far"), at("only", "Right", index=1))
    found = one_planning(planning(start=start), model)
    assert isinstance(found.start, StartCondition)
    assert format_expression(found.start.condition) == "Left.location = 'far' ∧ x = 1"


@pytest.mark.parametrize(
    ("location", "key", "word"),
    [
        (at("fra"), "location", "did you mean 'far'"),
        (at("far", "Lfet"), "automaton", "did you mean 'Left'"),
        (at("far", index=1), "index", "index 0"),
        (at("far", index="0"), "index", "index 0"),
    ],
)
def test_wrong_locations_are_errors(
    location: dict[str, Any], key: str, word: str, model: Model
) -> None:
    with pytest.raises(JaniError) as caught:
        one(planning(reach=state_condition(True, location)), model)
    assert caught.value.path == f"$[0].expression.reach.locations[0].{key}"
    assert word in f"{caught.value.message} {caught.value.hint}"


def test_an_index_tells_instances_of_one_automaton_apart() -> None:
    document = minimal_model()
    document["automata"][0]["locations"].append({"name": "m"})
    document["system"] = {"elements": [{"automaton": "A"}, {"automaton": "A"}]}
    model = read_model(document)
    found = read_condition(state_condition(True, at("m", "A", index=1)), model)
    assert format_expression(found) == "A#2.location = 'm'"
    with pytest.raises(JaniError, match="several instances"):
        read_condition(state_condition(True, at("m", "A")), model)


def test_parts_may_be_files_beside_the_properties(model: Model, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    write(folder, "goal.jani", state_condition(binary("=", "x", 3)))
    objective = {"op": "objective", "goal": {"file": "goal.jani"}}
    write(folder, "objective.jani", objective)
    write(folder, "start.jani", values({"x": 2}))
    write(folder, "safe.jani", binary("=", "x", 4))
    expression = planning(
        objective={"file": "objective.jani"},
        reach={"file": "safe.jani"},
        start={"file": "start.jani"},
    )
    file = write(folder, "props.jani", {"properties": [{"name": "p", "expression": expression}]})
    (found,) = read_properties(file, model)
    assert isinstance(found, PlanningProperty)
    assert found.goal is not None
    assert found.failure is not None
    assert isinstance(found.start, StartValues)


def test_an_error_in_a_file_names_that_file(model: Model, tmp_path: Path) -> None:
    part = write(tmp_path, "safe.jani", binary("=", "u", 4))
    file = write(
        tmp_path, "p.jani", [{"name": "p", "expression": planning(reach={"file": "safe.jani"})}]
    )
    with pytest.raises(JaniError) as caught:
        read_properties(file, model)
    assert (caught.value.path, caught.value.source) == ("$.left", str(part))


@pytest.mark.parametrize("name", ["missing.jani", 5, "", None, ["a"], "a\0b", "."])
def test_names_that_are_no_files_are_errors(name: Any, model: Model, tmp_path: Path) -> None:
    file = write(tmp_path, "p.jani", [{"name": "p", "expression": planning(reach={"file": name})}])
    with pytest.raises(JaniError):
        read_properties(file, model)


def test_files_that_refer_to_themselves_are_errors(model: Model, tmp_path: Path) -> None:
    write(tmp_path, "a.jani", {"file": "b.jani"})
    write(tmp_path, "b.jani", {"file": "./a.jani"})
    file = write(
        tmp_path, "p.jani", [{"name": "p", "expression": planning(reach={"file": "a.jani"})}]
    )
    with pytest.raises(JaniError, match="refers to itself"):
        read_properties(file, model)


TARGETS: list[tuple[Any, str]] = [
    ({"op": "Pmax", "exp": {"op": "F", "exp": binary("=", "x", 1)}}, "x = 1"),
    ({"op": "Pmin", "exp": binary("U", True, "b")}, "b"),
    ({"op": "∃", "exp": {"op": "F", "exp": "b"}}, "b"),
    ({"op": "F", "exp": "b"}, "b"),
    (binary("≥", {"op": "Pmin", "exp": binary("U", True, "b")}, 1), "b"),
    (binary("<", 0.5, {"op": "Pmax", "exp": binary("U", True, "b")}), "b"),
    ({"op": "Emin", "accumulate": ["steps"], "exp": 1, "reach": "b"}, "b"),
    ({"op": "Pmax", "exp": {"op": "F", "exp": binary("<", "cost", 1)}}, "cost"),
]


@pytest.mark.parametrize(("inner", "written"), TARGETS)
def test_the_target_of_a_standard_property_is_found(inner: Any, written: str, model: Model) -> None:
    states = {"op": "initial"}
    found = one({"op": "filter", "fun": "max", "values": inner, "states": states}, model)
    assert isinstance(found, FilterProperty)
    target = format_expression(found.target)
    assert target == written or (written == "cost" and "Left.location" in target)


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        ({"op": "filter", "fun": "max", "values": {"op": "G", "exp": "b"}}, "'G'"),
        ({"op": "F", "exp": "b", "step-bounds": {"upper": 3}}, "step-bounds"),
        ({"op": "Emin", "exp": 1, "step-instant": 3}, "reach"),
        ({"op": "F", "exp": "nothing"}, "unknown identifier"),
        ({"op": "Smax", "exp": "b"}, "'Smax'"),
        ({"op": ["F"]}, "object"),
        (5, "5"),
        ("b", "'b'"),
    ],
)
def test_other_properties_are_unsupported_and_say_why(
    expression: Any, word: str, model: Model
) -> None:
    found = one(expression, model)
    assert isinstance(found, UnsupportedProperty)
    assert word in found.reason


def test_a_broken_planning_property_in_a_model_does_not_prevent_loading() -> None:
    document = minimal_model(
        properties=[{"name": "p", "expression": planning(reach=binary("=", "u", 1))}]
    )
    (found,) = read_model(document).properties
    assert isinstance(found, UnsupportedProperty)
    assert "unknown identifier 'u'" in found.reason


def test_a_broken_planning_property_in_a_file_of_its_own_is_an_error(model: Model) -> None:
    broken = planning(reach=binary("=", "u", 1), start=values({"v": 1}))
    with pytest.raises(JaniErrorGroup) as caught:
        one(broken, model)
    assert len(caught.value.errors) == 2


@pytest.mark.parametrize(
    ("expression", "path"),
    [
        (planning(raech=True), "$[0].expression.raech"),
        (planning(objective={"op": "objectiv"}), "$[0].expression.objective.op"),
        (
            planning(objective={"op": "objective", "step-reward": 1, "accumulate": ["exit"]}),
            "$[0].expression.objective.accumulate[0]",
        ),
        (planning(start={"op": "states-values", "values": []}), "$[0].expression.start.values"),
        (planning(start={"op": "states-values"}), "$[0].expression.start"),
        (planning(reach=state_condition("x")), "$[0].expression.reach.exp"),
        (planning(reach={"op": "state-condition"}), "$[0].expression.reach"),
    ],
)
def test_mistakes_in_planning_properties_have_paths(
    expression: Any, path: str, model: Model
) -> None:
    with pytest.raises(JaniError) as caught:
        one(expression, model)
    assert caught.value.path == path


def test_a_file_of_properties_may_be_a_model(model: Model, tmp_path: Path) -> None:
    file = write(tmp_path, "model.jani", small_model())
    assert [found.name for found in read_properties(file, model)] == ["reached"]


def test_something_that_holds_no_properties_is_an_error(model: Model, tmp_path: Path) -> None:
    with pytest.raises(JaniError, match="expected properties"):
        read_properties(write(tmp_path, "x.jani", 5), model)
    with pytest.raises(JaniError) as caught:
        read_properties({"properties": [], "nmae": 1}, model)
    assert caught.value.path == "$.nmae"


def test_bare_files_are_conditions_starts_and_objectives(model: Model, tmp_path: Path) -> None:
    condition = write(tmp_path, "c.jani", state_condition(binary("=", "x", 1)))
    objective = write(tmp_path, "o.jani", {"op": "objective", "goal": {"file": "c.jani"}})
    start = write(tmp_path, "s.jani", values({"x": 1}))
    assert format_expression(read_condition(condition, model)) == "x = 1"
    assert format_expression(read_condition(objective, model)) == "x = 1"
    assert isinstance(read_start(start, model), StartValues)
    assert isinstance(read_start(condition, model), StartCondition)
    assert isinstance(read_start("x == 1", model), StartCondition)


def test_a_goal_is_an_objective_or_a_bare_condition(model: Model, tmp_path: Path) -> None:
    write(tmp_path, "c.jani", state_condition(binary("=", "x", 1)))
    file = write(tmp_path, "o.jani", {"op": "objective", "goal": {"file": "c.jani"}})
    objective = read_goal(file, model)
    assert isinstance(objective, PlanningProperty)
    assert objective.name == "o.jani"
    assert objective.goal is not None
    for bare in (tmp_path / "c.jani", "x == 1", binary("=", "x", 1)):
        assert not isinstance(read_goal(bare, model), PlanningProperty)


def test_the_goal_reward_of_a_bare_objective_is_kept(model: Model) -> None:
    found = read_goal({"op": "objective", "goal": True, "goal-reward": "x"}, model)
    assert isinstance(found, PlanningProperty)
    assert found.goal_reward is not None


def test_an_error_in_a_reward_of_an_objective_is_not_passed_over(model: Model) -> None:
    with pytest.raises(JaniError, match="unknown identifier 'u'"):
        read_goal({"op": "objective", "goal": True, "step-reward": "u"}, model)
