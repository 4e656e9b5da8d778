"""Repair a policy: change its decisions in known faults, and as little else as possible."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError
from safetest_gym.policies.policy import Policy
from safetest_gym.repair.demand import Demands, demands
from safetest_gym.repair.least_change import DEFAULT_WORK, Limits
from safetest_gym.repair.method import Outcome, Settings
from safetest_gym.repair.problem import RepairError, Variant, fault_masks
from safetest_gym.repair.report import RepairReport
from safetest_gym.repair.requests import FaultSet, KeepSet
from safetest_gym.repair.solver import SolverName, choose_solver
from safetest_gym.repair.stop import HardStop

__all__ = ["Method", "RepairOptions", "default_methods", "fixed_faults", "repair"]

Method = Literal["leaves", "penalty-trees", "last-layer", "finetune"]

_Run = Callable[[Demands, Settings], Outcome]

_WIDEN = 8.0
_ATTEMPTS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class RepairOptions:
    """How to repair, for those who hand it on; see `repair`.

    Attributes:
        work: spent on improving a first solution, in units of about a second of a processor;
            they count what is done, so that the result depends on no clock.
    """

    method: Method | tuple[Method, ...]
    variant: Variant = "strong"
    solver: SolverName = "auto"
    work: float = DEFAULT_WORK
    gap: float = 1e-4
    time_limit: float = math.inf

    def __post_init__(self) -> None:
        _check(self)

    def require_fit(self, policy: Policy) -> None:
        """Raise `ConfigError` for a method that is not for this kind of policy."""
        _methods(self.method, policy)

    def run(
        self, policy: Policy, faults: FaultSet, keep: KeepSet | None = None
    ) -> tuple[Any, RepairReport]:
        """A repaired copy of ``policy``, and a report; see `repair`."""
        begun = time.monotonic()
        methods, runs = _methods(self.method, policy)
        wanted = demands(policy, faults, keep, self.variant)
        stop = HardStop(self.time_limit)
        settings = Settings(
            variant=self.variant,
            solver=choose_solver(self.solver, stop),
            limits=Limits(work=self.work, gap=self.gap),
        )
        name, outcome, fixed, attempts = _first_good(methods, runs, (wanted, settings, faults))
        return outcome.policy, RepairReport(
            method=name,
            variant=self.variant,
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
            cut_short=stop.cut,
        )


def repair(
    policy: Policy,
    faults: FaultSet,
    *,
    method: Method | Sequence[Method],
    variant: Variant = "strong",
    keep: KeepSet | None = None,
    solver: SolverName = "auto",
    gap: float = 1e-4,
    time_limit: float = math.inf,
) -> tuple[Any, RepairReport]:
    """A repaired copy of ``policy``, and a report; every fault is tested on the copy.

    Args:
        method: ``leaves`` changes leaf values of a tree ensemble least and adds trees only
            where that cannot be enough; ``penalty-trees`` adds a tree that singles out the
            faults' states; ``last-layer`` changes the last layer of a network least;
            ``finetune`` changes all its weights by gradient steps. Of several, one is the
            fallback where those before it leave faults; the report names the one used.
        variant: ``strong``: a safe action beats every unsafe one; ``weak``: some
            applicable action beats the bad one.
        keep: states whose decisions must stay.
        gap: stop within this relative distance of the least change.
        time_limit: seconds after which improving stops all the same (a first solution is
            completed); ``report.cut_short`` says if it did, the result then depends on the
            machine and its load. Without it improving stops with `RepairOptions.work`.

    Raises:
        RepairError: the faults conflict and the method cannot separate them.
        ConfigError: the method is not for this kind of policy, or the solver is not usable.
    """
    options = RepairOptions(
        method=tuple(method) if not isinstance(method, str) else method,
        variant=variant,
        solver=solver,
        gap=gap,
        time_limit=time_limit,
    )
    return options.run(policy, faults, keep)


def _check(options: RepairOptions) -> None:
    if options.variant not in ("weak", "strong"):
        raise ConfigError(f"variant must be 'weak' or 'strong', got {options.variant!r}")
    if not min(options.work, options.time_limit) > 0 or not options.gap >= 0:
        raise ConfigError(
            "work and time_limit must be positive and gap at least 0, got "
            f"{options.work}, {options.time_limit}, {options.gap}"
        )


def default_methods(policy: Policy) -> tuple[Method, ...]:
    """What fits the kind of policy: one method, and its fallback if it needs one."""
    from safetest_gym.policies.trees import TreeEnsemblePolicy

    return ("leaves",) if isinstance(policy, TreeEnsemblePolicy) else ("last-layer", "finetune")


def _kept(before: Policy, after: Policy, keep: KeepSet | None) -> NDArray[np.bool_]:
    """Per state to keep, is the decision the same?"""
    if keep is None or not len(keep):
        return np.zeros(0, np.bool_)
    old, new = (policy.actions(keep.states, keep.applicable) for policy in (before, after))
    return np.asarray(old == new, dtype=np.bool_)


def _first_good(
    methods: Sequence[Method], runs: Sequence[_Run], work: tuple[Demands, Settings, FaultSet]
) -> tuple[Method, Outcome, NDArray[np.bool_], int]:
    """What the first method gives that fixes all that can be fixed, else the last one."""
    notes: tuple[str, ...] = ()
    for place, (name, run) in enumerate(zip(methods, runs, strict=True)):
        last = place == len(methods) - 1
        try:
            outcome, fixed, attempts = _until_fixed(run, *work)
        except RepairError as error:
            if last:
                raise
            notes += (f"{name} was not enough: {error}",)
            continue
        if last or fixed[work[0].rows].all():
            return name, replace(outcome, notes=notes + outcome.notes), fixed, attempts
        left = int((~fixed[work[0].rows]).sum())
        notes += (f"{name} was not enough: it left {left} faults",)
    raise AssertionError("there is a last method")


def _until_fixed(
    run: _Run, wanted: Demands, settings: Settings, faults: FaultSet
) -> tuple[Outcome, NDArray[np.bool_], int]:
    """Repair with wider margins until rounding leaves no fault that can be fixed."""
    attempt = 1
    while True:
        outcome = run(wanted, settings)
        fixed = fixed_faults(outcome.policy, faults, settings.variant)
        if fixed[wanted.rows].all() or outcome.final or attempt == _ATTEMPTS:
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


def _methods(
    given: Method | Sequence[Method], policy: Policy
) -> tuple[tuple[Method, ...], list[_Run]]:
    methods = (given,) if isinstance(given, str) else tuple(given)
    if not methods:
        raise ConfigError("no method was given to repair with")
    return methods, [_method(name, policy) for name in methods]


def _method(name: Method, policy: Policy) -> _Run:
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
    if name in ("last-layer", "finetune"):
        if not isinstance(policy, MlpPolicy):
            raise ConfigError(
                f"{name} repairs networks, not a {type(policy).__name__} "
                "(for a Stable-Baselines3 model use repair_sb3)"
            )
        from safetest_gym.repair.finetune import repair_by_gradient
        from safetest_gym.repair.last_layer import repair_last_layer

        on_network = repair_last_layer if name == "last-layer" else repair_by_gradient
        return lambda wanted, settings: on_network(policy, wanted, settings)
    raise ConfigError(f"method must be one of {', '.join(get_args(Method))}, got {name!r}")
