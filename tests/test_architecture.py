"""Imports point one way, modules stay small, and importing costs little."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "safetest_gym"
FACES = {"envs": ROOT / "envs", "callbacks": ROOT / "callbacks"}

FLOW = [
    {"errors", "replacing", "whole_numbers"},
    {"jani"},
    {"engine"},
    {"starts"},
    {"describe", "task"},
    {"policies"},
    {"fuzzing", "deciders", "faults"},
    {"repair", "verify"},
    {"campaign"},
    {"reports"},
    {*FACES},
    {"bench"},
    {"cli"},
]
"""The way data flows through the core; a part imports what stands before or beside it."""

LOADED_WHEN_USED = {
    "gurobipy",
    "gymnasium",
    "highspy",
    "ray",
    "sb3_contrib",
    "sklearn",
    "stable_baselines3",
    "torch",
    "xgboost",
}
ABOVE_THE_FACES = "bench"
"""The package that stands above the core and both faces, so it may import these."""
LEARNERS = {CORE / "policies" / name for name in ("encoder.py", "maskable_dqn.py")}
"""Modules that extend a learner, so they need it; their packages load them when used."""
REGISTERING = {"gymnasium", "numpy"}
"""What importing the package costs, because it registers the environment ids."""
MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 8


@dataclass(frozen=True)
class Import:
    """One imported module; ``late`` inside a function, ``typing`` for type checkers only."""

    module: str
    late: bool
    typing: bool

    @property
    def top(self) -> str:
        """Name of the package as a whole."""
        return self.module.partition(".")[0]


def _core_modules() -> list[Path]:
    return [path for path in CORE.rglob("*.py") if path.relative_to(CORE).parts[0] not in FACES]


def _our_modules() -> list[Path]:
    others = [ROOT / name for name in ("tests", "examples", *FACES)]
    return [*_core_modules(), *(path for folder in others for path in folder.rglob("*.py"))]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _imports(path: Path) -> tuple[Import, ...]:
    return tuple(_walk(_tree(path), late=False, typing=False))


def _walk(node: ast.AST, *, late: bool, typing: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, late, typing)
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        if module == "safetest_gym":
            for alias in node.names:
                yield Import(f"safetest_gym.{alias.name}", late, typing)
        else:
            yield Import(module, late, typing)
    late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    typing = typing or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, late=late, typing=typing)


def test_the_core_imports_no_face() -> None:
    faces = tuple(f"safetest_gym.{face}" for face in FACES)
    assert [
        f"{_name(path)} imports {used.module}"
        for path in _core_modules()
        if path.parent != CORE / ABOVE_THE_FACES
        for used in _imports(path)
        if used.module.startswith(faces)
    ] == []


def test_the_core_loads_heavy_packages_only_when_used() -> None:
    assert [
        f"{_name(path)} imports {used.module} at once"
        for path in set(_core_modules()) - LEARNERS
        for used in _imports(path)
        if used.top in LOADED_WHEN_USED and not used.late and not used.typing
    ] == []


def test_only_the_kernels_import_numba() -> None:
    assert [
        _name(path)
        for path in _our_modules()
        if not _is_kernel(path) and any(used.top == "numba" for used in _imports(path))
    ] == []


def test_imports_follow_the_flow_of_data() -> None:
    rank = {part: level for level, parts in enumerate(FLOW) for part in parts}
    backwards: list[str] = []
    for path in _core_modules():
        own = path.relative_to(CORE).parts[0].removesuffix(".py")
        if own in ("__init__", "__main__"):
            continue
        for used in _imports(path):
            if used.top == "safetest_gym" and not used.typing:
                part = used.module.split(".")[1]
                if part != "__version__" and rank[part] > rank[own]:
                    backwards.append(f"{_name(path)} imports {used.module}")
    assert backwards == []


def test_imports_are_absolute() -> None:
    assert [
        _name(path)
        for path in _our_modules()
        if any(used.module.startswith(".") for used in _imports(path))
    ] == []


def test_modules_are_small() -> None:
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in _our_modules()}
    assert [_name(path) for path, count in lines.items() if count > MAX_MODULE_LINES] == []


def test_modules_are_named_for_what_they_do() -> None:
    empty_names = {"common", "helpers", "misc", "utils"}
    named_so = [path for path in _our_modules() if empty_names & {path.stem, path.parent.name}]
    assert [_name(path) for path in named_so] == []


def test_functions_fit_on_a_screen() -> None:
    assert [
        f"{_name(path)}:{function.lineno} {function.name}"
        for path, function in _functions()
        if (function.end_lineno or 0) - function.lineno >= MAX_FUNCTION_LINES
    ] == []


def test_functions_take_few_parameters() -> None:
    assert [
        f"{_name(path)}:{function.lineno} {function.name}"
        for path, function in _functions()
        if _num_parameters(function) > MAX_PARAMETERS and not _is_kernel(path)
    ] == []


def _is_kernel(path: Path) -> bool:
    return "kernels" in path.parts


def _functions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in _our_modules():
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def _num_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    return sum(argument.arg not in ("self", "cls") for argument in given)


def _loaded_by(statement: str) -> set[str]:
    """Top-level modules loaded after a statement in a fresh interpreter."""
    code = f"{statement}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = _loaded_by("import safetest_gym")
    assert not loaded & ((LOADED_WHEN_USED | {"llvmlite", "numba", "rich", "typer"}) - REGISTERING)


def test_importing_any_package_of_the_core_loads_no_learner_and_no_solver() -> None:
    folders = [path.parent for path in _core_modules() if path.name == "__init__.py"]
    names = [".".join(folder.relative_to(ROOT).parts) for folder in folders]
    loaded = _loaded_by("\n".join(f"import {name}" for name in names))
    assert not loaded & (LOADED_WHEN_USED - REGISTERING)


def test_loading_the_reader_needs_no_machine_code() -> None:
    loaded = _loaded_by("import safetest_gym.jani")
    assert not loaded & ((LOADED_WHEN_USED | {"llvmlite", "numba"}) - REGISTERING)


def test_the_reader_computes_with_no_arrays() -> None:
    assert [
        _name(path)
        for path in (CORE / "jani").rglob("*.py")
        if any(used.top == "numpy" for used in _imports(path))
    ] == []


def test_loading_tasks_needs_no_learner_and_no_solver() -> None:
    loaded = _loaded_by("from safetest_gym import load_task")
    assert not loaded & (LOADED_WHEN_USED - REGISTERING)


def test_help_loads_no_command_s_machinery() -> None:
    statement = (
        "from safetest_gym.cli.app import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as end: assert not end.code"
    )
    heavy = (LOADED_WHEN_USED | {"llvmlite", "numba"}) - REGISTERING
    assert not _loaded_by(statement) & heavy
