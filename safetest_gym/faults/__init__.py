"""Faults and bugs of policies: analysis, testing objectives, oracles and the fault store."""

from safetest_gym.faults.analysis import Direction, FaultAnalysis, find_faults
from safetest_gym.faults.exchange import (
    read_csv,
    read_jsonl,
    write_csv,
    write_jsonl,
    write_start_states,
)
from safetest_gym.faults.fault import Fault
from safetest_gym.faults.store import Added, Chunk, Event, FaultStore, StoredFault

__all__ = [
    "Added",
    "Chunk",
    "Direction",
    "Event",
    "Fault",
    "FaultAnalysis",
    "FaultStore",
    "StoredFault",
    "find_faults",
    "read_csv",
    "read_jsonl",
    "write_csv",
    "write_jsonl",
    "write_start_states",
]
