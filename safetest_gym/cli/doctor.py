"""``safetest-gym doctor``: versions, solver licences, the cache, and a self-test."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import typer

from safetest_gym import __version__
from safetest_gym.cli.options import AsJson
from safetest_gym.cli.reporting import print_json

__all__ = ["doctor"]

_NEEDED = (
    "numpy",
    "numba",
    "llvmlite",
    "gymnasium",
    "stable-baselines3",
    "sb3-contrib",
    "torch",
    "xgboost",
    "scikit-learn",
    "highspy",
    "gurobipy",
)
_OPTIONAL = ("ray", "dd", "pygame", "moviepy", "tensorboard", "stormpy", "momba")
_FAILED = 1
"""Exit code when a test fails."""
_STATES = 565
"""Reachable states of the line with 2 packages and 4 locations."""


@dataclass(frozen=True, slots=True)
class _Finding:
    """One line of the answer; ``good`` is None for what may be missing."""

    part: str
    name: str
    text: str
    good: bool | None = True


def doctor(as_json: AsJson = False) -> None:
    """Show versions, solver licences and the cache, and try the main parts."""
    findings = [*_versions(), *_solvers(), _cache(), *_tests()]
    if as_json:
        print_json(_as_dict(findings))
    else:
        _print(findings)
    if any(finding.good is False for finding in findings):
        raise typer.Exit(_FAILED)


def _versions() -> Iterator[_Finding]:
    yield _Finding("versions", "safetest-gym", __version__)
    yield _Finding("versions", "python", f"{platform.python_version()}, {platform.platform()}")
    for name in (*_NEEDED, *_OPTIONAL):
        try:
            yield _Finding("versions", name, metadata.version(name))
        except metadata.PackageNotFoundError:
            needed = name in _NEEDED and name != "gurobipy"  # HiGHS can replace it
            text = "not installed" if needed else "not installed (optional)"
            yield _Finding("versions", name, text, False if needed else None)


def _solvers() -> Iterator[_Finding]:
    from safetest_gym.repair.gurobi import probe_gurobi

    ability, reason = probe_gurobi()
    text = {"full": "full licence", "restricted": "restricted licence", "none": "not usable"}
    note = f"{text[ability]}: {reason}" if reason else text[ability]
    yield _Finding("solvers", "gurobi", note, None if ability == "none" else True)
    yield _try("solvers", "highs", _solve)


def _cache() -> _Finding:
    from safetest_gym.engine.machine import cache_directory

    folder = cache_directory()
    if not folder.exists():
        return _Finding("cache", "machine code", f"{folder} (empty)")
    sizes = [file.stat().st_size for file in folder.iterdir() if file.is_file()]
    text = f"{folder}: {len(sizes)} files, {sum(sizes) / 2**20:.1f} MB"
    if os.access(folder, os.W_OK):
        return _Finding("cache", "machine code", text)
    return _Finding("cache", "machine code", f"{text}; not writable, so models load slowly", None)


def _tests() -> Iterator[_Finding]:
    for name, test in (
        ("engine", _explore),
        ("decider", _decide),
        ("environment", _step),
        ("policy in a kernel", _run_policy),
    ):
        yield _try("self-test", name, test)


def _try(part: str, name: str, test: Callable[[], str]) -> _Finding:
    """Whatever goes wrong is the finding."""
    try:
        return _Finding(part, name, test())
    except Exception as error:
        return _Finding(part, name, f"{type(error).__name__}: {error}", False)


def _require(found: object, expected: object) -> None:
    if found != expected:
        raise RuntimeError(f"expected {expected}, got {found}")


def _subject() -> Any:
    from safetest_gym.cli.options import open_subject

    return open_subject(Path("OneWayLine"), None, None, ["packages=2", "locations=4"])


def _explore() -> str:
    from safetest_gym.engine.explore import Explorer

    explorer = Explorer(_subject().task, starts="all", mode="label")
    explorer.run()
    states = explorer.counts().states
    _require(states, _STATES)
    return f"{states} states of a small line, as it should be"


def _decide() -> str:
    import numpy as np

    from safetest_gym.deciders import Verdict, make_decider

    task = _subject().task
    decider = make_decider("otf", task)
    (state,) = task.initial.sample(1, np.random.default_rng(0))
    _require(decider.decide(state), Verdict.SAFE)
    return "a safe state is called safe"


def _step() -> str:
    import gymnasium

    env: Any = gymnasium.make("safetest/OneWayLine-v0", packages=2, locations=4)
    _, info = env.reset(seed=0)
    env.action_space.seed(0)
    env.step(env.action_space.sample(mask=info["action_mask"]))
    return "one step through gym.make"


def _run_policy() -> str:
    from safetest_gym.policies import Interface, RandomPolicy, evaluate

    task = _subject().task
    found = evaluate(RandomPolicy(Interface.of(task)), task, runs_per_start=10)
    return f"{int(found.counts.sum())} runs of a random policy"


def _solve() -> str:
    import numpy as np

    from safetest_gym.repair.solver import Program, choose_solver

    program = Program(
        cost=np.ones(1),
        lower=np.zeros(1),
        upper=np.full(1, 9.0),
        start=np.array([0, 1], np.int32),
        columns=np.zeros(1, np.int32),
        values=np.ones(1),
        row_lower=np.full(1, 2.0),
    )
    solution = choose_solver("highs").solve(program, 1.0)
    _require(solution.status, "optimal")
    return "solves a small program"


def _as_dict(findings: list[_Finding]) -> dict[str, object]:
    parts: dict[str, dict[str, object]] = {}
    for finding in findings:
        entry = {"text": finding.text, "good": finding.good}
        parts.setdefault(finding.part, {})[finding.name] = entry
    return {**parts, "good": all(finding.good is not False for finding in findings)}


def _print(findings: list[_Finding]) -> None:
    from rich.console import Console
    from rich.table import Table

    marks = {True: "ok", None: "-", False: "FAILED"}
    table = Table(show_header=False)
    for _ in range(4):
        table.add_column(overflow="fold")
    for part in dict.fromkeys(finding.part for finding in findings):
        table.add_section()
        for finding in findings:
            if finding.part == part:
                table.add_row(part, finding.name, marks[finding.good], finding.text)
    Console(markup=False, highlight=False).print(table)
