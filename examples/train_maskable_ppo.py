"""Train MaskablePPO on the native vector environment and look at what it learned."""

from __future__ import annotations

from collections import Counter

import torch
from sb3_contrib import MaskablePPO

from safetest_gym.envs import GoalFailureReward, PotentialShaping, SB3VecEnv
from safetest_gym.envs.tasks.one_way_line import OneWayLine

GAMMA = 0.99


def main() -> None:
    torch.set_num_threads(1)  # the network is too small for more
    task = OneWayLine(packages=2, locations=6)
    # Delivering is rewarded, crashing punished; the task's potential shows the way.
    reward = [GoalFailureReward(goal=10, failing=-10), PotentialShaping(gamma=GAMMA, scale=0.1)]
    train = SB3VecEnv(task, num_envs=64, reward=reward, observation="normalized", step_limit=100)
    model = MaskablePPO(
        "MlpPolicy",
        train,
        n_steps=32,
        batch_size=512,
        learning_rate=1e-3,
        gamma=GAMMA,
        seed=1,
        device="cpu",
    )
    model.learn(30_000)

    test = SB3VecEnv(task, num_envs=64, observation="normalized", step_limit=100)
    test.seed(7)
    observations = test.reset()
    ends: Counter[str] = Counter()
    for _ in range(100):
        masks = test.action_masks()
        actions, _ = model.predict(observations, action_masks=masks, deterministic=True)
        observations, _, dones, infos = test.step(actions)  # type: ignore[assignment]  # plain arrays here
        ends.update(info["outcome"] for info, done in zip(infos, dones, strict=True) if done)
    print(dict(ends))


if __name__ == "__main__":
    main()
