"""Students decide as their teachers do, from runs alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from safetest_gym.errors import ConfigError
from safetest_gym.policies import (
    CallablePolicy,
    Interface,
    MlpPolicy,
    RandomPolicy,
    TreeEnsemblePolicy,
    compare,
    distil,
    imitation,
)
from safetest_gym.task import Task, load_task
from tests.oracles.policies import random_network

pytest.importorskip("xgboost")


@pytest.fixture(scope="module")
def glider(data: Path) -> Task:
    return load_task(data / "glider.jani")


def _teacher(task: Task) -> CallablePolicy:
    """Dive high up, glide below."""

    def choose(state: dict[str, float], applicable: tuple[str, ...]) -> str:
        wanted = "dive" if state["height"] > 4 else "glide"
        return wanted if wanted in applicable else applicable[0]

    return CallablePolicy(choose, Interface.of(task))


def test_a_simple_rule_is_learnt_almost_perfectly(glider: Task) -> None:
    teacher = _teacher(glider)
    student = distil(teacher, glider, runs=200, trees=5, depth=3)
    report = compare(teacher, student, glider, 50, 4)
    assert report.agreement > 0.99
    assert report.agreement_of_student > 0.99
    assert report.teacher.goal_rate.value == pytest.approx(report.student.goal_rate.value, abs=0.05)


def test_there_are_as_many_trees_of_the_depth_asked_for(glider: Task) -> None:
    student = distil(RandomPolicy(Interface.of(glider)), glider, runs=50, trees=7, depth=2)
    assert len(student.trees) == 7
    assert max(tree.breadth_first()[1] for tree in student.trees) == 2


def test_a_student_reads_and_answers_what_its_teacher_does(glider: Task) -> None:
    names = Interface(("height",), ("glide", "dive"))
    layers = random_network(np.random.default_rng(0), (1, 8, 2)).layers
    student = distil(MlpPolicy(layers, names), glider, runs=20, trees=2)
    assert student.interface.variables == ("height",)
    assert student.interface.actions == ("glide", "dive")


def test_the_same_seed_gives_the_same_student(glider: Task) -> None:
    teacher = RandomPolicy(Interface.of(glider))
    states = glider.initial.sample(50, np.random.default_rng(1))
    first, second = (distil(teacher, glider, runs=50, trees=3, seed=4) for _ in range(2))
    assert (first.scores(states) == second.scores(states)).all()


def test_rounds_of_dagger_improve_the_student_on_its_own_runs(shared: Path) -> None:
    folder, name = shared / "models" / "planning", "one_way_line_5_10_nod_p"
    task = load_task(folder / f"{name}.jani", folder / f"{name}.props.jani")
    sizes = (task.num_variables, 16, 16, task.num_actions)
    layers = random_network(np.random.default_rng(3), sizes).layers
    teacher = MlpPolicy(layers, Interface.of(task))
    agreement = [
        compare(teacher, student, task, 100, 1).agreement_of_student
        for rounds in (0, 5)
        for student in [distil(teacher, task, runs=5, trees=10, depth=4, dagger_rounds=rounds)]
    ]
    assert agreement[1] > agreement[0]


def test_a_student_that_later_rounds_do_not_beat_is_returned(
    glider: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    success = iter([9, 8, 7])
    monkeypatch.setattr(imitation, "_success", lambda *_: next(success))
    options: dict[str, int] = {"runs": 5, "trees": 3, "depth": 2}
    teacher = _teacher(glider)
    first = distil(teacher, glider, **options)
    chosen = distil(teacher, glider, **options, dagger_rounds=2)
    states = glider.initial.sample(50, np.random.default_rng(1))
    assert (first.scores(states) == chosen.scores(states)).all()


def test_a_task_with_one_action_needs_no_trees(data: Path) -> None:
    task = load_task(data / "die.jani")
    student = distil(RandomPolicy(Interface.of(task)), task, runs=5)
    assert isinstance(student, TreeEnsemblePolicy)
    assert student.trees == ()


def test_the_report_shows_both_rates(glider: Task) -> None:
    teacher = RandomPolicy(Interface.of(glider))
    text = compare(teacher, teacher, glider, 10, 2).describe()
    assert "agreement on the teacher's runs 100.00 %" in text
    assert text.count("starts unsafe") == 2


@pytest.mark.parametrize(
    "options",
    [{"runs": 0}, {"trees": 0}, {"depth": 0}, {"learning_rate": 0}, {"dagger_rounds": -1}],
)
def test_impossible_options_are_refused(options: dict[str, int], glider: Task) -> None:
    with pytest.raises(ConfigError):
        distil(RandomPolicy(Interface.of(glider)), glider, **options)
