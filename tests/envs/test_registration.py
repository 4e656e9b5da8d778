from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import gymnasium as gym
import pytest

from safetest_gym.envs.registration import JANI_ID, register_envs, task_id
from safetest_gym.envs.tasks import NAMES, TASKS, generator_class, make_generator
from safetest_gym.errors import ConfigError


def test_registering_twice_changes_nothing() -> None:
    register_envs()
    before = dict(gym.registry)
    register_envs()
    assert gym.registry == before


def test_all_tasks_have_ids_made_of_strings() -> None:
    register_envs()
    for env_id in (JANI_ID, *map(task_id, NAMES)):
        spec = gym.spec(env_id)
        assert isinstance(spec.entry_point, str)
        assert isinstance(spec.vector_entry_point, str)


@pytest.mark.parametrize("prefix", ["", "safetest_gym:"])
def test_importing_the_package_is_enough(prefix: str) -> None:
    first = "" if prefix else "import safetest_gym\n"
    code = f"import gymnasium\n{first}gymnasium.make('{prefix}safetest/OneWayLine-v0').reset()"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("name", NAMES)
def test_every_task_makes_an_environment(name: str) -> None:
    register_envs()
    env = gym.make(task_id(name))
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    assert env.unwrapped is env


def test_parameters_of_the_generator_are_arguments() -> None:
    register_envs()
    env = gym.make(task_id("OneWayLine"), packages=3, locations=6, step_limit=5)
    assert env.observation_space.shape == (10,)


def test_a_preset_is_its_generator_with_other_defaults() -> None:
    mini = make_generator("RoversMarsMini", {"battery": 9})
    generator: Any = generator_class("Rovers")
    assert mini == replace(generator.mars_mini(), battery=9)


def test_misspelt_parameters_and_tasks_get_a_hint() -> None:
    with pytest.raises(ConfigError, match="did you mean 'packages'"):
        make_generator("OneWayLine", {"package": 3})
    with pytest.raises(ConfigError, match="did you mean 'OneWayLine'"):
        generator_class("OneWayLines")


def test_no_parameter_of_a_task_hides_an_argument() -> None:
    from dataclasses import fields

    from safetest_gym.envs.options import EnvArguments

    for name in TASKS:
        own = {field.name for field in fields(generator_class(name))}  # type: ignore[arg-type]
        assert not own & {*EnvArguments.__annotations__, "task", "num_envs", "render_mode"}
