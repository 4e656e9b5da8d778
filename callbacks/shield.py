"""ShieldCallback: what tests find becomes action masks while training goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO

from safetest_gym.callbacks.following import TestFollower, Tests
from safetest_gym.callbacks.learner import environment_of, exact_states, require_masks
from safetest_gym.callbacks.lessons import LAST_ROUNDS, Lessons
from safetest_gym.errors import ConfigError
from safetest_gym.faults import Fault
from safetest_gym.policies import policy_from_sb3
from safetest_gym.repair.shielded_policy import GuardedPolicy
from safetest_gym.repair.shields import (
    CombinedShield,
    DeciderShield,
    FaultShield,
    Shield,
    require_same_task,
)
from safetest_gym.repair.shields_file import load_shield, save_shield

__all__ = ["Mode", "ShieldCallback"]

Mode = Literal["faults", "decider", "decider-then-faults", "faults-then-decider"]

_SAMPLE_EVERY = 8
"""Steps of all environments between two looks at their states."""

_KEPT = 5_000
"""Restricted states, and as many others, that the report on variables looks at."""


class ShieldCallback(TestFollower):
    """Shields the training environments, with masks that grow with what tests find.

    ``faults`` forbids confirmed faults only; ``decider`` shields every step from the
    beginning, so that no episode from a safe start fails; the other two change from one to
    the other after ``switch_after`` timesteps. Tests look at the unshielded policy: their
    rates say whether it learns not to need the shield. The shield stays when training ends.

    Logged under ``shield/``: restricted_rate (sampled states of training where it forbids
    something), needed_rate (where it forbids what the policy would do), faults,
    failing_episodes and more.

    Args:
        mode: see above.
        switch_after: for the two modes that change.
        tests: a `SafetyTestCallback` before this one in the list, or the arguments of one.
        extra: a shield that is in force besides, such as a `LearnedShield`; or its file.
        save_path: where the shield is saved after every test, and when training ends.
        lessons: steps of gradient descent before each rollout of MaskablePPO, on the
            probability of permitted actions where the shield acts (see `Lessons`); 0 for
            none. A policy that is never taught needs the shield for ever.
    """

    def __init__(
        self,
        *,
        mode: Mode = "faults",
        switch_after: int | None = None,
        tests: Tests = None,
        extra: Shield | str | Path | None = None,
        save_path: str | Path | None = None,
        lessons: int = 100,
    ) -> None:
        super().__init__(tests)
        if mode not in get_args(Mode):
            raise ConfigError(f"mode must be one of {', '.join(get_args(Mode))}, got {mode!r}")
        if ("then" in mode) != (switch_after is not None):
            raise ConfigError(f"switch_after is needed for modes that change, mode is {mode!r}")
        self.mode, self.switch_after = mode, switch_after
        self.failing_episodes = self.episodes = 0
        self._extra = extra
        self._save_path = None if save_path is None else Path(save_path)
        self._lessons = Lessons(lessons)
        self._since_sample = 0
        self._faults: FaultShield | None = None
        self._decider: DeciderShield | None = None
        self._samples = _Samples()

    @property
    def shield(self) -> Shield:
        """What is in force now."""
        if self._faults is None or self._decider is None:
            raise ConfigError("there is no shield before training has begun")
        parts: list[Shield] = [self._decider if self._by_decider() else self._faults]
        if isinstance(self._extra, Shield):
            parts.append(self._extra)
        return parts[0] if len(parts) == 1 else CombinedShield(*parts)

    def _by_decider(self) -> bool:
        if self.switch_after is None:
            return self.mode == "decider"
        return (self.mode == "decider-then-faults") == (self.steps < self.switch_after)

    def _begin(self) -> None:
        require_masks(self.model)
        if self._faults is None:
            task, plan = self.tests.task, self.tests.plan
            self._faults = FaultShield(task)
            self._decider = DeciderShield(task, decider=plan.decider, budget=plan.budget)
            if isinstance(self._extra, str | Path):
                self._extra = load_shield(self._extra, task)
            if self._extra is not None:
                require_same_task(self._extra, task)
        self._put()

    def _put(self) -> None:
        environment_of(self.model).env_method("set_shield", self.shield)

    def _on_faults(self, new: Sequence[Fault]) -> None:
        assert self._faults is not None
        self._lessons.add(np.array([fault.state for fault in new]))
        if self._faults.add(new) and not self._by_decider():
            self._put()

    def _on_training_end(self) -> None:
        """Lessons until the policy does without the shield; what it then lacks is added."""
        super()._on_training_end()
        for _ in range(LAST_ROUNDS):
            if not self._teach() or not self._search(policy_from_sb3(self.model)):
                break
        for _ in range(LAST_ROUNDS):
            if self._by_decider():
                break
            if not self._search(GuardedPolicy(policy_from_sb3(self.model), self.shield)):
                break
        self._save()

    def _on_rollout_start(self) -> None:
        self._teach()

    def _teach(self) -> bool:
        """Give a lesson, if this learner gets any."""
        if not isinstance(self.model, MaskablePPO) or not self._lessons.steps:
            return False
        needed = self._lessons.give(self.model, self.shield)
        self.logger.record("shield/lessons_needed_rate", needed)
        return True

    def _on_each_step(self) -> None:
        before = self.steps - self.training_env.num_envs
        if self.switch_after is not None and before < self.switch_after <= self.steps:
            self._put()
        for info in self.locals["infos"]:
            if info.get("outcome") is not None:
                self.episodes += 1
                self.failing_episodes += info["outcome"] == "failing"
        self._since_sample += 1
        if self._since_sample == _SAMPLE_EVERY:
            self._since_sample = 0
            self._sample()

    def _sample(self) -> None:
        """Look at where the environments are, and at what the policy would do there."""
        states = exact_states(environment_of(self.model))
        applicable = self.tests.task.applicable_many(states)
        open_ = applicable.any(axis=1) & (self.tests.task.classify(states) == 0)
        if not open_.any():
            return
        states, applicable = states[open_], applicable[open_]
        allowed = self.shield.allowed(states)
        actions = policy_from_sb3(self.model).bind(self.tests.task).actions(states, applicable)
        restricted = (allowed != applicable).any(axis=1)
        self._samples.add(states, restricted, ~allowed[np.arange(len(states)), actions])
        self._lessons.add(states[restricted])

    def _on_test(self) -> None:
        """Log, and begin to count anew."""
        assert self._faults is not None
        counts = {
            "restricted_rate": self._samples.rate("restricted"),
            "needed_rate": self._samples.rate("needed"),
            "by_decider": float(self._by_decider()),
            "failing_episodes": float(self.failing_episodes),
            "episodes": float(self.episodes),
        }
        for name, value in {**counts, **self._faults.report()}.items():
            self.logger.record(f"shield/{name}", value)
        self._samples.restart()
        self._save()

    def _save(self) -> None:
        if self._save_path is not None:
            self._save_path.parent.mkdir(parents=True, exist_ok=True)
            save_shield(self.shield, self._save_path)

    def report(self) -> Mapping[str, Any]:
        """What the shield did over the whole training.

        ``variables``: those whose values differ most between states where it forbids
        something and others, with the difference in standard deviations.
        """
        names = [variable.name for variable in self.tests.task.variables]
        return {
            "mode": self.mode,
            "steps": self.steps,
            "episodes": self.episodes,
            "failing_episodes": self.failing_episodes,
            "restricted_rate": self._samples.total_rate("restricted"),
            "needed_rate": self._samples.total_rate("needed"),
            "needed_rate_over_time": list(self._samples.needed_over_time),
            "variables": self._samples.contrast(names),
            "shield": self.shield.report(),
        }


class _Samples:
    """States of training, and whether the shield restricts them."""

    def __init__(self) -> None:
        self.needed_over_time: list[float] = []
        self._now = {"states": 0, "restricted": 0, "needed": 0}
        self._total = dict(self._now)
        self._kept: dict[bool, list[NDArray[Any]]] = {True: [], False: []}

    def add(
        self, states: NDArray[Any], restricted: NDArray[np.bool_], needed: NDArray[np.bool_]
    ) -> None:
        counts = {"states": len(states), "restricted": restricted.sum(), "needed": needed.sum()}
        for name, count in counts.items():
            self._now[name] += int(count)
            self._total[name] += int(count)
        for kind in (True, False):
            free = _KEPT - len(self._kept[kind])
            self._kept[kind].extend(states[restricted == kind][:free])

    def restart(self) -> None:
        """A test is over."""
        self.needed_over_time.append(self.rate("needed"))
        self._now = dict.fromkeys(self._now, 0)

    def rate(self, name: str) -> float:
        """Since the last test."""
        return self._now[name] / max(1, self._now["states"])

    def total_rate(self, name: str) -> float:
        return self._total[name] / max(1, self._total["states"])

    def contrast(self, names: Sequence[str], most: int = 5) -> dict[str, float]:
        """Variables by how much restricted states differ from others, in deviations."""
        if not self._kept[True] or not self._kept[False]:
            return {}
        inside = np.array(self._kept[True], np.float64)
        outside = np.array(self._kept[False], np.float64)
        spread = np.concatenate([inside, outside]).std(axis=0)
        shift = inside.mean(axis=0) - outside.mean(axis=0)
        scores = np.divide(shift, spread, out=np.zeros_like(shift), where=spread > 0)
        order = np.argsort(-np.abs(scores), kind="stable")[:most]
        return {names[i]: round(float(scores[i]), 3) for i in order if scores[i] != 0}
