"""What an environment asks of a shield, and the mask a learner then sees."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from safetest_gym.errors import ConfigError
from safetest_gym.task import Task

__all__ = ["Shield", "never_empty", "require_shield", "shielded", "shielded_many"]

Mask = NDArray[np.int8]


@runtime_checkable
class Shield(Protocol):
    """Anything that forbids actions; `safetest_gym.repair` has some.

    ``mask(state)`` gets the exact state (V,) and returns which actions it permits,
    bool (num_actions,). A shield may also have ``mask_many(states)`` (n, V) -> (n, A).
    """

    def mask(self, state: NDArray[Any], /) -> NDArray[np.bool_]: ...


def require_shield(shield: object, task: Task) -> None:
    """Refuse what cannot be asked for a mask, or was made for another task.

    Raises:
        ConfigError: it has no ``mask``.
        ShieldError: it says that its task is another one.
    """
    if shield is not None and not isinstance(shield, Shield):
        raise ConfigError(
            f"a shield needs a method mask(state) -> bool array, {type(shield).__name__} has none"
        )
    if hasattr(shield, "task"):
        # Here, as most environments never see a shield, and deciders come with it.
        from safetest_gym.repair.shields import Shield as TaskShield
        from safetest_gym.repair.shields import require_same_task

        if isinstance(shield, TaskShield):
            require_same_task(shield, task)


def shielded(applicable: Mask, shield: Shield | None, state: NDArray[Any]) -> Mask:
    """A fresh mask: applicable and permitted, or all applicable if that leaves nothing.

    Where nothing is applicable (a deadlock) no choice matters and every action is open,
    because samplers cannot cope with a mask without a single action.
    """
    mask = applicable.copy()
    if shield is not None:
        mask &= _checked(shield.mask(state), mask.shape)
        if 1 not in mask.tobytes():
            mask = applicable.copy()
    return never_empty(mask)


def _checked(permitted: object, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """What a shield said, as an array that fits the actions."""
    mask = np.asarray(permitted, dtype=np.bool_)
    if mask.shape != shape:
        raise ConfigError(f"the shield's mask has shape {mask.shape}, the actions' is {shape}")
    return mask


def never_empty(mask: Mask) -> Mask:
    """``mask``, all ones if it was all zeros (looking into bytes is 10 times faster)."""
    if 1 not in mask.tobytes():
        mask[:] = 1
    return mask


def shielded_many(applicable: Mask, shield: Shield, states: NDArray[Any]) -> Mask:
    """`shielded` for every row: (n, A) and (n, V) -> fresh (n, A)."""
    many = getattr(shield, "mask_many", None)
    permitted = many(states) if many else [shield.mask(state) for state in states]
    mask = applicable & _checked(permitted, applicable.shape)
    empty = ~mask.any(axis=1)
    mask[empty] = applicable[empty]
    mask[~mask.any(axis=1)] = 1
    return mask
