"""Tree ensembles that imitate a policy, trained on its runs ([C] 6.1), with DAgger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError
from safetest_gym.policies.evaluation import (
    Evaluation,
    EvaluationConfig,
    evaluate,
    start_states,
)
from safetest_gym.policies.interface import Interface
from safetest_gym.policies.policy import Policy
from safetest_gym.policies.runs import ENDS, RunPlan, Visits, sample_runs, visits_of_runs
from safetest_gym.policies.trees import TreeEnsemblePolicy
from safetest_gym.policies.xgboost_file import policy_from_booster
from safetest_gym.whole_numbers import require_int

if TYPE_CHECKING:
    from safetest_gym.task import Task

__all__ = ["ImitationReport", "compare", "distil"]

_STEP_LIMIT = 2000
_CHOICE_RUNS = 1000
"""Runs by which one of several students is chosen; with few, luck would choose."""


@dataclass(frozen=True, slots=True)
class ImitationReport:
    """How well a student does as its teacher does.

    Attributes:
        agreement: fraction of the decisions on the teacher's runs that the student shares.
        agreement_of_student: fraction of the student's own decisions, on its runs, that
            the teacher shares.
    """

    agreement: float
    agreement_of_student: float
    teacher: Evaluation
    student: Evaluation

    def describe(self) -> str:
        """A table for people."""
        return "\n".join(
            [
                f"agreement on the teacher's runs {100 * self.agreement:.2f} %, "
                f"on the student's runs {100 * self.agreement_of_student:.2f} %",
                f"teacher: {self.teacher.describe()}",
                f"student: {self.student.describe()}",
            ]
        )


def distil(
    policy: Policy,
    task: Task,
    runs: int = 1000,
    trees: int = 20,
    depth: int = 5,
    learning_rate: float = 0.4,
    dagger_rounds: int = 0,
    seed: int = 0,
) -> TreeEnsemblePolicy:
    """Train an XGBoost ensemble on what ``policy`` does on its own runs.

    The student reads the teacher's variables and has vector leaves: one value per action
    in every leaf, so ``trees`` trees in all. `compare` reports how well it does.

    Args:
        runs: teacher runs from random start states; as many student runs per round.
        dagger_rounds: how often to add the teacher's answers on the student's runs, and
            train again. More answers do not always make a better student of the same
            size: the best of all on further runs is returned, by the rate of goals less
            failures.
    """
    for name, value in (("runs", runs), ("trees", trees), ("depth", depth)):
        require_int(name, value, 1)
    for name, value in (("dagger_rounds", dagger_rounds), ("seed", seed)):
        require_int(name, value, 0)
    if not 0 < learning_rate <= 1:
        raise ConfigError(f"learning_rate must be within (0, 1], got {learning_rate}")
    teacher = policy.bind(task)
    options = {"max_depth": depth, "eta": learning_rate, "seed": seed}
    visits = _visits(teacher, task, runs, seed)
    states, actions = visits.states, visits.actions
    student = best = _fitted(teacher.interface, states, actions, options, trees)
    if not dagger_rounds:
        return student
    record = _success(student, task, seed + dagger_rounds + 1)
    for number in range(1, dagger_rounds + 1):
        visits = _visits(student, task, runs, seed + number)
        if len(visits.actions):
            states = np.concatenate([states, visits.states])
            answers = teacher.actions(visits.states, visits.applicable)
            actions = np.concatenate([actions, answers])
        student = _fitted(teacher.interface, states, actions, options, trees)
        success = _success(student, task, seed + dagger_rounds + 1)
        if success >= record:
            best, record = student, success
    return best


def compare(
    teacher: Policy,
    student: Policy,
    task: Task,
    starts: int | NDArray[Any] = 1000,
    runs_per_start: int = 100,
    *,
    config: EvaluationConfig | None = None,
) -> ImitationReport:
    """Evaluate both from the same starts, and how often they agree."""
    options = config or EvaluationConfig()
    states = start_states(task, starts, options.seed)
    plan = RunPlan(runs=1, step_limit=options.step_limit, seed=options.seed)
    bound = teacher.bind(task), student.bind(task)
    packed = task.engine.pack(states)
    own = [visits_of_runs(one, task, packed, plan) for one in bound]
    # All starts stay an int, so that the evaluations know that they are no sample.
    chosen = states if np.ndim(starts) else starts
    evaluations = [evaluate(one, task, chosen, runs_per_start, config=options) for one in bound]
    return ImitationReport(
        agreement=_agreement(own[0], bound[1]),
        agreement_of_student=_agreement(own[1], bound[0]),
        teacher=evaluations[0],
        student=evaluations[1],
    )


def _agreement(visits: Visits, other: Policy) -> float:
    if not len(visits.actions):
        return 1.0
    return float((other.actions(visits.states, visits.applicable) == visits.actions).mean())


def _visits(policy: Policy, task: Task, runs: int, seed: int) -> Visits:
    return visits_of_runs(policy, task, *_planned(task, runs, seed))


def _success(policy: Policy, task: Task, seed: int) -> int:
    """Goals less failures of some runs."""
    counts = sample_runs(policy, task, *_planned(task, _CHOICE_RUNS, seed)).counts.sum(axis=0)
    return int(counts[ENDS.index("goal")] - counts[ENDS.index("failing")])


def _planned(task: Task, runs: int, seed: int) -> tuple[NDArray[np.int64], RunPlan]:
    """Random start states, packed, and one run from each."""
    starts = task.initial.sample(runs, np.random.default_rng(seed))
    return task.engine.pack(starts), RunPlan(runs=1, step_limit=_STEP_LIMIT, seed=seed)


def _fitted(
    names: Interface,
    states: NDArray[Any],
    actions: NDArray[np.int64],
    options: dict[str, Any],
    trees: int,
) -> TreeEnsemblePolicy:
    """An ensemble trained on states (n, V) and the task's numbers of the actions."""
    if names.num_actions == 1 or not len(actions):
        return TreeEnsemblePolicy((), np.zeros(names.num_actions, dtype=np.float32), names)
    import xgboost

    outputs = np.array(names.order, dtype=np.int64)[actions]
    features = states[:, list(names.columns)].astype(np.float32)
    # The same decision many times weighs as much as it occurs, but is stored once.
    rows, counts = np.unique(
        np.column_stack([features, outputs.astype(np.float32)]), axis=0, return_counts=True
    )
    data = xgboost.DMatrix(rows[:, :-1], label=rows[:, -1], weight=counts)
    settings = {
        "objective": "multi:softprob",
        "num_class": names.num_actions,
        "multi_strategy": "multi_output_tree",
        "tree_method": "hist",
        "nthread": 1,
        **options,
    }
    return policy_from_booster(xgboost.train(settings, data, trees), names)
