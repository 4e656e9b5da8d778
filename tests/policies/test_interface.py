"""Names of a policy's inputs and outputs meet those of a task."""

from __future__ import annotations

import pytest

from safetest_gym.errors import PolicyError
from safetest_gym.policies import Interface
from tests.oracles.policies import Names

TASK = Names(("x", "y", "robot.speed"), ("go", "stop"))


def test_an_interface_describes_states_with_just_its_variables_until_it_is_bound() -> None:
    names = Interface(("y", "x"), ("stop", "go"))
    assert (names.columns, names.numbers, names.num_columns) == ((0, 1), (0, 1), 2)


def test_binding_finds_a_subset_of_the_variables_in_another_order() -> None:
    bound = Interface(("y", "x"), ("stop", "go")).bind(TASK)
    assert (bound.columns, bound.num_columns) == ((1, 0), 3)


def test_binding_maps_outputs_to_the_task_s_action_numbers_and_back() -> None:
    bound = Interface(("x",), ("stop", "go")).bind(TASK)
    assert bound.numbers == (1, 0)
    assert bound.order == (1, 0)


def test_a_local_variable_s_long_name_matches_the_plain_one() -> None:
    assert Interface(("main.x",), ("go", "stop")).bind(TASK).columns == (0,)


def test_of_many_differences_of_a_kind_the_first_are_told_and_the_others_counted() -> None:
    many = Interface(tuple(f"v{number}" for number in range(22)), ("go", "stop"))
    with pytest.raises(PolicyError) as error:
        many.bind(TASK)
    assert str(error.value) == (
        "the policy was not made for this task: the policy's variable 'v0' is not in the task; "
        "the policy's variable 'v1' is not in the task; "
        "the policy's variable 'v2' is not in the task; and 19 more like it"
    )


def test_two_names_for_one_variable_of_the_task_are_refused() -> None:
    with pytest.raises(
        PolicyError, match="several variables of the policy could be the task's 'x'"
    ):
        Interface(("left.x", "right.x"), ("go", "stop")).bind(TASK)


def test_the_interface_of_a_task_takes_everything_in_order() -> None:
    names = Interface.of(TASK)
    assert names.variables == TASK.names
    assert names.actions == TASK.actions


def test_a_mismatch_lists_every_difference_with_a_hint() -> None:
    with pytest.raises(PolicyError) as caught:
        Interface(("x", "speet"), ("go", "stopp")).bind(Names(("x", "speed"), ("go", "stop")))
    assert str(caught.value) == (
        "the policy was not made for this task: "
        "the policy's variable 'speet' is not in the task (did you mean 'speed'?); "
        "the policy's action 'stopp' is not in the task (did you mean 'stop'?); "
        "the task's action 'stop' is unknown to the policy"
    )


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(PolicyError, match="variable named twice: x"):
        Interface(("x", "x"), ("go",))


def test_a_policy_needs_variables_and_actions() -> None:
    with pytest.raises(PolicyError, match="at least one action"):
        Interface(("x",), ())
