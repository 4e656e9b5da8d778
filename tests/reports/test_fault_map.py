from __future__ import annotations

from safetest_gym.reports.fault_file import FaultList, FaultRow
from safetest_gym.reports.fault_map import map_data, telling_variables
from safetest_gym.reports.setting import setting_of
from tests.reports.folders import Case


def _faults(*pairs: tuple[list[float], list[float]]) -> FaultList:
    rows = [
        FaultRow(n, before, "a", after, [], 0, 0, 1, n % 2 == 0, ())
        for n, (before, after) in enumerate(pairs)
    ]
    names = [f"v{i}" for i in range(len(pairs[0][0]))]
    return FaultList("f.db", "task", "digest", names, rows)


def test_variables_that_the_bad_action_changes_are_telling() -> None:
    faults = _faults(([9, 0, 5, 1], [9, 1, 5, 2]), ([8, 2, 5, 3], [8, 3, 5, 4]))
    assert telling_variables(faults) == [1, 3]


def test_what_is_the_same_in_all_faults_is_not_telling() -> None:
    faults = _faults(([0, 1, 7], [1, 1, 8]), ([1, 2, 7], [2, 2, 8]))
    assert telling_variables(faults) == [0, 1]


def test_every_fault_is_on_the_map_with_its_state() -> None:
    data = map_data(_faults(([0, 1], [1, 1]), ([5, 2], [5, 3])), None)
    assert data is not None
    assert data["states"] == [[0, 1], [5, 2]]
    assert data["fixed"] == [1, 0]


def test_a_known_task_gives_the_whole_domain(case: Case) -> None:
    faults = FaultList("f.db", "bird", case.task.digest, ["bird_x", "bird_y"], [])
    assert map_data(faults, None) is None
    data = map_data(_faults(([0, 1], [1, 1])), setting_of(case.task))
    assert data is not None
    assert data["variables"] == [{"name": "v0"}, {"name": "v1"}]
    rows = _faults(([0, 1], [1, 1])).faults
    named = FaultList("f.db", "bird", case.task.digest, ["bird_x", "bird_y"], rows)
    known = map_data(named, setting_of(case.task))
    assert known is not None
    assert known["variables"][1] == {"name": "bird_y", "domain": [0, 9]}


def test_one_variable_makes_no_map() -> None:
    assert map_data(_faults(([0], [1])), None) is None
