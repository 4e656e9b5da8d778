"""Two policies side by side: where they part, and what that changes."""

from __future__ import annotations

import numpy as np

from safetest_gym.policies import evaluate
from safetest_gym.repair.comparison import Comparison, compare_policies
from safetest_gym.repair.report import side_effects
from tests.campaign.test_debugging import line, net
from tests.cli.test_faults import network


def _compare(seed: int) -> Comparison:
    other = network(line(), seed)
    pair = evaluate(net(), line(), 60, 2), evaluate(other, line(), 60, 2)
    return compare_policies(line(), (net(), other), pair)


def test_a_policy_does_not_differ_from_itself() -> None:
    found = _compare(6)
    assert found.starts == 60
    assert found.diverging == 0
    assert found.first == ()
    assert found.goal_lost == found.goal_won == found.made_safe == found.made_unsafe == 0


def test_the_first_different_decisions_are_named_with_their_states() -> None:
    found = _compare(2)
    assert found.certain
    assert found.made_unsafe > 0
    assert found.diverging >= len(found.first) > 0
    steps = [entry.step for entry in found.first]
    assert steps == sorted(steps)
    for entry in found.first:
        mask = line().applicable(entry.state)[None]
        assert net().actions(entry.state[None], mask)[0] == entry.before
        assert network(line(), 2).actions(entry.state[None], mask)[0] == entry.after
    data = found.as_dict(line())
    assert data["first"][0]["before"] in line().actions


def test_side_effects_count_what_became_better_and_worse() -> None:
    states = line().initial.sample(40, np.random.default_rng(0))
    masks = np.asarray(line().applicable_many(states))
    before, after = net(), network(line(), 2)
    safe = np.zeros_like(masks)
    safe[np.arange(40), after.actions(states, masks)] = True
    found = side_effects(before, after, states, masks, safe)
    assert found.better == found.changed > 0
    assert found.worse == 0
    assert found.as_dict()["changed"] == found.changed
    assert "for the better" in found.describe()
