"""Step a thousand environments with one call, and the same episodes one by one."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

import safetest_gym  # noqa: F401 - registers the ids

COPIES, STEPS = 1024, 200


def main() -> None:
    envs = gym.make_vec("safetest/OneWayLine-v0", num_envs=COPIES, packages=5)
    _, infos = envs.reset(seed=0)
    random = np.random.default_rng(0)
    ended = 0
    for _ in range(STEPS):
        # One random applicable action for each: the largest of random numbers above 0.
        mask = infos["action_mask"]
        actions = ((1 - random.random(mask.shape)) * mask).argmax(axis=1)
        _, _, terminations, truncations, infos = envs.step(actions)
        ended += int(np.sum(terminations | truncations))
    print(f"{COPIES * STEPS} steps, {ended} episodes")
    envs.close()

    # Copy i of seed 0 lives through the episodes of a single environment with seed i.
    single = gym.make("safetest/OneWayLine-v0", packages=5)
    batch = gym.make_vec("safetest/OneWayLine-v0", num_envs=3, packages=5)
    observations, _ = batch.reset(seed=0)
    alone, _ = single.reset(seed=2)
    print("same start:", np.array_equal(observations[2], alone))


if __name__ == "__main__":
    main()
