"""Repair networks by gradient steps on all weights, where the last layer is not enough.

A fault, and a decision to keep, costs by how much it misses its margin, times a penalty that
doubles while it persists; distance from the old weights costs too. There is no chance in it:
every step uses all demands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safetest_gym.policies.mlp import Layer, MlpPolicy
from safetest_gym.policies.scaling import scaled_features
from safetest_gym.repair.demand import Demands
from safetest_gym.repair.method import Outcome, Settings
from safetest_gym.repair.problem import fault_masks
from safetest_gym.repair.stop import HardStop

__all__ = ["repair_by_gradient"]

_ROUNDS = 60
"""Doublings after which what persists is given up."""
_STEPS = 30
"""Gradient steps between two looks."""
_RATES = (3e-3, 1e-2)
"""Learning rates, one attempt each."""
_PULL = 1e-3
"""Price of the squared distance from the old weights."""
_MOST = 2.0**6
"""Penalties stop doubling here: with larger ones single faults undo what others have gained."""
_HALVINGS = 7
"""Steps of the search for how little of the change is enough."""
_STEP_UNITS, _PRODUCT_UNITS = 3e-4, 5e-11
"""Work of a gradient step, and of each product of a weight and an input in it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Wanted:
    """All demands, faults first: some good output must beat every bad one by a margin.

    Attributes:
        points: what the network reads, shape (n, F).
        good, bad: masks (n, A) by output.
        margin, price: shape (n,).
        doubles: whether the price rises while the demand persists.
    """

    points: NDArray[np.float32]
    good: NDArray[np.bool_]
    bad: NDArray[np.bool_]
    margin: NDArray[np.float64]
    price: NDArray[np.float64]
    doubles: NDArray[np.bool_]

    def missed(self, scores: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Which demands scores (n, A) do not meet."""
        best = np.where(self.good, scores, -np.inf).max(axis=1)
        worst = np.where(self.bad, scores, -np.inf).max(axis=1)
        return np.asarray(self.bad.any(axis=1) & (best - worst < self.margin))


def repair_by_gradient(policy: MlpPolicy, demands: Demands, settings: Settings) -> Outcome:
    """The policy after gradient steps; demands may be left, which the report then says.

    When all demands hold, the weights go back towards the old ones as far as they then still do.
    """
    wanted = _wanted(policy, demands, settings)
    states = demands.states
    # Scores are by the task's numbers, demands by output.
    outputs = list(policy.interface.numbers)
    before = wanted.missed(policy.scores(states)[:, outputs])
    if not before.any():
        return Outcome(
            policy=policy, algorithm="nothing to do", objective=0.0, lower_bound=0.0, changed=0
        )
    meter = _Meter(settings.limits.work / _units(policy, wanted), settings.solver.stop)
    found, rounds = policy, 0
    fewest = int(before[wanted.doubles].sum()) + 1
    for rate in _RATES:
        with _one_thread():
            candidate, done = _descend(policy, wanted, rate, meter)
        left = wanted.missed(candidate.scores(states)[:, outputs])
        if left[wanted.doubles].sum() < fewest:
            found, rounds, fewest = candidate, done, int(left[wanted.doubles].sum())
        if not fewest or meter.over():
            break

    def holds(candidate: MlpPolicy) -> bool:
        return not wanted.missed(candidate.scores(states)[:, outputs])[wanted.doubles].any()

    found = _shortened(policy, found, holds)
    missed = wanted.missed(found.scores(states)[:, outputs])
    faults = int(missed[: len(demands.faults)].sum())
    notes = [f"the penalty was doubled {rounds} times"]
    if faults:
        notes.append(f"gradient steps left {faults} faults; more work or fewer keeps may help")
    sizes = [
        np.abs(new.astype(np.float64) - old)
        for layer, was in zip(found.layers, policy.layers, strict=True)
        for new, old in ((layer.weight, was.weight), (layer.bias, was.bias))
    ]
    return Outcome(
        policy=found,
        algorithm="gradient",
        objective=float(sum(size.sum() for size in sizes)),
        lower_bound=0.0,
        changed=int(sum((size > 0).sum() for size in sizes)),
        notes=tuple(notes),
        final=bool(faults),
    )


@dataclass(slots=True)
class _Meter:
    """How many rounds of steps there may be yet."""

    rounds: float
    stop: HardStop

    def over(self) -> bool:
        return self.rounds < 1 or self.stop.over()


def _units(policy: MlpPolicy, wanted: _Wanted) -> float:
    """Work of one round."""
    weights = sum(layer.weight.size for layer in policy.layers)
    return _STEPS * (_STEP_UNITS + _PRODUCT_UNITS * weights * len(wanted.points))


@contextmanager
def _one_thread() -> Iterator[None]:
    """So that sums do not depend on the number of processors."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _wanted(policy: MlpPolicy, demands: Demands, settings: Settings) -> _Wanted:
    states = demands.states
    points = scaled_features(states[:, list(policy.interface.columns)], policy.scalings)
    good, bad = fault_masks(demands.faults, settings.variant)
    count, keep = len(demands.faults), demands.keep
    own = np.zeros_like(keep.applicable)
    own[np.arange(len(keep)), demands.kept] = True
    margin = np.full(len(points), settings.margin)
    margin[count:] *= 0.01
    price = np.ones(len(points))
    doubles = np.ones(len(points), dtype=np.bool_)
    if np.isfinite(keep.penalty):
        price[count:], doubles[count:] = keep.penalty, False
    good = np.concatenate([good, own])
    return _Wanted(
        points, good, np.concatenate([bad, keep.applicable & ~own]), margin, price, doubles
    )


def _descend(
    policy: MlpPolicy, wanted: _Wanted, rate: float, meter: _Meter
) -> tuple[MlpPolicy, int]:
    """Gradient steps until all demands hold; the best policy seen, and how often prices rose."""
    import torch

    def tensor(values: NDArray[Any]) -> Any:
        return torch.from_numpy(np.ascontiguousarray(values))

    old = [tensor(part.copy()) for layer in policy.layers for part in (layer.weight, layer.bias)]
    new = [part.clone().requires_grad_() for part in old]
    steps = torch.optim.Adam(new, lr=rate)
    points, good, bad = (tensor(part) for part in (wanted.points, wanted.good, wanted.bad))
    some = bad.any(1)
    least = float("-inf")
    with torch.no_grad():
        spread = float(_scores(policy, new, points).std())
    # Aim a little further than asked, measured by the scores' own size.
    margin = tensor((2 * wanted.margin + 0.01 * spread).astype(np.float32))
    price = wanted.price.copy()
    best, fewest = new, len(price) + 1
    for rounds in range(_ROUNDS + 1):
        with torch.no_grad():
            missed = wanted.missed(_scores(policy, new, points).numpy())
        left = int(missed[wanted.doubles].sum())
        if left < fewest:
            best, fewest = [part.detach().clone() for part in new], left
        if not left or rounds == _ROUNDS or meter.over():
            break
        rising = missed & wanted.doubles & (rounds > 0)
        price[rising] = np.minimum(2 * price[rising], _MOST)
        weight = tensor((price / price.sum()).astype(np.float32))
        meter.rounds -= 1
        for _ in range(_STEPS):
            scores = _scores(policy, new, points)
            ahead = scores.masked_fill(~good, least).amax(1)
            ahead = ahead - scores.masked_fill(~bad, least).amax(1)
            shortfall = torch.where(some, torch.relu(margin - ahead), 0.0)
            pull = sum(((part - was) ** 2).sum() for part, was in zip(new, old, strict=True))
            steps.zero_grad()
            (weight @ shortfall + _PULL / price.sum() * pull).backward()
            steps.step()
    return _with(policy, [part.detach().numpy() for part in best]), rounds


def _scores(policy: MlpPolicy, parts: list[Any], points: Any) -> Any:
    """The network in torch, by output."""
    import torch

    values = points
    for layer, weight, bias in zip(policy.layers, parts[::2], parts[1::2], strict=True):
        values = torch.addmm(bias, values, weight.T)
        if layer.activation != "identity":
            values = torch.relu(values) if layer.activation == "relu" else torch.tanh(values)
    return values


def _with(policy: MlpPolicy, parts: list[NDArray[Any]]) -> MlpPolicy:
    layers = [
        Layer(weight, bias, layer.activation)
        for layer, weight, bias in zip(policy.layers, parts[::2], parts[1::2], strict=True)
    ]
    return replace(policy, layers=tuple(layers))


def _shortened(
    policy: MlpPolicy, found: MlpPolicy, holds: Callable[[MlpPolicy], bool]
) -> MlpPolicy:
    """The shortest part of the way to ``found`` that bisection finds good enough."""
    if not holds(found):
        return found
    best, low, high = found, 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        parts = [
            (was + middle * (now.astype(np.float64) - was)).astype(np.float32)
            for layer, end in zip(policy.layers, found.layers, strict=True)
            for was, now in ((layer.weight, end.weight), (layer.bias, end.bias))
        ]
        candidate = _with(policy, parts)
        if holds(candidate):
            high, best = middle, candidate
        else:
            low = middle
    return best
