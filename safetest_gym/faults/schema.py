"""Tables of the fault store."""

from __future__ import annotations

__all__ = ["SCHEMA", "VERSION"]

VERSION = "1"

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """
    CREATE TABLE IF NOT EXISTS tasks (
        digest TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        variables TEXT NOT NULL,
        actions TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS faults (
        id INTEGER PRIMARY KEY,
        task TEXT NOT NULL REFERENCES tasks (digest),
        state TEXT NOT NULL,
        action TEXT NOT NULL,
        outcome TEXT NOT NULL,
        alternatives TEXT NOT NULL,
        run INTEGER NOT NULL,
        step INTEGER NOT NULL,
        start INTEGER NOT NULL,
        count INTEGER NOT NULL,
        radius REAL,
        fixed INTEGER NOT NULL,
        UNIQUE (task, state, action)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS history (
        id INTEGER PRIMARY KEY,
        fault INTEGER NOT NULL REFERENCES faults (id),
        what TEXT NOT NULL,
        at REAL NOT NULL,
        policy TEXT NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS history_of ON history (fault, id)",
    """
    CREATE TABLE IF NOT EXISTS chunks (
        job TEXT NOT NULL,
        number INTEGER NOT NULL,
        result TEXT NOT NULL,
        PRIMARY KEY (job, number)
    )
    """,
)
"""States and outcomes are JSON lists in the order of the task's variables."""
