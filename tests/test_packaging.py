"""What is installed is what the checkout holds."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
LINKED = {"safetest_gym/envs": "envs", "safetest_gym/callbacks": "callbacks"}
NAMES = {"PIL": "pillow", "sklearn": "scikit-learn"}
"""Import names that differ from the names packages are installed by."""
OPTIONAL = {"dd", "momba", "ray", "stormpy"}


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)


def _package_folders() -> list[Path]:
    roots = [ROOT / "safetest_gym", *(ROOT / folder for folder in LINKED.values())]
    return [file.parent for root in roots for file in root.rglob("__init__.py")]


def _import_name(folder: Path) -> str:
    relative = folder.relative_to(ROOT)
    if relative.parts[0] != "safetest_gym":
        relative = Path("safetest_gym") / relative
    return ".".join(relative.parts)


def _modules() -> list[Path]:
    roots = [ROOT / "safetest_gym", *(ROOT / folder for folder in LINKED.values())]
    return [file for root in roots for file in root.rglob("*.py")]


def test_every_package_directory_is_listed_and_no_other(settings: dict[str, Any]) -> None:
    found = {_import_name(folder) for folder in _package_folders()}
    assert set(settings["tool"]["setuptools"]["packages"]) == found


def test_every_module_lies_in_a_package() -> None:
    strays = [module for module in _modules() if not (module.parent / "__init__.py").exists()]
    assert strays == []


@pytest.mark.parametrize(("link", "target"), LINKED.items())
def test_the_faces_are_links_to_the_root(link: str, target: str) -> None:
    path = ROOT / link
    assert path.is_symlink()
    assert path.resolve() == ROOT / target


def test_every_import_is_a_declared_dependency(settings: dict[str, Any]) -> None:
    declared = {
        canonicalize_name(Requirement(text).name) for text in settings["project"]["dependencies"]
    }
    for module in _modules():
        for name in _imported(module):
            if name in sys.stdlib_module_names or name in OPTIONAL or name == "safetest_gym":
                continue
            assert canonicalize_name(NAMES.get(name, name)) in declared, f"{module}: {name}"


def _imported(module: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module.partition(".")[0])
    return names


def test_the_pinned_versions_satisfy_what_is_declared(settings: dict[str, Any]) -> None:
    pins = _pins()
    project = settings["project"]
    extras = project["optional-dependencies"]
    for text in [*project["dependencies"], *(line for extra in extras.values() for line in extra)]:
        requirement = Requirement(text)
        version = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement} excludes {version}"


def _pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pins.items()}


def test_no_version_is_pinned_with_a_build_of_one_machine() -> None:
    assert not any("+" in version for version in _pins().values())


def test_the_readme_installs_torch_at_the_pinned_version_first() -> None:
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    installing = [block for block in blocks if "pip install" in block]
    assert len(installing) == 2
    for block in installing:
        installs = re.findall(r"pip install (.*?) &&", block)
        assert installs[0] == "-c constraints.txt torch"


def test_the_wheel_holds_the_faces_inside_the_package(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    names = _build_wheel(tmp_path)
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"safetest_gym"}
    for package in settings["tool"]["setuptools"]["packages"]:
        assert f"{package.replace('.', '/')}/__init__.py" in names
    assert "safetest_gym/py.typed" in names
    assert "safetest_gym/reports/templates/page.html" in names


def _build_wheel(folder: Path) -> list[str]:
    code = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "safetest_gym", *LINKED.values()):
        (source / name).symlink_to(ROOT / name)
    subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=source, check=True, capture_output=True
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()
