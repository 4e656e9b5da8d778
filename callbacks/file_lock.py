"""A lock on an open file that no other process, nor another opening of it, can have too."""

from __future__ import annotations

import sys
from typing import IO

__all__ = ["try_lock"]


def try_lock(file: IO[str]) -> bool:
    """Lock until the file is closed or the process ends, however it does; False if taken."""
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
