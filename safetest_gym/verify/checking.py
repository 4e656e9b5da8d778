"""Check proofs of safety: what a sceptic runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from safetest_gym.errors import CertificateError
from safetest_gym.jani.depth import deep_recursion
from safetest_gym.verify.checking_boxes import BoxesChecker
from safetest_gym.verify.checking_states import StatesChecker
from safetest_gym.verify.inductive import InductiveSet, InductiveStates
from safetest_gym.verify.verification import Starts

if TYPE_CHECKING:
    from safetest_gym.policies.policy import Policy
    from safetest_gym.task import Task

__all__ = ["check_proof"]


def check_proof(
    task: Task,
    policy: Policy,
    proof: InductiveSet,
    *,
    starts: Starts | None = None,
    sample: int | None = None,
    seed: int = 0,
    report: Callable[[int], None] | None = None,
) -> None:
    """Return if the proof shows that the policy never fails from the start states.

    Args:
        starts: the task's own by default.
        sample: look at so many of the states (and starts) only, drawn with ``seed``. That
            can refute a listed set, but not confirm it. Boxes are always all checked.
        report: is told how many states or boxes are checked.

    Raises:
        CertificateError: it proves nothing; the message says where it breaks.
    """
    if proof.digest != task.digest:
        raise CertificateError(f"the proof is about the task {proof.digest}, not {task.digest}")
    given, bound = task.initial if starts is None else starts, policy.bind(task)
    with deep_recursion():
        if isinstance(proof, InductiveStates):
            checker = StatesChecker(task, bound, proof, report)
            which = np.arange(len(proof))
            if sample is not None and sample < len(proof):
                which = np.random.default_rng(seed).choice(which, sample, replace=False)
            checker.check_starts(given, sample, seed)
            checker.check_states(which)
        else:
            boxes = BoxesChecker(task, bound, proof, report)
            boxes.check_starts(given)
            boxes.check_boxes()
