"""Make a bundled task, take random applicable actions, and count how episodes end."""

from __future__ import annotations

from collections import Counter

import gymnasium as gym

import safetest_gym  # noqa: F401 - registers the ids


def main() -> None:
    env = gym.make("safetest/OneWayLine-v0", packages=5, locations=10, render_mode="ansi")
    _, info = env.reset(seed=1)
    print(env.render())

    env.action_space.seed(1)
    outcomes: Counter[str] = Counter()
    for _ in range(5_000):
        # Actions that are not applicable raise an error; the mask says which ones are.
        action = env.action_space.sample(mask=info["action_mask"])
        _, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            outcomes[info["outcome"]] += 1
            _, info = env.reset()
    print("episodes ended in", dict(outcomes))
    env.close()


if __name__ == "__main__":
    main()
