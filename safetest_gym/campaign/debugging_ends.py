"""Why a debugging loop ends when no new fault was found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.campaign.debugging_config import DebugEnd
from safetest_gym.campaign.debugging_steps import Known, Tested
from safetest_gym.deciders import Verdict

__all__ = ["why_ended"]

_SHOWN = 3
_UNAVOIDABLE = (
    "from where that begins no policy{} can be sure not to fail, so no repair can change it"
)


def why_ended(
    tested: Tested,
    known: Known,
    fixed: NDArray[np.bool_],
    verification: dict[str, Any] | None,
    radius: float = math.inf,
) -> tuple[DebugEnd, str]:
    """The end in a word and in a sentence.

    Args:
        fixed: which known faults the policy fixes.
        verification: what was asked because nothing else was left to do.
        radius: decisions of the policy that may be changed on a run.
    """
    near = "" if math.isinf(radius) else f" with at most {radius:g} other decisions on a run"
    unavoidable = _UNAVOIDABLE.format(near)
    where = f"{tested.unsafe} of {tested.runs} runs are unsafe"
    open_ = np.flatnonzero(~fixed)
    if len(open_) and not (verification and verification["verdict"] == Verdict.SAFE.name):
        shown = "; ".join(known.texts(int(row)) for row in open_[:_SHOWN])
        return "stuck", (
            f"{where}, none with a new fault; {len(open_)} of {len(known.faults)} known faults "
            f"could not be fixed, such as {shown}"
        )
    if tested.unsafe and tested.unresolved:
        return "unresolved", (
            f"{where}, {tested.unresolved} of them left open by the decider's budget; raise it"
        )
    if tested.unsafe:
        return "unavoidable", f"{where}, all without a fault: {unavoidable}"
    return _verified(f"no unsafe run among {tested.runs}, every known fault is fixed", verification)


def _verified(clean: str, verification: dict[str, Any] | None) -> tuple[DebugEnd, str]:
    if verification is None:
        return "no-fault", clean
    if verification["verdict"] == Verdict.SAFE.name:
        return "proof", "no run of the policy can fail; the proof is kept"
    if verification["verdict"] == Verdict.UNKNOWN.name:
        return "no-fault", f"{clean}; verification could not tell: {verification['reason']}"
    if verification["unresolved"]:
        return "unresolved", (
            "verification found an unsafe run that the decider's budget left open; raise it"
        )
    return (
        "unavoidable",
        f"verification found an unsafe run without a fault: {_UNAVOIDABLE.format('')}",
    )
