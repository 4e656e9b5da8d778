from __future__ import annotations

import pytest

from safetest_gym.envs.rendering.blocksworld import support_of


@pytest.mark.parametrize(
    ("block", "code", "below"),
    [(1, 0, -1), (1, 1, -2), (1, 2, 0), (1, 3, 2), (0, 2, 1), (2, 2, 0), (2, 3, 1), (2, 4, 3)],
)
def test_position_codes_skip_the_block_itself(block: int, code: int, below: int) -> None:
    assert support_of(block, code) == below
