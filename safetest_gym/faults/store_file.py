"""The SQLite file under a fault store: opened once per process, every error typed."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from safetest_gym.errors import StoreError
from safetest_gym.faults.schema import SCHEMA, VERSION

__all__ = ["StoreFile", "address_to_read"]

_BUSY_SECONDS = 60.0


class StoreFile:
    """A connection to the file at ``path``, which is made where there is none.

    Where file or folder may not be written, what is there can still be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._owner = -1
        self._inherited: list[sqlite3.Connection] = []  # a fork must not even close them

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        if self._connection is not None and self._owner == os.getpid():
            self._connection.close()
            self._connection = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection."""
        try:
            yield self._opened()
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}") from None

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The connection, in a transaction that is on disk at the end, or never was."""
        with self.reading() as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # a full disk has ended it already
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                raise

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None:
            if self._owner == os.getpid():
                return self._connection
            self._inherited.append(self._connection)
        try:
            self._connection = _connect(self.path)
        except sqlite3.Error as error:
            where = "" if self.path.parent.is_dir() else f" (there is no folder {self.path.parent})"
            raise StoreError(
                f"{self.path} cannot be used as a fault store: {error}{where}"
            ) from None
        self._owner = os.getpid()
        return self._connection


def _connect(path: Path) -> sqlite3.Connection:
    may_write = not path.exists() or _is_writable(path)
    address = str(path) if may_write else address_to_read(path)
    connection = sqlite3.connect(
        address, timeout=_BUSY_SECONDS, isolation_level=None, uri=not may_write
    )
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        if not _tables(connection):
            _make_tables(connection)
        _check(connection, path)
    except BaseException:
        connection.close()  # at once: an open one keeps its locks
        raise
    return connection


def _is_writable(path: Path) -> bool:
    """May file and folder be written? SQLite needs both, even to read a file that is in use."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def address_to_read(path: Path) -> str:
    """The URI that SQLite opens to read only, without writing beside the file if it may not."""
    address = f"file:{quote(str(path.resolve()))}?mode=ro"
    journal = path.with_name(f"{path.name}-wal")
    return address if journal.exists() or _is_writable(path) else f"{address}&immutable=1"


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}


def _make_tables(connection: sqlite3.Connection) -> None:
    _keep_journal(connection)
    connection.execute("BEGIN IMMEDIATE")
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute("INSERT OR IGNORE INTO about VALUES ('version', ?)", (VERSION,))
    connection.execute("COMMIT")


def _keep_journal(connection: sqlite3.Connection) -> None:
    """Write ahead; where several processes begin at once, this alone does not wait by itself."""
    end = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse other programs' databases, and stores of another format."""
    row = None
    if {"about", "tasks", "faults", "history", "chunks"} <= _tables(connection):
        row = connection.execute("SELECT value FROM about WHERE key = 'version'").fetchone()
    if row is None:
        raise StoreError(f"{path} is a database of another program, not a fault store")
    if row[0] != VERSION:
        raise StoreError(
            f"{path} has format {row[0]}, this program writes format {VERSION}; "
            "export it with the program that wrote it"
        )
