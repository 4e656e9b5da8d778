"""The native form: what C code sees, what threads share, what pickles."""

from __future__ import annotations

import ctypes
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from safetest_gym.policies import NativePolicy, Policy, RandomPolicy, TablePolicy
from tests.oracles.policies import (
    ensemble,
    interface,
    random_masks,
    random_network,
    random_states,
    random_tree,
)

RNG = np.random.default_rng(0)
STATES = np.unique(random_states(RNG, 300, 4), axis=0)
MASKS = np.ones((len(STATES), 3), dtype=np.bool_)
NAMES = interface(4, 3)
POLICIES: list[Policy] = [
    random_network(RNG, (4, 20, 3), "tanh"),
    ensemble([random_tree(RNG, 4, 5, 1, i % 3) for i in range(9)], np.zeros(3), NAMES),
    TablePolicy(STATES, RNG.integers(3, size=len(STATES)), NAMES),
    RandomPolicy(NAMES, 7),
]


def _native(policy: Policy) -> NativePolicy:
    native = policy.native()
    assert native is not None
    return native


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_choose_follows_the_c_calling_convention(policy: Policy) -> None:
    native = _native(policy)
    pointers = ctypes.c_void_p, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_uint8)
    choose = ctypes.CFUNCTYPE(ctypes.c_int64, *pointers)(native.address)
    values, masks = STATES.astype(np.float64), random_masks(RNG, len(STATES), 3)
    if isinstance(policy, TablePolicy):
        masks = MASKS
    chosen = [
        choose(
            native.data_address,
            row.ctypes.data_as(pointers[1]),
            mask.view(np.uint8).ctypes.data_as(pointers[2]),
        )
        for row, mask in zip(values, masks, strict=True)
    ]
    assert chosen == policy.actions(STATES, masks).tolist()


def test_without_applicable_action_choose_gives_minus_one() -> None:
    from safetest_gym.engine.kernels.choose import choose_many_kernel

    for policy in POLICIES:
        native, out = _native(policy), np.empty(1, dtype=np.int64)
        states, mask = STATES[:1].astype(np.float64), np.zeros((1, 3), dtype=np.uint8)
        assert choose_many_kernel(native.address, native.data_address, states, mask, out) == 0
        assert out[0] == -1


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_a_pickled_native_form_chooses_alike(policy: Policy) -> None:
    from safetest_gym.policies.kernel_policy import policy_action_batch

    again = pickle.loads(pickle.dumps(policy.native()))
    wanted = policy.actions(STATES, MASKS)
    assert (policy_action_batch(again, STATES, MASKS) == wanted).all()


def test_threads_share_a_policy() -> None:
    for policy in POLICIES:
        wanted = policy.actions(STATES, MASKS).tolist()
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _, p=policy: p.actions(STATES, MASKS).tolist(), range(40)))
        assert all(actions == wanted for actions in found)


def test_one_compiled_kernel_serves_every_kind_and_size() -> None:
    from safetest_gym.engine.kernels.choose import choose_many_kernel

    for policy in POLICIES:
        policy.actions(STATES, MASKS)
    assert len(choose_many_kernel.signatures) == 1
