"""A newcomer's story: a model of one's own, a policy with a bug, and what becomes of it.

``crossing.jani``, beside this file: a cart fetches parcels from behind two railway tracks.
The mistake is in the reward below: an accident costs no more than 25 lost steps.
"""

from __future__ import annotations

from pathlib import Path

import torch
from sb3_contrib import MaskablePPO

import safetest_gym as st
from safetest_gym.campaign.pipeline import TestPlan
from safetest_gym.policies import Policy
from safetest_gym.repair.shielded_policy import GuardedPolicy

MODEL = Path(__file__).parent / "crossing.jani"
STEPS = 40_000
REWARD = [
    {"kind": "goal_failure", "goal": 1, "failing": -0.5},
    {"kind": "step_cost", "cost": 0.02},
    {"kind": "potential_shaping", "gamma": 0.99, "scale": 0.1},
]


def train(task: st.Task) -> Policy:
    """What MaskablePPO learns from the reward."""
    env = st.SB3VecEnv(task, num_envs=32, reward=REWARD, observation="normalized", step_limit=100)
    model = MaskablePPO(
        "MlpPolicy", env, n_steps=64, batch_size=256, learning_rate=1e-3, seed=1, device="cpu"
    )
    model.learn(STEPS)
    return st.policy_from_sb3(model)


def test(task: st.Task, policy: Policy) -> tuple[st.Fault, ...]:
    """Drive the policy towards accidents, and name the decisions to blame."""
    runs = st.Fuzzer(task, policy, strategy="greedy", seed=0).run(500)
    print("fuzzed runs:", runs.counts())
    found = st.find_faults(task, policy, runs.unsafe())
    print(f"{len(found.faults)} faults, such as")
    for fault in found.faults[:3]:
        print("  ", fault.describe(task))
    return found.faults


def print_rates(task: st.Task, name: str, policy: Policy) -> None:
    rates = st.evaluate(policy, task, runs_per_start=50)
    verdict = st.verify.verify(policy, task).verdict.name if policy.native() else ""
    unsafe, goal = 100 * rates.unsafe_rate.value, 100 * rates.goal_rate.value
    print(f"{name:24}{unsafe:8.1f}{goal:7.1f}  {verdict}")


def main() -> None:
    torch.set_num_threads(1)  # the network is too small for more
    task = st.load_task(MODEL)
    print(task.describe())

    policy = train(task)
    faults = test(task, policy)
    plan = st.DebugConfig(test=TestPlan(runs=500), visited=200)
    debugged = st.debug_policy(task, policy, config=plan)
    print("repair:", debugged.reason)

    print(f"\n{'':24}%unsafe  %goal  verified")
    print_rates(task, "trained", policy)
    print_rates(task, "found faults masked", GuardedPolicy(policy, st.FaultShield(task, faults)))
    print_rates(task, "under a decider's shield", GuardedPolicy(policy, st.DeciderShield(task)))
    print_rates(task, "repaired", debugged.policy)

    proof = st.verify.verify(debugged.policy, task).proof
    if proof is None:
        raise SystemExit("the repaired policy has an unsafe run")
    st.verify.check_proof(task, debugged.policy, proof)
    print(f"proof of {len(proof)} states checked")


if __name__ == "__main__":
    main()
