"""Repair a policy: change its decisions in known faults, and as little else as possible."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError
from safetest_gym.policies.policy import Policy
from safetest_gym.repair.demand import Demands, demands
from safetest_gym.repair.least_change import Limits
from safetest_gym.repair.method import Outcome, Settings
from safetest_gym.repair.problem import Variant, fault_masks
from safetest_gym.repair.report import RepairReport
from safetest_gym.repair.requests import FaultSet, KeepSet
from safetest_gym.repair.solver import SolverName, choose_solver

__all__ = ["Method", "fixed_faults", "repair"]

Method = Literal["leaves", "penalty-trees", "last-layer"]

_WIDEN = 8.0
_ATTEMPTS = 5


def repair(
    policy: Policy,
    faults: FaultSet,
    *,
    method: Method,
    variant: Variant = "strong",
    keep: KeepSet | None = None,
    solver: SolverName = "auto",
    time_limit: float = 60.0,
    gap: float = 1e-4,
) -> tuple[Any, RepairReport]:
    """A repaired copy of ``policy``, and a report; every fault is tested on the copy.

    Args:
        method: ``leaves`` changes leaf values of a tree ensemble least and adds trees only
            where that cannot be enough; ``penalty-trees`` adds a tree that singles out the
            faults' states; ``last-layer`` changes the last layer of a network least.
        variant: ``strong``: a safe action beats every unsafe one; ``weak``: some
            applicable action beats the bad one.
        keep: states whose decisions must stay.
        time_limit: seconds after which improving stops; a first solution is completed.
        gap: stop within this relative distance of the least change.

    Raises:
        RepairError: the faults conflict and the method cannot separate them.
        ConfigError: the method is not for this kind of policy, or the solver is not usable.
    """
    begun = time.monotonic()
    if variant not in ("weak", "strong"):
        raise ConfigError(f"variant must be 'weak' or 'strong', got {variant!r}")
    if not time_limit > 0 or not gap >= 0:
        raise ConfigError(
            f"time_limit must be positive and gap at least 0, got {time_limit}, {gap}"
        )
    run = _method(method, policy)
    wanted = demands(policy, faults, keep, variant)
    settings = Settings(
        variant=variant,
        solver=choose_solver(solver),
        limits=Limits(time_limit=time_limit, gap=gap),
    )
    outcome, fixed, attempts = _until_fixed(run, wanted, settings, faults)
    return outcome.policy, RepairReport(
        method=method,
        variant=variant,
        algorithm=outcome.algorithm,
        solvers=tuple(sorted(settings.solver.used)),
        notes=outcome.notes + tuple(settings.solver.notes),
        objective=outcome.objective,
        lower_bound=outcome.lower_bound,
        changed=outcome.changed,
        trees_added=outcome.trees_added,
        fixed=fixed,
        safe_now=fixed_faults(outcome.policy, faults, "strong"),
        unfixable=wanted.unfixable,
        kept=_kept(policy, outcome.policy, keep),
        attempts=attempts,
        seconds=time.monotonic() - begun,
    )


def _kept(before: Policy, after: Policy, keep: KeepSet | None) -> NDArray[np.bool_]:
    """Per state to keep, is the decision the same?"""
    if keep is None or not len(keep):
        return np.zeros(0, np.bool_)
    old, new = (policy.actions(keep.states, keep.applicable) for policy in (before, after))
    return np.asarray(old == new, dtype=np.bool_)


def _until_fixed(
    run: Callable[[Demands, Settings], Outcome],
    wanted: Demands,
    settings: Settings,
    faults: FaultSet,
) -> tuple[Outcome, NDArray[np.bool_], int]:
    """Repair with wider margins until rounding leaves no fault that can be fixed."""
    attempt = 1
    while True:
        outcome = run(wanted, settings)
        fixed = fixed_faults(outcome.policy, faults, settings.variant)
        if fixed[wanted.rows].all() or attempt == _ATTEMPTS:
            return outcome, fixed, attempt
        settings = replace(settings, margin=settings.margin * _WIDEN)
        attempt += 1


def fixed_faults(policy: Policy, faults: FaultSet, variant: Variant) -> NDArray[np.bool_]:
    """Per fault, does the policy now take a good action (by what it really does)?"""
    if not len(faults):
        return np.zeros(0, np.bool_)
    good, _ = fault_masks(faults, variant)
    taken = policy.actions(faults.states, faults.applicable)
    return np.asarray(good[np.arange(len(faults)), taken], dtype=np.bool_)


def _method(name: Method, policy: Policy) -> Callable[[Demands, Settings], Outcome]:
    """The method for this policy."""
    from safetest_gym.policies.mlp import MlpPolicy
    from safetest_gym.policies.trees import TreeEnsemblePolicy

    if name in ("leaves", "penalty-trees"):
        if not isinstance(policy, TreeEnsemblePolicy):
            raise ConfigError(f"{name} repairs tree ensembles, not a {type(policy).__name__}")
        from safetest_gym.repair.leaves import repair_leaves
        from safetest_gym.repair.penalty_trees import repair_by_penalties

        on_trees = repair_leaves if name == "leaves" else repair_by_penalties
        return lambda wanted, settings: on_trees(policy, wanted, settings)
    if name == "last-layer":
        if not isinstance(policy, MlpPolicy):
            raise ConfigError(
                f"{name} repairs networks, not a {type(policy).__name__} "
                "(for a Stable-Baselines3 model use repair_sb3)"
            )
        from safetest_gym.repair.last_layer import repair_last_layer

        return lambda wanted, settings: repair_last_layer(policy, wanted, settings)
    raise ConfigError(f"method must be leaves, penalty-trees or last-layer, got {name!r}")
