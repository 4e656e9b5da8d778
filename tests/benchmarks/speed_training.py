"""What the environment costs a learner: MaskablePPO on OneWayLine, one thread, CPU time.

The same learner trains on 64 copies in `SB3VecEnv` and on 8 single environments in
Stable-Baselines3's DummyVecEnv. Learner ``large`` is MaskablePPO with batches as they fit many
copies and is judged by its speed and by the environment's share; ``default`` has MaskablePPO's
own batches of 64, spends most of its time on updates, and is judged by the share.

Run from the checkout: ``python -m tests.benchmarks.speed_training [large|default]...``
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.benchmarks.harness import Facts, Report, Runner, main

ROLLOUT = 8192
"""Frames between updates, for both."""
LEARNERS: dict[str, dict[str, Any]] = {
    "large": {"batch_size": 1024},
    "default": {},
}
MAX_SHARE, FASTER = 0.05, 2.0


class _Timer:
    """CPU seconds spent in some methods of an object."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def watch(self, owner: Any, name: str) -> None:
        call: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            before = time.process_time()
            try:
                return call(*args, **kwargs)
            finally:
                self.seconds += time.process_time() - before

        setattr(owner, name, timed)


def train(*, native: bool, learner: str, frames: int) -> Facts:
    """Train; frames per CPU second, and the environment's share of the time."""
    import torch
    from sb3_contrib import MaskablePPO

    torch.set_num_threads(1)
    env = _native() if native else _dummy()
    timer = _Timer()
    for name in ("reset", "step_async", "step_wait", "env_method"):
        timer.watch(env, name)
    steps = ROLLOUT // env.num_envs
    model = MaskablePPO("MlpPolicy", env, n_steps=steps, seed=0, device="cpu", **LEARNERS[learner])
    model.learn(ROLLOUT)  # loads whatever is loaded at first use
    timer.seconds = 0.0
    before = time.process_time()
    model.learn(frames, reset_num_timesteps=True)
    seconds = time.process_time() - before
    return {
        "frames_per_second": model.num_timesteps / seconds,
        "share": timer.seconds / seconds,
        "frames": model.num_timesteps,
    }


def _native() -> Any:
    from safetest_gym.envs import SB3VecEnv
    from safetest_gym.envs.tasks.one_way_line import OneWayLine

    return SB3VecEnv(OneWayLine(), num_envs=64)


def _dummy() -> Any:
    from stable_baselines3.common.env_util import make_vec_env

    import safetest_gym  # noqa: F401 - registers the ids

    return make_vec_env("safetest/OneWayLine-v0", n_envs=8)


def _plan(runner: Runner, wanted: frozenset[str]) -> Report:
    report = Report("training")
    for learner in LEARNERS:
        if wanted and learner not in wanted:
            continue
        found = {}
        for name, native in (("SB3VecEnv of 64", True), ("DummyVecEnv of 8", False)):
            facts = runner.run("train", native=native, learner=learner, frames=5 * ROLLOUT)
            if facts is None:
                raise RuntimeError("training did not end within the cap")
            report.facts[f"{learner}: {name}"] = found[native] = facts
            text = f"environment share {100 * facts['share']:.1f} %, below {100 * MAX_SHARE:g}"
            report.add(
                f"{learner}: {name}",
                f"{facts['frames_per_second']:,.0f} frames/s, {text}",
                ratio=MAX_SHARE / facts["share"],
                target=1 if native or learner == "default" else None,
            )
        faster = found[True]["frames_per_second"] / found[False]["frames_per_second"]
        target = FASTER if learner == "large" else None
        report.add(
            f"{learner}: native is faster", f"{faster:.2f} times", ratio=faster, target=target
        )
    return report


if __name__ == "__main__":
    main("tests.benchmarks.speed_training", {"train": train}, _plan)
