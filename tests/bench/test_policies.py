from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from safetest_gym.bench.experiment import Row
from safetest_gym.bench.policies import Subject, failing_subject, note_policies


class _Fuzzer:
    """Sees policies of at most 50 steps fail; a policy is its number of steps here."""

    def __init__(self, task: object, policy: Any, **_: object) -> None:
        self._steps = policy

    def run(self, count: int) -> _Fuzzer:
        return self

    def unsafe(self) -> Sequence[str]:
        return ["a run"] if self._steps <= 50 else []


def _chosen(monkeypatch: pytest.MonkeyPatch, lengths: list[int]) -> Subject:
    monkeypatch.setattr("safetest_gym.fuzzing.Fuzzer", _Fuzzer)
    monkeypatch.setattr(
        "safetest_gym.bench.policies.trained", lambda name, parameters, plan, folder: plan[0]
    )
    return failing_subject("OneWayLine", {}, (lengths, 0), Path())


def test_the_policy_under_test_is_the_longest_trained_one_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert _chosen(monkeypatch, [200, 50, 20]).steps == 50


def test_where_none_fails_it_is_the_longest_trained_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _chosen(monkeypatch, [200, 100]).steps == 200


def test_results_tell_how_long_each_task_s_policies_were_trained() -> None:
    rows = [
        Row({"task": "A", "seed": 0, "steps": [200, 50]}, {"steps": 50}),
        Row({"task": "A", "seed": 1, "steps": [200, 50]}, {"steps": 200}),
        Row({"task": "B", "seed": 0, "steps": [200, 50]}, {"steps": 50}),
        Row({"task": "C", "seed": 0, "steps": [200, 50]}, None),
    ]
    assert note_policies(rows).endswith("(A 50, 200; B 50)")
