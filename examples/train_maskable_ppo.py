"""Train MaskablePPO on the native vector environment and look at what it learned."""

from __future__ import annotations

from sb3_contrib import MaskablePPO

from safetest_gym.envs import GoalFailureReward, PotentialShaping, SB3VecEnv
from safetest_gym.envs.tasks.one_way_line import OneWayLine

GAMMA = 0.99


def main() -> None:
    task = OneWayLine(packages=2, locations=6)
    # Delivering is rewarded, crashing punished; the task's potential shows the way.
    reward = [GoalFailureReward(goal=10, failing=-10), PotentialShaping(gamma=GAMMA, scale=0.1)]
    train = SB3VecEnv(task, num_envs=32, reward=reward, observation="normalized", step_limit=100)
    model = MaskablePPO("MlpPolicy", train, n_steps=64, gamma=GAMMA, seed=1, device="cpu")
    model.learn(20_000)

    test = SB3VecEnv(task, num_envs=64, observation="normalized", step_limit=100)
    test.seed(7)
    observations = test.reset()
    ends: list[str] = []
    for _ in range(100):
        masks = test.action_masks()
        actions, _ = model.predict(observations, action_masks=masks, deterministic=True)
        observations, _, dones, infos = test.step(actions)  # type: ignore[assignment]  # plain arrays here
        ends += [info["outcome"] for info, done in zip(infos, dones, strict=True) if done]
    print({outcome: ends.count(outcome) for outcome in sorted(set(ends))})


if __name__ == "__main__":
    main()
