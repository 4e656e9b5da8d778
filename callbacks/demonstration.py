"""The demonstration: everything the package is for, on one bundled task, in minutes.

A policy is trained, tested, trained on under masks made of its faults, repaired, copied into
a tree ensemble that is repaired too, and what comes out is verified. The folder keeps it all.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

from safetest_gym.callbacks.safety_test import SafetyTestCallback
from safetest_gym.callbacks.shield import ShieldCallback
from safetest_gym.campaign.debugging import DebugConfig, DebugResult, debug_policy
from safetest_gym.campaign.debugging_log import Iteration
from safetest_gym.campaign.pipeline import TestPlan
from safetest_gym.deciders import Budget, Verdict
from safetest_gym.envs import SB3VecEnv
from safetest_gym.envs.tasks.beluga import Beluga
from safetest_gym.errors import ConfigError
from safetest_gym.faults import Fault
from safetest_gym.policies import Policy, distil, evaluate, policy_from_sb3
from safetest_gym.repair.repairing import RepairOptions, default_methods, fixed_faults
from safetest_gym.repair.requests import FaultSet
from safetest_gym.repair.shielded_policy import GuardedPolicy
from safetest_gym.repair.shields import DeciderShield
from safetest_gym.reports import TaskSource, write_report, write_task_file
from safetest_gym.verify import Verification, verify

__all__ = ["DemoPlan", "DemoResult", "DemoRow", "DemoWatch", "demonstrate"]

_LEARNER: dict[str, Any] = {
    "n_steps": 64,
    "batch_size": 1024,
    "learning_rate": 1e-3,
    "device": "cpu",
}
_TASK: dict[str, Any] = {"jigs": 3, "racks": 2}
_NETWORK, _TREES = "network", "trees"


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoPlan:
    """How long the parts take.

    Attributes:
        steps: of training before faults are given back, ``more`` afterwards.
        runs_per_start: sampled from each of the 6 start states, to judge a policy.
    """

    steps: int = 61_440
    more: int = 40_960
    runs_per_start: int = 1_000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class DemoRow:
    """One policy in the final table.

    Attributes:
        name: what was done.
        faults: of those of the trained policy, how many it still has; none if it is proved
            that it reaches no such state any more.
        proof: "safe", "unsafe" or "unknown": what verification says of all start states.
        proved_states: states that the proof is about, 0 without one.
    """

    name: str
    unsafe_rate: float
    goal_rate: float
    faults: int
    proof: str
    proved_states: int


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The table, and where the report is."""

    rows: tuple[DemoRow, ...]
    report: Path


class DemoWatch(Protocol):
    """Who wants to see the demonstration work."""

    def stage(self, text: str) -> None:
        """A part begins."""

    def progress(self, done: float) -> None:
        """So much of the part is done."""

    def faults(self, task: Any, faults: tuple[Fault, ...]) -> None:
        """These were found in the trained policy."""

    def row(self, row: DemoRow) -> None:
        """A policy was judged."""


class _Steps(BaseCallback):
    """Reports progress, and changes nothing."""

    def __init__(self, watch: DemoWatch, total: int) -> None:
        super().__init__()
        self._watch, self._total = watch, total
        self._first = 0

    def _on_training_start(self) -> None:
        self._first = self.num_timesteps

    def _on_step(self) -> bool:
        self._watch.progress((self.num_timesteps - self._first) / self._total)
        return True


class _Loop:
    """Passes the debugging loop's progress on."""

    def __init__(self, watch: DemoWatch) -> None:
        self._watch = watch

    def step(self, number: int, name: str, done: float) -> None:
        """One bar for the whole loop would jump: show the part's own."""
        self._watch.progress(done)

    def iteration(self, row: Iteration) -> None:
        """Not shown."""


def demonstrate(folder: Path, watch: DemoWatch, plan: DemoPlan | None = None) -> DemoResult:
    """Run the demonstration in a new or empty folder.

    Raises:
        ConfigError: the folder holds something.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty; give a new folder with --out")
    folder.mkdir(parents=True, exist_ok=True)
    return _Demonstration(folder, watch, plan or DemoPlan()).run()


class _Demonstration:
    def __init__(self, folder: Path, watch: DemoWatch, plan: DemoPlan) -> None:
        self.folder, self.watch, self.plan = folder, watch, plan
        self.task = self._make_env().task
        self.rows: list[DemoRow] = []
        self.faults: FaultSet | None = None

    def run(self) -> DemoResult:
        write_task_file(self.folder, TaskSource(model="Beluga", constants=_TASK))
        checkpoint = self._train()
        policy = policy_from_sb3(MaskablePPO.load(checkpoint, env=self._make_env()))
        self._judge("as trained", policy)
        self._judge("… shielded by a decider", GuardedPolicy(policy, DeciderShield(self.task)))
        self._train_on(checkpoint, masks=False)
        self._train_on(checkpoint, masks=True)
        self._debug("the network repaired", policy, _NETWORK)
        self._distil(policy)
        self.watch.stage("Writing the report")
        self._write_results()
        return DemoResult(tuple(self.rows), write_report(self.folder))

    def _write_results(self) -> None:
        """The table on top of the report."""
        rows = [
            {
                "name": row.name,
                "unsafe_rate": row.unsafe_rate,
                "goal_rate": row.goal_rate,
                "faults": row.faults,
                "verdict": row.proof,
            }
            for row in self.rows
        ]
        text = json.dumps({"title": "Before and after", "rows": rows}, indent=1)
        (self.folder / "results.json").write_text(text + "\n", encoding="utf-8")

    def _make_env(self) -> SB3VecEnv:
        env = SB3VecEnv(Beluga(**_TASK), num_envs=64, step_limit=100, observation="normalized")
        env.seed(self.plan.seed)
        return env

    def _tests(self, name: str, *, resume: bool = False) -> SafetyTestCallback:
        return SafetyTestCallback(
            every_steps=4_096,
            folder=self.folder / name,
            resume=resume,
            plan={"runs": 2_000, "share": None, "seed": self.plan.seed},
        )

    def _train(self) -> Path:
        """Train and test on the way; the file of the model."""
        steps = self.plan.steps
        self.watch.stage(f"Training MaskablePPO for {steps:,} steps, with tests on the way")
        model = MaskablePPO("MlpPolicy", self._make_env(), seed=self.plan.seed, **_LEARNER)
        tests = self._tests("training")
        model.learn(steps, callback=[tests, _Steps(self.watch, steps)])
        tests.test_now()
        policy = policy_from_sb3(model)
        self.faults = FaultSet.of(self.task, tests.faults)
        wrong = ~fixed_faults(policy, self.faults, "strong")
        present = [fault for fault, bad in zip(tests.faults, wrong, strict=True) if bad]
        self.watch.faults(self.task, tuple(present))
        path = self.folder / "training" / "model.zip"
        model.save(path)
        return path

    def _train_on(self, checkpoint: Path, *, masks: bool) -> None:
        """Train the same model further, with or without masks made of its faults."""
        more = self.plan.more
        how = "faults masked" if masks else "as before"
        self.watch.stage(f"Training {more:,} steps more, {how}")
        model = MaskablePPO.load(checkpoint, env=self._make_env(), device="cpu")
        model.set_random_seed(self.plan.seed)
        callbacks: list[BaseCallback] = [_Steps(self.watch, more)]
        if masks:
            shutil.copytree(self.folder / "training", self.folder / "masks")
            tests = self._tests("masks", resume=True)
            shield = ShieldCallback(mode="faults", tests=tests)
            callbacks += [tests, shield]
        model.learn(more, callback=callbacks, reset_num_timesteps=False)
        policy = policy_from_sb3(model)
        self._judge(f"trained on, {how}", policy)
        if masks:
            self._judge("… with the masks kept", GuardedPolicy(policy, shield.shield))

    def _debug(self, name: str, policy: Policy, folder: str) -> None:
        """Repair the policy until nothing is found, or it is proved safe."""
        self.watch.stage(f"Debugging: {name}")
        config = DebugConfig(
            repair=RepairOptions(method=default_methods(policy), work=1.0),
            test=TestPlan(runs=4_000, strategy="uniform", lookahead=1, seed=self.plan.seed),
            iterations=40,
        )
        result: DebugResult = debug_policy(
            self.task,
            policy,
            config=config,
            directory=self.folder / folder,
            watch=_Loop(self.watch),
        )
        self._judge(name, result.policy)

    def _distil(self, policy: Policy) -> None:
        self.watch.stage("Copying the policy into a tree ensemble")
        ensemble = distil(policy, self.task, runs=2_000, seed=self.plan.seed)
        self._judge("… copied into 20 trees", ensemble)
        self._debug("the trees repaired", ensemble, _TREES)

    def _judge(self, name: str, policy: Policy) -> None:
        """Rates on the same start states, known faults that are left, and a proof."""
        assert self.faults is not None
        found = evaluate(policy, self.task, runs_per_start=self.plan.runs_per_start)
        proof = verify(policy, self.task, budget=Budget(seconds=20, megabytes=1_000))
        left = 0  # nothing unsafe can be reached
        if proof.verdict != Verdict.SAFE:
            left = int((~fixed_faults(policy, self.faults, "strong")).sum())
        row = DemoRow(
            name,
            found.unsafe_rate.value,
            found.goal_rate.value,
            left,
            proof.verdict.name.lower(),
            _size(proof),
        )
        self.rows.append(row)
        self.watch.row(row)


def _size(proof: Verification) -> int:
    statistics: Mapping[str, int | float] = proof.statistics
    return int(statistics.get("states", 0)) if proof.proof is not None else 0
