from __future__ import annotations

import math
import multiprocessing
import os
import pickle
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safetest_gym.deciders.verdict import Verdict
from safetest_gym.engine import machine
from safetest_gym.errors import StoreError
from safetest_gym.faults import Chunk, Fault, FaultStore
from safetest_gym.faults.store_file import address_to_read
from safetest_gym.policies import Interface, RandomPolicy, TablePolicy
from safetest_gym.task import Task, load_task
from tests.oracles.random_tasks import random_task


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    directory = tmp_path_factory.mktemp("code")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "cache_directory", lambda: directory)
        yield


@pytest.fixture(scope="module")
def task() -> Task:
    return random_task(1)


def fault(state: int, action: int = 0, outcome: int = 12, alternatives: Any = (1,)) -> Fault:
    return Fault(
        np.array([state]), action, np.array([outcome]), alternatives, 3, 2, Verdict.SAFE, 4, 1.0
    )


def plain(found: Fault) -> Any:
    return (
        found.state.tolist(),
        found.action,
        found.outcome.tolist(),
        found.alternatives,
        found.run,
        found.step,
        found.start,
        found.count,
        found.radius,
    )


def whats(entry: Any) -> list[tuple[str, str]]:
    return [(event.what, event.policy) for event in entry.history]


def test_faults_come_back_as_they_were_stored(tmp_path: Path, task: Task) -> None:
    store = FaultStore(tmp_path / "s.db")
    given = [fault(1), fault(2, 1, 13, (0, 2)), fault(1, 2)]
    store.add(task, given, policy="p1")
    found = FaultStore(tmp_path / "s.db").faults(task)
    assert [plain(entry.fault) for entry in found] == [plain(f) for f in given]


def test_real_values_come_back_bit_for_bit(tmp_path: Path, data: Path) -> None:
    glider = load_task(data / "glider.jani", failure="height <= 0")
    state = np.array([0.1 + 0.2, 1 / 3])
    given = Fault(state, 0, state - 0.1, (1,))
    store = FaultStore(tmp_path / "s.db")
    store.add(glider, [given])
    assert plain(store.faults(glider)[0].fault) == plain(given)


def test_a_state_and_action_has_one_row_with_a_history(tmp_path: Path, task: Task) -> None:
    times = iter(range(100))
    store = FaultStore(tmp_path / "s.db", clock=lambda: float(next(times)))
    first = store.add(task, [fault(1), fault(2)], policy="p1")
    again = store.add(task, [fault(1), fault(3)], policy="p2")
    store.add(task, [fault(1)], policy="p2")
    assert (first.new, first.known) == ((0, 1), 0)
    assert (again.new, again.known) == ((1,), 1)
    found = store.faults(task)
    assert len(found) == 3
    assert whats(found[0]) == [("found", "p1"), ("seen", "p2")]
    assert [event.at for event in found[0].history] == sorted(
        event.at for event in found[0].history
    )


def test_alternatives_that_a_budget_hid_are_added_when_known(tmp_path: Path, task: Task) -> None:
    store = FaultStore(tmp_path / "s.db")
    given = [fault(1, alternatives=()), fault(1, alternatives=(1, 2)), fault(1, alternatives=())]
    for one in given:
        store.add(task, [one])
    assert [plain(entry.fault) for entry in store.faults(task)] == [plain(given[1])]


def test_a_policy_that_takes_a_safe_action_fixes_a_fault_and_a_relapse_reopens_it(
    tmp_path: Path,
) -> None:
    task = random_task(1)
    mask = task.applicable_many(task.initial.enumerate(100))
    row = int(np.flatnonzero(mask.sum(axis=1) >= 2)[0])
    bad, good = np.flatnonzero(mask[row])[:2].tolist()
    state = np.array([row])
    store = FaultStore(tmp_path / "s.db")
    store.add(task, [Fault(state, bad, state, (good,))], policy="old")

    def table(action: int) -> TablePolicy:
        return TablePolicy(state.reshape(1, 1), np.array([action]), Interface.of(task))

    assert store.update(task, table(good), "new") == (1, 0)
    assert store.count(task, fixed=True) == 1
    assert store.update(task, table(good), "new") == (1, 0)
    assert store.update(task, table(bad), "newer") == (0, 1)
    assert store.faults(task, fixed=True) == []
    assert whats(store.faults(task)[0]) == [
        ("found", "old"),
        ("fixed", "new"),
        ("reopened", "newer"),
    ]
    store.update(task, table(good), "newest")
    assert store.add(task, [Fault(state, bad, state, (good,))], policy="worst").reopened == 1
    assert store.count(task, fixed=False) == 1


def test_tasks_do_not_mix(tmp_path: Path, task: Task) -> None:
    store = FaultStore(tmp_path / "s.db")
    store.add(task, [fault(1)])
    assert store.faults(random_task(2)) == []
    assert store.count(random_task(2)) == 0


def test_a_chunk_is_done_exactly_when_its_faults_are_stored(tmp_path: Path, task: Task) -> None:
    store = FaultStore(tmp_path / "s.db")
    store.add(task, [fault(1)], chunk=Chunk("job", 4, {"runs": 7}))
    broken = Fault(np.array([1]), 99, np.array([1]), ())
    with pytest.raises(IndexError):
        store.add(task, [fault(2), broken], chunk=Chunk("job", 5, {}))
    assert store.chunks("job") == {4: {"runs": 7}}
    assert store.chunks("other") == {}
    assert store.count(task) == 1


def _write(store: FaultStore, task: Task, worker: int) -> None:
    for number in range(20):
        store.add(task, [fault(number % 10, worker % 3), fault(number % 10)], policy=str(worker))


def test_several_processes_may_write(tmp_path: Path, task: Task) -> None:
    store = FaultStore(tmp_path / "s.db")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write, args=(store, task, n)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert store.count(task) == 30


def test_a_store_that_travelled_still_works(tmp_path: Path, task: Task) -> None:
    store = pickle.loads(pickle.dumps(FaultStore(tmp_path / "s.db", clock=_constant)))
    store.add(task, [fault(1)])
    assert store.count(task) == 1


def _constant() -> float:
    return 1.0


def test_a_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(b"not a database, but long enough to be one " * 40)
    with pytest.raises(StoreError, match=r"s\.db cannot be used"):
        FaultStore(path)


def test_a_store_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    FaultStore(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE about SET value = '99' WHERE key = 'version'")
    connection.close()
    with pytest.raises(StoreError, match="format 99"):
        FaultStore(path)


def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE faults (mine)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="of another program"):
        FaultStore(path)
    assert path.read_bytes() == before


def test_a_refused_file_is_not_kept_locked(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    FaultStore(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE about SET value = '99' WHERE key = 'version'")
        connection.commit()
    with pytest.raises(StoreError):
        FaultStore(path)
    with closing(sqlite3.connect(path, timeout=0)) as connection:
        connection.execute("BEGIN EXCLUSIVE")


def test_a_full_disk_is_told_as_such_and_the_store_goes_on(tmp_path: Path, task: Task) -> None:
    store = FaultStore(tmp_path / "s.db")
    with store._file.reading() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="full"):
            store.add(task, [fault(state) for state in range(2000)])
        connection.execute("PRAGMA max_page_count = 100000")
    assert store.count(task) == 0
    assert len(store.add(task, [fault(1)]).new) == 1


def test_a_damaged_store_raises_errors_of_ours(tmp_path: Path, task: Task) -> None:
    store = FaultStore(tmp_path / "s.db")
    store.add(task, [fault(1)])
    with store._file.reading() as connection:
        connection.execute("UPDATE faults SET state = '[1, 2, 3]'")
        with pytest.raises(StoreError, match="does not fit"):
            store.faults(task)
        connection.execute("DROP TABLE history")
        connection.execute("DROP TABLE faults")
    for read in (store.faults, store.count):
        with pytest.raises(StoreError, match=r"s\.db: no such table"):
            read(task)


def test_a_store_that_may_not_be_written_can_be_read(
    tmp_path: Path, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultStore(tmp_path / "s.db") as store:
        store.add(task, [fault(1)])
    monkeypatch.setattr(os, "access", lambda *_: False)
    with FaultStore(tmp_path / "s.db") as store:
        assert len(store.faults(task)) == 1
        with pytest.raises(StoreError, match="readonly"):
            store.add(task, [fault(2)])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.db"]
    assert address_to_read(tmp_path / "s.db").endswith("&immutable=1")


def test_many_may_begin_a_store_at_the_same_time(tmp_path: Path) -> None:
    barrier = threading.Barrier(8)

    def begin(path: Path) -> None:
        barrier.wait(30)
        FaultStore(path).close()

    with ThreadPoolExecutor(8) as threads:
        for number in range(10):
            list(threads.map(begin, [tmp_path / f"{number}.db"] * 8))


def test_a_fork_leaves_the_connection_of_its_parent_alone(
    tmp_path: Path, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FaultStore(tmp_path / "s.db")
    with store._file.reading() as before:
        monkeypatch.setattr(os, "getpid", lambda: -2)
        store.add(task, [fault(1)])
        with store._file.reading() as after:
            assert after is not before
        assert before.execute("SELECT count(*) FROM faults").fetchone() == (1,)


def test_the_policy_asked_may_have_no_fault(tmp_path: Path, task: Task) -> None:
    store = FaultStore(tmp_path / "s.db")
    assert store.update(task, RandomPolicy(Interface.of(task)), "p") == (0, 0)
    assert math.isinf(Fault(np.array([1]), 0, np.array([1]), ()).radius)
