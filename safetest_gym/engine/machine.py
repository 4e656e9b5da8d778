"""Turn LLVM IR into functions in memory, through a cache of object code on disk.

The cache lives in the platform's cache directory. Entries are written to a temporary
file and renamed, so processes may share it; an entry that does not carry its own
checksum is compiled again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import platformdirs

from safetest_gym.errors import EngineError

__all__ = ["Machine", "cache_directory", "load_machine"]

LARGE = 350_000
"""Characters of IR above which a module is translated fast instead of well."""

_MAGIC = b"safetest-gym object 1\n"


def cache_directory() -> Path:
    """Where object code is kept; safe to delete at any time."""
    return Path(platformdirs.user_cache_dir("safetest-gym", appauthor=False)) / "code"


@dataclass(frozen=True, slots=True)
class Machine:
    """Functions in memory; the addresses are good while this object lives.

    Attributes:
        rows: the capacity for rows that the module asks for.
        from_cache: whether the code came from the disk.
    """

    addresses: dict[str, int]
    rows: int
    from_cache: bool
    _keep: object


def load_machine(
    key: Sequence[str], functions: Sequence[str], write: Callable[[], tuple[str, int]]
) -> Machine:
    """The functions of the module known by ``key``, compiled if the disk has none.

    Args:
        key: everything the module depends on, apart from versions and the processor.
        write: gives the module's IR and its row capacity.
    """
    name = _digest("\n".join([*key, _surroundings()]).encode())
    path = cache_directory() / f"{name}.o"
    cached = _read(path)
    if cached is not None:
        try:
            return _load(*cached, functions, from_cache=True)
        except (RuntimeError, EngineError):  # not an object of this platform: made anew below
            pass
    text, rows = write()
    code = _compile(text)
    _store(path, code, rows)
    return _load(code, rows, functions, from_cache=False)


@functools.cache
def _target() -> tuple[Any, str]:
    """The processor to compile for, and what tells it apart from others."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return (target, cpu, features), f"{target.triple} {cpu} {features}"


@functools.cache
def _surroundings() -> str:
    """Versions, processor, and the code that writes code."""
    sources = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        sources.update(path.read_bytes())
    version = ".".join(map(str, llvm.llvm_version_info))
    return f"{llvmlite.__version__} {version} {_target()[1]} {sources.hexdigest()}"


def _compile(text: str) -> bytes:
    """Object code of IR.

    The usual passes nearly double the time this takes and take a third off some functions;
    for large modules they would cost ten times as much, so these are translated cheaply.
    """
    (target, cpu, features), _ = _target()
    large = len(text) >= LARGE
    machine = target.create_target_machine(
        cpu=cpu, features=features, opt=0 if large else 1, jit=True, codemodel="jitdefault"
    )
    module = llvm.parse_assembly(text)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, options)
    if large:
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
    else:
        passes = builder.getModulePassManager()
    passes.run(module, builder)
    return bytes(machine.emit_object(module))


def _load(code: bytes, rows: int, functions: Sequence[str], *, from_cache: bool) -> Machine:
    _target()  # initializes LLVM
    host = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), host)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    addresses = {name: int(engine.get_function_address(name)) for name in functions}
    missing = [name for name, address in addresses.items() if not address]
    if missing:
        raise EngineError(f"the compiled code lacks {', '.join(missing)}")
    return Machine(addresses, rows, from_cache, engine)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read(path: Path) -> tuple[bytes, int] | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head, _, rest = data[len(_MAGIC) :].partition(b"\n")
    if not data.startswith(_MAGIC) or head.decode("ascii", "replace") != _digest(rest):
        return None
    facts, _, code = rest.partition(b"\n")
    return code, int(json.loads(facts)["rows"])


def _store(path: Path, code: bytes, rows: int) -> None:
    """Write an entry; a disk that cannot be written to only costs the next start time."""
    rest = json.dumps({"rows": rows}).encode() + b"\n" + code
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_MAGIC + _digest(rest).encode() + b"\n" + rest)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError:
        return
