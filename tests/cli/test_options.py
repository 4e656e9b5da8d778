from __future__ import annotations

import pytest
import typer

from safetest_gym.cli.options import join_constants, read_constants


@pytest.mark.parametrize(
    "arguments",
    [
        ["m.jani", "--const", "K=2", "--const", "N=3", "--json"],
        ["m.jani", "--const", "K=2", "N=3", "--json"],
    ],
)
def test_constants_may_follow_one_option_or_repeat_it(arguments: list[str]) -> None:
    joined = join_constants(arguments)
    assert joined == ["m.jani", "--const", "K=2", "--const", "N=3", "--json"]


def test_a_model_after_a_constant_stays_the_model() -> None:
    arguments = ["--const", "K=2", "m.jani"]
    assert join_constants(arguments) == arguments


def test_a_constant_s_value_may_look_like_anything() -> None:
    assert join_constants(["--const", "--json", "K=2"]) == [
        "--const",
        "--json",
        "--const",
        "K=2",
    ]


def test_values_are_read_by_their_kind() -> None:
    values = read_constants(["N=3", "p=0.25", "fair=true", "open=false", "low=-4"])
    assert values == {"N": 3, "p": 0.25, "fair": True, "open": False, "low": -4}
    assert [type(value) for value in values.values()] == [int, float, bool, bool, int]


def test_one_text_may_hold_several_constants() -> None:
    assert read_constants(["N=3, K=2"]) == {"N": 3, "K": 2}


@pytest.mark.parametrize(
    ("texts", "part"),
    [
        (["N"], "expected NAME=VALUE, got 'N'"),
        (["=3"], "expected NAME=VALUE, got '=3'"),
        (["N=three"], "N must be a number, true or false, got 'three'"),
        (["N=1", "N=2"], "N is given twice"),
    ],
)
def test_a_bad_constant_is_a_usage_error(texts: list[str], part: str) -> None:
    with pytest.raises(typer.BadParameter, match=part):
        read_constants(texts)
