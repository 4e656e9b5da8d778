"""``safetest-gym decide``: which states are safe?"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from safetest_gym.cli.arguments import takes
from safetest_gym.cli.failure import FailureProperty, FailureText, open_judged_subject
from safetest_gym.cli.options import (
    AsJson,
    Constants,
    ModelFile,
    PropertiesFile,
    PropertyChoice,
    check_output,
)
from safetest_gym.cli.reporting import Exit, print_error, print_json, print_table
from safetest_gym.cli.testing import Mode, read_radius

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from safetest_gym.deciders.base import Decider
    from safetest_gym.task import Task

__all__ = ["DecideOptions", "decide"]

_MOST = 100_000_000

_PART = 4096
"""States numbered between two looks at the time limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DecideOptions:
    """What `decide` takes."""

    model: ModelFile
    constants: Constants = None
    properties: PropertiesFile = None
    choice: PropertyChoice = None
    failure: FailureText = None
    failure_property: FailureProperty = None
    mode: Mode = "label"
    algorithm: Annotated[
        str, typer.Option(metavar="NAME", help="Decider: otf, tarjan, ipi, npi, propu, vi, …")
    ] = "otf"
    radius: Annotated[
        str, typer.Option(metavar="inf|N", help="Deviations from the policy allowed in a run.")
    ] = "inf"
    order: Annotated[
        Literal["auto", "app", "learn", "rand"] | None,
        typer.Option(
            help="In which actions are tried: as earlier queries suggest (otf, its default), "
            "as numbered (default of the others), the policy's best first, at random.",
            show_default=False,
        ),
    ] = None
    policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Policy; needed for a radius and the order learn."),
    ] = None
    states: Annotated[
        str,
        typer.Option(
            metavar="starts|all|FILE", help="Start states, all reachable ones, or .json / .npy."
        ),
    ] = "starts"
    time_limit: Annotated[
        float | None,
        typer.Option(metavar="S", min=0, help="Seconds after which the rest stays unknown."),
    ] = None
    certificates: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write a certificate per decided state: 0.npz, 1.npz, …"),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write the verdict of every state: .json or .npz."
        ),
    ] = None
    as_json: AsJson = False


@takes(DecideOptions)
def decide(options: DecideOptions) -> None:
    """Decide states: is there a way to surely never fail?"""
    check_output("--out", options.out, (".json", ".npz"))
    if options.certificates is not None:
        options.certificates.mkdir(parents=True, exist_ok=True)
    task = open_judged_subject(options).task
    decider = _make(options, task)
    states = _states(options, task)
    _load_kernels(options, task, states)
    before = time.process_time()
    verdicts = _decide(decider, states, options.time_limit)
    seconds = time.process_time() - before
    result = _result(decider, verdicts, seconds)
    if options.certificates is not None:
        _write_certificates(decider, states, verdicts, options.certificates)
    if options.out is not None:
        _write_verdicts(task, states, verdicts, options.out)
    if options.as_json:
        print_json(result)
    else:
        print_table(f"{task.name}, {decider.name}", result)
    if result["unknown"]:
        print_error(f"the time limit left {result['unknown']} of {result['states']} undecided")
        raise typer.Exit(Exit.LIMIT)


def _make(options: DecideOptions, task: Task) -> Decider:
    from safetest_gym.deciders import make_decider
    from safetest_gym.policies import load_policy

    return make_decider(
        options.algorithm,
        task,
        policy=None if options.policy is None else load_policy(options.policy, task),
        radius=read_radius(options.radius),
        order=options.order,
    )


def _states(options: DecideOptions, task: Task) -> NDArray[Any]:
    if options.states == "starts":
        return task.initial.enumerate(_MOST)
    if options.states == "all":
        from safetest_gym.deciders.graph import build_graph

        return build_graph(task, max_states=_MOST).states
    return _read_states(Path(options.states), task)


def _read_states(path: Path, task: Task) -> NDArray[Any]:
    """A (n, V) array, or a list of objects with a value per variable, or of lists."""
    import numpy as np

    from safetest_gym.errors import StateError

    if path.suffix not in (".json", ".npy"):
        raise typer.BadParameter(
            f"expected starts, all or a .json or .npy file, got {path}", param_hint="--states"
        )
    try:
        if path.suffix == ".npy":
            rows: NDArray[Any] = np.load(path, allow_pickle=False)
            return task.engine.vectors(rows)
        listed = json.loads(path.read_text(encoding="utf-8-sig"))
        if not isinstance(listed, list):
            raise StateError(f"{path}: expected a list of states")
        if all(isinstance(entry, dict) for entry in listed):
            vectors = [task.state(entry) for entry in listed]
            return np.array(vectors, task.dtype).reshape(-1, task.num_variables)
        return task.engine.vectors(np.array(listed))
    except ValueError as error:
        raise StateError(f"{path}: {error}") from None


def _decide(decider: Decider, states: NDArray[Any], time_limit: float | None) -> NDArray[np.uint8]:
    """Verdicts; what is not reached within the limit stays UNKNOWN."""
    if time_limit is None:
        return decider.decide_many(states)
    import numpy as np

    verdicts = np.zeros(len(states), np.uint8)
    end = decider.deadline = time.monotonic() + time_limit
    for first in range(0, len(states), _PART):
        if time.monotonic() >= end:
            break
        part = slice(first, first + _PART)
        verdicts[part] = decider.decide_many(states[part])
    decider.deadline = None  # certificates take their own time
    return verdicts


def _load_kernels(options: DecideOptions, task: Task, states: NDArray[Any]) -> None:
    """Loading machine code takes half a second that is none of the decider's."""
    from safetest_gym.deciders import Budget

    decider = _make(options, task)
    decider.budget = Budget(states=1)
    decider.decide_many(states[:1])


def _result(decider: Decider, verdicts: NDArray[np.uint8], seconds: float) -> dict[str, Any]:
    import numpy as np

    unknown, safe, unsafe = np.bincount(verdicts, minlength=3).tolist()
    return {
        "safe": safe,
        "unsafe": unsafe,
        "unknown": unknown,
        "states": len(verdicts),
        "seconds": round(seconds, 6),
        "queries_per_second": round((safe + unsafe) / max(seconds, 1e-9), 1),
        "expanded": decider.statistics.expanded,
    }


def _write_certificates(
    decider: Decider, states: NDArray[Any], verdicts: NDArray[np.uint8], folder: Path
) -> None:
    for number, (state, verdict) in enumerate(zip(states, verdicts.tolist(), strict=True)):
        if verdict:
            decider.certificate(state).save(folder / f"{number}.npz")


def _write_verdicts(
    task: Task, states: NDArray[Any], verdicts: NDArray[np.uint8], path: Path
) -> None:
    import numpy as np

    from safetest_gym.deciders import Verdict

    if path.suffix == ".npz":
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                variables=np.array([variable.name for variable in task.variables]),
                states=states,
                verdicts=verdicts,
            )
        return
    names = [Verdict(verdict).name for verdict in verdicts.tolist()]
    listed = [
        {"state": task.as_dict(state), "verdict": name}
        for state, name in zip(states, names, strict=True)
    ]
    path.write_text(json.dumps(listed, ensure_ascii=False) + "\n", encoding="utf-8")
