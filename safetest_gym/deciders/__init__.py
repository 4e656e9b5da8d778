"""Is a state safe? Several algorithms behind one interface.

>>> from safetest_gym.deciders import make_decider  # doctest: +SKIP
>>> decider = make_decider("otf", task)  # doctest: +SKIP
>>> decider.decide(state)  # doctest: +SKIP
<Verdict.SAFE: 1>
"""

from __future__ import annotations

import difflib
import math
from importlib import import_module
from typing import TYPE_CHECKING

from safetest_gym.deciders.verdict import Budget, Statistics, Verdict
from safetest_gym.errors import ConfigError

if TYPE_CHECKING:
    from safetest_gym.deciders.base import Decider
    from safetest_gym.deciders.space import Order
    from safetest_gym.policies.policy import Policy
    from safetest_gym.task import Task

__all__ = [
    "DECIDERS",
    "Budget",
    "Statistics",
    "Verdict",
    "make_decider",
]

DECIDERS = {
    "otf": "safetest_gym.deciders.otf:OtfDecider",
    "tarjan": "safetest_gym.deciders.tarjan:TarjanDecider",
    "ipi": "safetest_gym.deciders.ipi:IpiDecider",
    "npi": "safetest_gym.deciders.npi:NpiDecider",
    "propu": "safetest_gym.deciders.propu:PropuDecider",
    "propu-bdd": "safetest_gym.deciders.propu_bdd:PropuBddDecider",
    "vi": "safetest_gym.deciders.vi:ViDecider",
    "lrtdp": "safetest_gym.deciders.lrtdp:LrtdpDecider",
    "lao": "safetest_gym.deciders.lao:LaoDecider",
}
"""Where each algorithm's class is; the first is the default."""


def make_decider(
    name: str,
    task: Task,
    *,
    policy: Policy | None = None,
    radius: float = math.inf,
    order: Order | None = None,
    budget: Budget | None = None,
) -> Decider:
    """A decider by its algorithm's name.

    Args:
        policy: needed for a finite radius and for the order ``learn``.
        radius: deviations from the policy allowed along a run; ``inf``: the policy does
            not matter.
        order: in which actions are tried: ``app`` as the task numbers them, ``learn`` best
            score of the policy first, ``rand`` by a hash of the state; ``auto``, for otf
            and its default, what served safe states best in earlier queries, if that makes
            queries shorter. The default of the others is ``app``.
        budget: when to give up with UNKNOWN; may be raised later.

    Raises:
        ConfigError: there is no such algorithm, or it cannot do what is asked for.
    """
    if name not in DECIDERS:
        close = difflib.get_close_matches(name, DECIDERS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ConfigError(f"there is no decider {name!r}, only {', '.join(DECIDERS)}{hint}")
    module, _, kind = DECIDERS[name].partition(":")
    made: Decider = getattr(import_module(module), kind)(
        task, policy=policy, radius=radius, order=order, budget=budget
    )
    return made
