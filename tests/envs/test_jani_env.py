from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from safetest_gym.envs.jani_env import JaniEnv
from safetest_gym.envs.rewards import PotentialShaping, StepCost
from safetest_gym.errors import ActionError, ConfigError, EvaluationError, StateError
from tests.envs.walk import (
    DEAD_END,
    FAILING,
    GOAL,
    JUMP,
    LEFT,
    RIGHT,
    at,
    walk_model,
    walk_properties,
)
from tests.jani.small import binary, guarded, minimal_model

Trace = list[tuple[list[float], float, bool, bool, str | None]]


def walk(**arguments: Any) -> JaniEnv:
    return JaniEnv(walk_model(), properties=walk_properties(), **arguments)


def play(env: gym.Env[Any, Any], steps: int, info: dict[str, Any]) -> Trace:
    """Always the last applicable action; new episodes as needed."""
    trace: Trace = []
    for _ in range(steps):
        action = int(np.flatnonzero(info["action_mask"])[-1])
        observation, reward, terminated, truncated, info = env.step(action)
        trace.append((observation.tolist(), float(reward), terminated, truncated, info["outcome"]))
        if terminated or truncated:
            _, info = env.reset()
    return trace


def test_observations_are_the_variables_within_their_true_bounds() -> None:
    env = walk()
    assert env.observation_space == gym.spaces.Box(
        np.array([0, -5], np.float32), np.array([9, 5], np.float32)
    )
    assert env.action_space == gym.spaces.Discrete(3)
    assert env.reset(options=at(3))[0].tolist() == [3.0, 2.0]


def test_the_seed_decides_every_later_episode() -> None:
    first, second = walk(), walk()
    assert play(first, 200, first.reset(seed=5)[1]) == play(second, 200, second.reset(seed=5)[1])


def test_another_seed_leads_to_other_episodes() -> None:
    first, second = walk(), walk()
    assert play(first, 200, first.reset(seed=5)[1]) != play(second, 200, second.reset(seed=6)[1])


def test_starts_are_uniform_over_the_start_states() -> None:
    env = walk()
    env.reset(seed=0)
    counts = np.bincount([int(env.reset()[0][0]) for _ in range(2000)], minlength=5)
    assert len(counts) == 5
    assert counts.min() > 300


def test_outcomes_have_the_model_s_probabilities() -> None:
    env = walk()
    env.reset(seed=0)
    twos = 0
    for _ in range(2000):
        env.reset(options=at(0))
        twos += int(env.step(RIGHT)[0][0] == 2)
    assert 420 < twos < 580


@pytest.mark.parametrize(
    ("x", "outcome", "reward"),
    [(GOAL, "goal", 1.0), (DEAD_END, "deadlock", 0.0), (FAILING, "failing", -1.0)],
)
def test_an_episode_ends_with_its_outcome(x: int, outcome: str, reward: float) -> None:
    env = walk()
    env.reset(seed=3)
    for _ in range(200):
        env.reset(options=at(3 if x > GOAL else x - 1))
        _, earned, terminated, truncated, info = env.step(JUMP if x > GOAL else RIGHT)
        if info["state"][0] == x:
            break
    assert (terminated, truncated, earned) == (True, False, reward)
    assert info["outcome"] == outcome
    assert info["is_success"] == (outcome == "goal")
    assert info["cost"] == info["cumulative_cost"] == float(outcome == "failing")


def test_the_step_limit_truncates() -> None:
    env = walk(step_limit=2)
    env.reset(options=at(4))
    assert env.step(LEFT)[2:4] == (False, False)
    *_, truncated, info = env.step(LEFT)
    assert truncated
    assert info["outcome"] == "truncated"


def test_no_step_limit_means_none() -> None:
    env = walk(step_limit=None)
    env.reset(options=at(4))
    for _ in range(2000):
        env.step(LEFT)
        _, _, terminated, truncated, _ = env.step(RIGHT)
        if terminated:
            env.reset(options=at(4))
        assert not truncated


def test_a_running_step_tells_state_mask_and_no_cost() -> None:
    env = walk()
    _, info = env.reset(options=at(2))
    assert info["state"].tolist() == [2, 2]
    assert info["state"].dtype == np.int64
    assert info["action_mask"].tolist() == [1, 1, 0]
    assert info["action_mask"].dtype == np.int8
    assert (info["cost"], info["outcome"], info["is_success"]) == (0.0, None, False)


def test_what_is_handed_out_is_never_reused() -> None:
    env = walk()
    observation, info = env.reset(options=at(2))
    env.step(RIGHT)
    assert observation.tolist() == [2.0, 2.0]
    assert info["state"].tolist() == [2, 2]
    assert info["action_mask"].tolist() == [1, 1, 0]


def test_masks_for_learners_are_bool() -> None:
    env = walk()
    env.reset(options=at(0))
    assert env.action_masks().tolist() == [False, True, False]
    assert env.action_masks().dtype == np.bool_


def test_the_mask_of_a_dead_end_is_open() -> None:
    env = walk()
    _, info = env.reset(options=at(DEAD_END))
    assert info["action_mask"].tolist() == [1, 1, 1]
    assert env.action_masks().all()


@pytest.mark.parametrize(
    ("x", "outcome", "reward"),
    [(GOAL, "goal", 1.0), (DEAD_END, "deadlock", 0.0), (FAILING, "failing", -1.0)],
)
def test_a_start_that_is_an_end_ends_with_the_first_step(
    x: int, outcome: str, reward: float
) -> None:
    env = walk()
    env.reset(options=at(x))
    observation, earned, terminated, _, info = env.step(RIGHT)
    assert (observation[0], earned, terminated, info["outcome"]) == (x, reward, True, outcome)
    with pytest.raises(ResetNeeded):
        env.step(RIGHT)


def test_an_inapplicable_action_is_refused_with_the_applicable_ones() -> None:
    env = walk()
    env.reset(options=at(0))
    with pytest.raises(ActionError, match=r"action 0 \(left\) .*'x': 0.*applicable: 1 \(right\)"):
        env.step(LEFT)
    assert env.step(RIGHT)[0][0] in (1, 2)


@pytest.mark.parametrize("action", [-1, 3, 2**40])
@pytest.mark.parametrize("invalid_action", ["raise", "noop"])
def test_an_action_that_does_not_exist_is_always_refused(action: int, invalid_action: str) -> None:
    env = walk(invalid_action=invalid_action)
    env.reset(options=at(0))
    with pytest.raises(ActionError, match=f"action {action} is not applicable"):
        env.step(action)


def test_an_inapplicable_action_can_pass() -> None:
    env = walk(invalid_action="noop", reward={"kind": "goal_failure", "step": -0.5})
    env.reset(options=at(0))
    observation, reward, terminated, truncated, info = env.step(LEFT)
    assert (observation[0], reward, terminated, truncated) == (0, -0.5, False, False)
    assert info["invalid_action"]


def test_an_inapplicable_action_can_end_the_episode() -> None:
    env = walk(invalid_action="terminate")
    env.reset(options=at(0))
    _, reward, terminated, _, info = env.step(LEFT)
    assert (reward, terminated, info["outcome"], info["cost"]) == (-1.0, True, "invalid", 0.0)


def test_stepping_comes_after_reset() -> None:
    env = walk(step_limit=1)
    with pytest.raises(ResetNeeded, match="it has not begun"):
        env.step(RIGHT)
    env.reset(options=at(0))
    env.step(RIGHT)
    with pytest.raises(ResetNeeded, match="has ended"):
        env.step(RIGHT)


def test_start_states_can_be_chosen_by_vector_mapping_and_number() -> None:
    env = walk()
    assert env.reset(options={"state": [5, 1]})[0].tolist() == [5.0, 1.0]
    assert env.reset(options=at(6))[0].tolist() == [6.0, 2.0]
    listed = [int(env.reset(options={"index": i})[0][0]) for i in range(5)]
    assert sorted(listed) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"state": [5]}, StateError),
        ({"state": [99, 2]}, StateError),
        ({"state": {"x": 5}}, StateError),
        ({"index": 5}, StateError),
        ({"index": -1}, StateError),
        ({"stat": [5, 2]}, ConfigError),
        ({"state": [5, 2], "index": 1}, ConfigError),
    ],
)
def test_wrong_reset_options_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        walk().reset(options=options)


class NoJumps:
    def mask(self, state: Any) -> Any:
        return np.array([True, True, False])


class Nothing:
    def mask(self, state: Any) -> Any:
        return np.zeros(3, np.bool_)


def test_a_shield_takes_actions_out_of_the_mask() -> None:
    env = walk()
    env.set_shield(NoJumps())
    assert env.reset(options=at(3))[1]["action_mask"].tolist() == [1, 1, 0]
    assert env.action_masks().tolist() == [True, True, False]
    env.set_shield(None)
    assert env.action_masks().tolist() == [True, True, True]


def test_a_shield_that_permits_nothing_leaves_what_is_applicable() -> None:
    env = walk()
    env.set_shield(Nothing())
    env.reset(options=at(0))
    assert env.action_masks().tolist() == [False, True, False]
    assert env.step(RIGHT)[4]["action_mask"].any()


def test_what_is_no_shield_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a method mask"):
        walk().set_shield(5)  # type: ignore[arg-type]  # the point of the test


def test_normalized_observations_span_one_to_minus_one() -> None:
    env = walk(observation="normalized")
    assert env.observation_space == gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    assert env.reset(options={"state": [0, 5]})[0].tolist() == [-1.0, 1.0]
    assert env.reset(options={"state": [9, 0]})[0].tolist() == [1.0, 0.0]


def test_a_learner_may_see_some_variables_only() -> None:
    env = walk(observed=["steps"])
    assert env.observed == ("steps",)
    assert env.observation_space.shape == (1,)
    assert env.reset(options=at(3))[0].tolist() == [2.0]
    assert env.step(LEFT)[0].tolist() == [2.0]


@pytest.mark.parametrize("observed", [["y"], [], ["x", "x"]])
def test_observed_must_name_variables_once(observed: list[str]) -> None:
    with pytest.raises(ConfigError, match="observed"):
        walk(observed=observed)


def test_an_integer_that_floats_cannot_hold_is_refused() -> None:
    large = 2**24 + 1
    arguments = {"properties": walk_properties()}
    env = JaniEnv(walk_model(upper=2**30), **arguments)  # type: ignore[arg-type]  # mixed values
    assert env.reset(options={"state": [2**24, 2]})[0][0] == 2**24
    with pytest.raises(StateError, match=f"x = {large} does not fit a float32 observation"):
        env.reset(options={"state": [large, 2]})
    exact = JaniEnv(walk_model(upper=2**30), observation="float64", **arguments)  # type: ignore[arg-type]
    assert exact.reset(options={"state": [large, 2]})[0][0] == large


def test_shaping_uses_the_property_s_potential() -> None:
    env = walk(reward=[PotentialShaping(gamma=0.5), StepCost(0.25)])
    env.reset(options=at(4))
    assert env.step(LEFT)[1] == pytest.approx(0.5 * 3 - 4 - 0.25)
    assert env.step(LEFT)[1] == pytest.approx(0.5 * 2 - 3 - 0.25)


def test_expressions_are_rewards() -> None:
    env = walk(reward=["2 * x", {"kind": "step_reward"}])
    env.reset(options=at(4))
    assert env.step(LEFT)[1] == pytest.approx(6 + 0.375)


@pytest.mark.parametrize("copy_of", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_on_like_the_original(copy_of: Any) -> None:
    env = walk(reward=[PotentialShaping()])
    env.reset(seed=1)
    _, info = env.reset()
    twin = copy_of(env)
    assert play(env, 300, info) == play(twin, 300, info)


def test_arguments_survive_json() -> None:
    made = gym.make(
        "safetest/Jani-v0",
        model=walk_model(),
        properties=walk_properties(),
        reward=[StepCost(0.5)],
        step_limit=7,
    )
    spec = made.spec
    assert spec is not None
    again = gym.make(gym.envs.registration.EnvSpec.from_json(spec.to_json()))
    again.reset(options=at(4))
    assert again.step(LEFT)[1] == -0.5
    assert json.loads(spec.to_json())["kwargs"]["step_limit"] == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"observations": "float32"},
            "unknown argument 'observations'.*did you mean 'observation'",
        ),
        ({"observation": "int8"}, "observation must be one of float32"),
        ({"invalid_action": "ignore"}, "invalid_action must be one of raise"),
        ({"step_limit": 0}, "step_limit must be an integer at least 1"),
        ({"step_limit": "many"}, "step_limit must be an integer at least 1"),
        ({"step_limit": float("inf")}, "step_limit must be an integer at least 1"),
        ({"observed": "x"}, "observed must list names"),
        ({"observed": 5}, "observed must list names"),
        ({"observed": [5]}, "observed names 5"),
        ({"render_mode": "human"}, "render_mode must be one of ansi, rgb_array"),
        ({"picture": "lines"}, "unknown picture 'lines'"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        walk(**arguments)


@pytest.mark.parametrize("model", [5, None, [1]])
def test_what_is_no_model_is_refused(model: Any) -> None:
    with pytest.raises(ConfigError, match="a model is a file, JSON data, a Task or a generator"):
        JaniEnv(model)


def test_a_task_without_actions_is_no_environment() -> None:
    model = minimal_model()
    model["automata"][0]["edges"] = []
    with pytest.raises(ConfigError, match="'minimal' has no action"):
        JaniEnv(model)


@pytest.mark.parametrize("action", [1.0, "left", None, [1], np.array([1]), 2**63, 2**64, -(2**70)])
def test_what_is_no_action_number_is_refused_and_the_episode_goes_on(action: Any) -> None:
    env = walk()
    env.reset(options=at(3))
    with pytest.raises(ActionError):
        env.step(action)
    assert env.step(LEFT)[0].tolist() == [2.0, 2.0]


def test_an_error_of_the_model_ends_the_episode() -> None:
    model = guarded(binary("<", binary("/", 1, binary("-", 5, "x")), 10))
    (destination,) = model["automata"][0]["edges"][0]["destinations"]
    destination["assignments"] = [{"ref": "x", "value": binary("+", "x", 1)}]
    env = JaniEnv(model)
    env.reset(options={"state": [4]})
    with pytest.raises(EvaluationError):
        env.step(0)
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset(options={"state": [1]})
    with pytest.raises(EvaluationError):
        env.reset(options={"state": [5]})
    with pytest.raises(ResetNeeded):
        env.step(0)


def test_rendering_comes_after_reset() -> None:
    with pytest.raises(ResetNeeded):
        walk(render_mode="ansi").render()


@pytest.mark.parametrize(
    "options", [{"index": "a"}, {"index": 1.5}, {1: 2, "a": 3}, {"state": [[1, 2], [3]]}]
)
def test_reset_options_that_make_no_sense_are_refused(options: Any) -> None:
    with pytest.raises((ConfigError, StateError)):
        walk().reset(options=options)


def test_start_states_are_listed_once_for_all_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    env = walk()
    listings = []
    enumerate_all = type(env.task.initial).enumerate

    def counted(starts: Any, limit: int) -> Any:
        listings.append(limit)
        return enumerate_all(starts, limit)

    monkeypatch.setattr(type(env.task.initial), "enumerate", counted)
    found = [env.reset(options={"index": i})[0].tolist() for i in range(5)]
    assert found == [[float(x), 2.0] for x in range(5)]
    assert len(listings) == 1


def test_bounds_beyond_the_observations_are_infinite_without_a_warning() -> None:
    kind = {"kind": "bounded", "base": "real", "lower-bound": -1e300, "upper-bound": 1e300}
    env = JaniEnv(minimal_model(variables=[{"name": "x", "type": kind, "initial-value": 0.0}]))
    assert env.observation_space == gym.spaces.Box(-np.inf, np.inf, (1,))


def test_ansi_and_pictures_show_the_state() -> None:
    env = walk(render_mode="ansi")
    env.reset(options=at(3))
    env.step(LEFT)
    assert env.render().splitlines() == ["walk  step 1  left", "  x      2", "  steps  2"]
    painted = walk(render_mode="rgb_array")
    painted.reset(options=at(3))
    assert painted.render().shape == (400, 640, 3)
