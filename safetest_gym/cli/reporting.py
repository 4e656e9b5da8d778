"""How every command ends: exit codes, and errors told without a traceback."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import ParamSpec

import typer

from safetest_gym.errors import LimitError, SafetestError

__all__ = ["Exit", "print_error", "print_json", "reports_errors"]

_P = ParamSpec("_P")


class Exit(IntEnum):
    """Exit codes of all commands."""

    DONE = 0
    BAD_INPUT = 2
    LIMIT = 3
    INTERRUPTED = 130


def print_error(error: BaseException | str) -> None:
    """Write one line per error to standard error; groups are taken apart."""
    for line in _lines(error):
        print(f"error: {line}", file=sys.stderr)


def print_json(data: Mapping[str, object]) -> None:
    """Write one object, on one line, to standard output."""
    print(json.dumps(data))


def reports_errors(command: Callable[_P, None]) -> Callable[_P, None]:
    """Turn what a command raises into a message and an exit code."""

    @functools.wraps(command)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except BrokenPipeError:
            raise  # the reader of our output left; typer ends quietly
        except (LimitError, MemoryError) as error:
            print_error(error)
            raise typer.Exit(Exit.LIMIT) from None
        except (SafetestError, OSError) as error:
            print_error(error)
            raise typer.Exit(Exit.BAD_INPUT) from None
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(Exit.INTERRUPTED) from None

    return wrapped


def _lines(error: BaseException | str) -> Iterator[str]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _lines(part)
    elif isinstance(error, MemoryError):
        yield "the memory is used up; a lower --limit may help"
    elif isinstance(error, OSError) and error.filename is not None:
        yield f"{error.filename}: {error.strerror}"
    else:
        yield str(error)
