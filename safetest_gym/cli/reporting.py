"""How every command ends: exit codes, and errors told without a traceback."""

from __future__ import annotations

import functools
import json
import math
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import Any, ParamSpec

import typer

from safetest_gym.errors import LimitError, SafetestError

__all__ = ["Exit", "print_error", "print_json", "print_table", "reports_errors"]

_P = ParamSpec("_P")


class Exit(IntEnum):
    """Exit codes of all commands."""

    DONE = 0
    FOUND = 1
    BAD_INPUT = 2
    LIMIT = 3
    DEFECT = 70
    INTERRUPTED = 130


def print_error(error: BaseException | str) -> None:
    """Write one line per error to standard error; groups are taken apart."""
    for line in _lines(error):
        print(f"error: {line}", file=sys.stderr)


def print_json(data: Mapping[str, object]) -> None:
    """Write one object, on one line, to standard output; what is no number becomes null."""
    print(json.dumps(_finite(data), allow_nan=False))


def print_table(title: str, rows: Mapping[str, Any]) -> None:
    """Write names and values to standard output."""
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in rows.items():
        table.add_row(name.replace("_", " "), _cell(value))
    Console(markup=False, highlight=False).print(title, table, sep="\n")


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "–"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


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
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception:
            # Not left to Python, whose exit code would be that of --check.
            traceback.print_exc()
            print_error("this is a defect of safetest-gym; please report it")
            raise typer.Exit(Exit.DEFECT) from None

    return wrapped


def _finite(data: Any) -> Any:
    """JSON has neither infinity nor NaN."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, Mapping):
        return {name: _finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return data


_HINTS: tuple[tuple[type[OSError], str], ...] = (
    (PermissionError, " (give a place where you may read and write)"),
    (FileExistsError, " (a file is in the way of a folder; give another name)"),
    (NotADirectoryError, " (a file is in the way of a folder; give another name)"),
    (IsADirectoryError, " (it is a folder; give the name of a file)"),
)


def _hint(error: OSError) -> str:
    return next((hint for kind, hint in _HINTS if isinstance(error, kind)), "")


def _lines(error: BaseException | str) -> Iterator[str]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _lines(part)
    elif isinstance(error, MemoryError):
        yield "the memory is used up; a lower --limit may help"
    elif isinstance(error, OSError) and error.filename is not None:
        yield f"{error.filename}: {error.strerror}{_hint(error)}"
    else:
        yield str(error)
