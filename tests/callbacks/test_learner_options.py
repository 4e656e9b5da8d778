from __future__ import annotations

from typing import Any

import pytest

from safetest_gym.errors import ConfigError

pytest.importorskip("stable_baselines3")

from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN

from safetest_gym.callbacks.learner_options import check_learner_options
from safetest_gym.policies import MaskableDQN


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        (MaskablePPO, {"gamma": 1, "n_steps": 64, "target_kl": None, "normalize_advantage": False}),
        (MaskablePPO, {"learning_rate": lambda left: left, "batch_size": 32}),
        (DQN, {"train_freq": (4, "step"), "device": "cpu", "policy_kwargs": {"net_arch": [8]}}),
        (MaskableDQN, {"double_q": False, "exploration_fraction": 0.5}),
    ],
)
def test_what_the_algorithm_takes_passes(algorithm: type, options: dict[str, Any]) -> None:
    check_learner_options(algorithm, options)


@pytest.mark.parametrize(
    ("algorithm", "options", "message"),
    [
        (MaskablePPO, {"gama": 0.9}, "MaskablePPO takes no gama (did you mean 'gamma'?)"),
        (MaskablePPO, {"buffer_size": 10}, "takes no buffer_size"),
        (MaskablePPO, {"gamma": "x"}, "gamma must be a number, got 'x'"),
        (MaskablePPO, {"gamma": None}, "gamma must be a number, got None"),
        (MaskablePPO, {"n_epochs": 1.5}, "n_epochs must be a whole number, got 1.5"),
        (MaskablePPO, {"n_epochs": True}, "n_epochs must be a whole number, got True"),
        (MaskablePPO, {"n_steps": 0}, "n_steps must be at least 1, got 0"),
        (MaskablePPO, {"normalize_advantage": 1}, "normalize_advantage must be true or false"),
        (MaskablePPO, {"target_kl": "low"}, "target_kl must be a number or null"),
        (MaskableDQN, {"double": True}, "MaskableDQN takes no double (did you mean 'double_q'?)"),
        (MaskableDQN, {"tau": []}, "tau must be a number, got []"),
    ],
)
def test_what_it_does_not_take_is_named(
    algorithm: type, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        check_learner_options(algorithm, options)
    assert message in str(caught.value)
