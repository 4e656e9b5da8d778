"""Conditions on many states at once, against one by one."""

from __future__ import annotations

import numpy as np
import pytest

from safetest_gym.engine.evaluation import evaluate
from safetest_gym.errors import EvaluationError
from safetest_gym.jani.depth import deep_recursion
from safetest_gym.starts.bulk import holds_in
from safetest_gym.starts.tightening import tightened
from tests.starts.building import Types, condition_of

TYPES: Types = {"x": (-3, 3, "real"), "y": (-3, 3, "real"), "n": (-4, 4), "b": "bool"}
FUNCTIONS = (
    "sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "acot", "asec", "acsc",
    "sinh", "cosh", "tanh", "coth", "sech", "csch", "asinh", "acosh", "atanh", "acoth", "asech",
    "acsch", "abs",
)  # fmt: skip
TEXTS = [
    *(f"{function}(x) <= 0.3 * y" for function in FUNCTIONS),
    *(f"{function}(x * y) + n <= 1" for function in ("floor", "ceil", "trc", "sgn")),
    "x / y <= 1 - 1 / n",
    "x * y - n < 0.5 and not (b and x < y)",
    "pow(x, 2) + pow(y, n) < 2",
    "b or pow(x, y) < 1",
    "log(x + 3, y) > 0.5",
    "min(x, y, n) < max(x, 0) - 1",
    "n % 3 == 1 and x <= y",
    "(x if b else y) <= (x * x if y < 0 else n)",
    "n == 2 => (x != y and x <= 0.25)",
    "2 * n - 3 <= 1 or x + y <= 0",
]


@pytest.mark.parametrize("text", TEXTS)
def test_bulk_answers_are_those_of_the_evaluator(text: str) -> None:
    model, condition = condition_of(TYPES, text)
    rng = np.random.default_rng(4)
    states = np.column_stack(
        [*rng.uniform(-3, 3, (2, 300)), rng.integers(-4, 5, 300), rng.integers(0, 2, 300)]
    )
    states[:20, :2] = np.round(states[:20, :2])
    with deep_recursion():
        _, formula = tightened(model.variables, condition)
    answers = holds_in(formula, states)
    for state, answer in zip(states.tolist(), answers.tolist(), strict=True):
        kinds = (float, float, int, bool)
        values = [kind(value) for kind, value in zip(kinds, state, strict=True)]
        try:
            expected = evaluate(condition, dict(zip(model.variables, values, strict=True)))
        except EvaluationError:
            expected = False
        assert answer is bool(expected), state
