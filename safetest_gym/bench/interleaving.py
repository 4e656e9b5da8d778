"""In which order should learning, repair and shields come? All from the same policies.

Every way begins with the same trained policy per seed and gets either the same number of
further timesteps, whatever else it does, or the same CPU seconds for everything it does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetest_gym.bench.experiment import (
    Cell,
    Experiment,
    Facts,
    Findings,
    Row,
    Setting,
    Table,
    mean_or_none,
)
from safetest_gym.bench.figures import BarFigure, LineFigure
from safetest_gym.bench.policies import open_bundled
from safetest_gym.replacing import replace_file

if TYPE_CHECKING:
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.callbacks import BaseCallback

    from safetest_gym.policies import Policy
    from safetest_gym.repair.shields import Shield
    from safetest_gym.task import Task

__all__ = ["EXPERIMENT"]

TASK: tuple[str, dict[str, Any]] = ("Beluga", {"jigs": 4, "racks": 3})
"""Trained for 5 CPU seconds a policy reaches the goal nearly always, and can fail from every
start state, though all of them are safe."""

WAYS = (
    "start",
    "RL only",
    "RL, then repair",
    "repair, then RL",
    "RL and repair in turns",
    "RL with RepairCallback",
    "shielded RL",
)
REPAIR_SHARE = 0.5
"""Of the seconds, for the ways that repair a whole policy."""

_TURNS = 4
_SEEDS = 3

_ENDLESS = 10**9
_ROUND = 64 * 64
"""Timesteps of a rollout, in whole numbers of which training ends."""


def _plan(setting: Setting) -> list[Cell]:
    steps, seconds = (40_960, 10) if setting.quick else (122_880, 30)
    sizes = {"before": 61_440, "steps": steps, "seconds": seconds}
    return [
        {"way": way, "equal": equal, "seed": seed, **sizes}
        for seed in range(setting.seed, setting.seed + _SEEDS)
        for equal in ("timesteps", "seconds")
        for way in WAYS
        if way != "start" or equal == "timesteps"
    ]


def _make_env() -> Any:
    from safetest_gym.envs import SB3VecEnv

    _, generator, _ = open_bundled(*TASK)
    return SB3VecEnv(generator, num_envs=64, step_limit=100, observation="normalized")


def _start(cell: Cell, folder: Path) -> MaskablePPO:
    """The policy that all ways begin with, trained once."""
    import torch
    from sb3_contrib import MaskablePPO

    torch.set_num_threads(1)  # small networks are slower with more
    path = folder / "policies" / f"interleaving-{cell['before']}-{cell['seed']}.zip"
    if not path.exists():
        model = MaskablePPO(
            "MlpPolicy",
            _make_env(),
            n_steps=64,
            batch_size=1024,
            learning_rate=1e-3,
            seed=cell["seed"],
            device="cpu",
        )
        model.learn(cell["before"])
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, model.save)
    loaded: MaskablePPO = MaskablePPO.load(path, env=_make_env(), device="cpu")
    loaded.set_random_seed(cell["seed"] + 1)
    return loaded


@dataclass
class _Way:
    """One way at work: what it has and what it may still spend."""

    model: MaskablePPO
    cell: Cell
    task: Task
    began: float
    shield: Shield | None = None
    repairs: int = 0
    steps: int = 0

    @property
    def by_seconds(self) -> bool:
        return bool(self.cell["equal"] == "seconds")

    @property
    def repair_seconds(self) -> float:
        """What a repair before or after all learning may take."""
        return float(self.cell["seconds"]) * (REPAIR_SHARE if self.by_seconds else 1.0)

    def learn(
        self, until: float, callbacks: Sequence[BaseCallback] = (), *, part: float = 1.0
    ) -> None:
        """Train until a part of all timesteps is done, or until so many seconds are used up."""
        from stable_baselines3.common.callbacks import BaseCallback

        began = self.began

        class Clock(BaseCallback):
            """Ends training between two rollouts."""

            over = False

            def _on_rollout_start(self) -> None:
                self.over = time.process_time() - began >= until

            def _on_step(self) -> bool:
                return not self.over

        rollouts = int(part * self.cell["steps"]) // _ROUND - self.steps // _ROUND
        total = _ENDLESS if self.by_seconds else rollouts * _ROUND
        clock: list[BaseCallback] = [Clock()] if self.by_seconds else []
        before = self.model.num_timesteps
        self.model.learn(total, [*callbacks, *clock], reset_num_timesteps=False)
        self.steps += self.model.num_timesteps - before

    def tests(self) -> Any:
        """Safety tests that find what repairs and lessons need."""
        from safetest_gym.callbacks import SafetyTestCallback

        return SafetyTestCallback(
            every_steps=2 * _ROUND,
            plan={"runs": 512, "max_steps": 200, "share": None, "seed": self.cell["seed"]},
        )

    def repair(self, seconds: float) -> Policy:
        """Debug the policy; stop after the iteration that uses the seconds up."""
        import tempfile

        from safetest_gym.campaign.debugging import DebugConfig, debug_policy
        from safetest_gym.campaign.pipeline import TestPlan
        from safetest_gym.deciders import Budget
        from safetest_gym.policies import policy_from_sb3
        from safetest_gym.repair.repairing import RepairOptions, default_methods

        policy = policy_from_sb3(self.model)
        began = time.process_time()
        methods = default_methods(policy)
        with tempfile.TemporaryDirectory() as place:
            for iterations in range(1, 21):
                config = DebugConfig(
                    repair=RepairOptions(method=methods, work=5.0, gap=0.02),
                    verify_budget=Budget(seconds=10, megabytes=1_000),
                    test=TestPlan(runs=1_000, max_steps=200, seed=self.cell["seed"]),
                    runs_per_start=2,
                    iterations=iterations,
                    visited=0,
                )
                result = debug_policy(self.task, policy, config=config, directory=place)
                used_up = time.process_time() - began >= seconds
                if result.end != "iterations" or used_up:
                    break
        self.repairs += len(result.iterations) - 1
        return result.policy

    def put(self, after: Policy) -> None:
        """Give the learner the weights of its repaired policy."""
        from safetest_gym.policies import MlpPolicy, policy_from_sb3
        from safetest_gym.repair.sb3_model import changed_tensors

        before = policy_from_sb3(self.model)
        assert isinstance(before, MlpPolicy)
        assert isinstance(after, MlpPolicy)
        network = self.model.policy
        network.load_state_dict(changed_tensors(network.state_dict(), before, after))


def _measure(cell: Cell, folder: Path) -> Facts:
    from safetest_gym.policies import policy_from_sb3

    model = _start(cell, folder)
    task, _, _ = open_bundled(*TASK)
    way = _Way(model, cell, task, time.process_time())
    policy = _WORK[cell["way"]](way)
    seconds = time.process_time() - way.began
    facts: Facts = {
        "timesteps": way.steps,
        "cpu_seconds": round(seconds, 2),
        "repairs": way.repairs,
    }
    return facts | _judge(task, policy or policy_from_sb3(model), way)


def _stay(way: _Way) -> None:
    """Do nothing."""


def _learn(way: _Way) -> None:
    way.learn(way.cell["seconds"])


def _learn_then_repair(way: _Way) -> Policy:
    way.learn((1 - REPAIR_SHARE) * way.cell["seconds"])
    return way.repair(way.repair_seconds)


def _repair_then_learn(way: _Way) -> None:
    way.put(way.repair(way.repair_seconds))
    way.learn(way.cell["seconds"])


def _take_turns(way: _Way) -> None:
    seconds = way.cell["seconds"]
    for turn in range(_TURNS):
        way.learn((turn + 1 - REPAIR_SHARE) / _TURNS * seconds, part=(turn + 1) / _TURNS)
        way.put(way.repair(way.repair_seconds / _TURNS))


def _interleave(way: _Way) -> None:
    from safetest_gym.callbacks import RepairCallback

    tests = way.tests()
    repairs = RepairCallback(tests=tests, every_steps=2 * _ROUND)
    way.learn(way.cell["seconds"], [tests, repairs])
    way.repairs = sum(bool(record["kept"]) for record in repairs.history)


def _shield(way: _Way) -> None:
    from safetest_gym.callbacks import ShieldCallback

    tests = way.tests()
    shield = ShieldCallback(mode="decider", tests=tests)
    way.learn(way.cell["seconds"], [tests, shield])
    way.shield = shield.shield


_WORK: dict[str, Callable[[_Way], Policy | None]] = dict(
    zip(
        WAYS,
        (_stay, _learn, _learn_then_repair, _repair_then_learn, _take_turns, _interleave, _shield),
        strict=True,
    )
)


def _judge(task: Task, policy: Policy, way: _Way) -> Facts:
    """Rates from all start states, without and with the decider's shield."""
    from safetest_gym.policies import EvaluationConfig, evaluate
    from safetest_gym.repair.shielded_policy import GuardedPolicy
    from safetest_gym.repair.shields import DeciderShield

    guarded = GuardedPolicy(policy, way.shield or DeciderShield(task))
    facts: Facts = {}
    config = EvaluationConfig(step_limit=200, seed=way.cell["seed"], threads=1)
    for name, judged in (("", policy.bind(task)), ("shielded_", guarded)):
        found = evaluate(judged, task, runs_per_start=200, config=config)
        facts[f"{name}unsafe"] = round(100 * found.unsafe_rate.value, 2)
        facts[f"{name}goal"] = round(100 * found.goal_rate.value, 2)
        facts[f"{name}failing_runs"] = round(100 * found.failure_rate.value, 3)
    return facts


_COLUMNS = {
    "unsafe": "%Unsafe",
    "goal": "%Goal",
    "failing_runs": "% of runs failing",
    "shielded_unsafe": "%Unsafe, shielded",
    "shielded_goal": "%Goal, shielded",
    "timesteps": "timesteps",
    "cpu_seconds": "CPU s",
    "repairs": "repairs",
}


def _present(rows: Sequence[Row]) -> Findings:
    tables = []
    figures: dict[str, Any] = {}
    for equal in ("timesteps", "seconds"):
        chosen = [r for r in rows if r.facts and equal in (r.cell["equal"], _shared(r))]
        ways = [way for way in WAYS if any(row.cell["way"] == way for row in chosen)]
        lines = [_line(way, chosen) for way in ways]
        heads = ["way", "seeds", *_COLUMNS.values()]
        tables.append(Table(f"Equal {equal}: means over seeds (lowest to highest)", heads, lines))
        figures[equal] = _bars(equal, ways, chosen)
    figures["cost"] = _scatter(rows)
    return Findings(tables=tables, figures=figures, notes=_notes(rows))


def _shared(row: Row) -> str:
    """The policy that all begin with belongs to both tables."""
    return "seconds" if row.cell["way"] == "start" else ""


def _line(way: str, rows: Sequence[Row]) -> list[str]:
    facts = [row.facts for row in rows if row.facts and row.cell["way"] == way]
    cells = [way, str(len(facts))]
    for name in _COLUMNS:
        values = [fact[name] for fact in facts]
        digits = {"timesteps": 0, "repairs": 0, "failing_runs": 2}.get(name, 1)
        low, high = min(values), max(values)
        spread = "" if low == high else f" ({low:,.{digits}f} to {high:,.{digits}f})"
        cells.append(f"{sum(values) / len(values):,.{digits}f}{spread}")
    return cells


def _bars(equal: str, ways: Sequence[str], rows: Sequence[Row]) -> BarFigure:
    def means(name: str) -> list[float | None]:
        return [
            mean_or_none([r.facts[name] for r in rows if r.facts and r.cell["way"] == way])
            for way in ways
        ]

    return BarFigure(
        title=f"After equal {equal}",
        y_name="percent",
        groups=ways,
        series={
            "%Unsafe": means("unsafe"),
            "%Goal": means("goal"),
            "%Goal, shielded": means("shielded_goal"),
        },
    )


def _scatter(rows: Sequence[Row]) -> LineFigure:
    series = {
        way: [
            (row.facts["cpu_seconds"], row.facts["unsafe"])
            for row in rows
            if row.facts and row.cell["way"] == way
        ]
        for way in WAYS[1:]
    }
    return LineFigure(
        title="Cost and safety of every training",
        x_name="CPU seconds",
        y_name="%Unsafe",
        series=series,
        joined=False,
    )


def _notes(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    cell = rows[0].cell
    name, parameters = TASK
    return [
        f"task: {name} {parameters}; learner: MaskablePPO; all ways of a seed begin with the same "
        f"policy, trained for {cell['before']:,} timesteps (row 'start')",
        f"equal timesteps: {cell['steps']:,} further timesteps of training, and at most "
        f"{cell['seconds']} CPU seconds of repair besides; equal seconds: {cell['seconds']} CPU "
        "seconds for everything, half of them for repair where that comes before or after all "
        "learning, or in turns; training ends with the rollout, repair with the iteration, that "
        "uses them up",
        "%Unsafe: start states, all of them, from which some run of the policy fails, exhausted; "
        "%Goal: of 200 sampled runs from each; every start state is safe under a perfect policy",
        "shielded: the same policy with the decider's masks",
    ]


EXPERIMENT = Experiment(name="interleaving", plan=_plan, measure=_measure, present=_present)
