"""Every code block of the documentation does what the page says it does.

Python blocks of a page run in order in one namespace, in a directory of their own. What a
page takes for granted (a model, a policy, a name) its preamble makes.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import typer.main
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN

from safetest_gym.cli.app import app
from safetest_gym.cli.app import main as run_command
from safetest_gym.cli.options import join_constants
from tests.docs.pages import PAGES, ROOT, Block, blocks, page_id, shell_commands
from tests.docs.preambles import PREAMBLES

COMMAND = "safetest-gym"
ABOUT_OTHERS = ("docs/recipes.md", "docs/comparison.md")
"""Pages that may show code of other tools, which is not installed here."""
MOST_STEPS = 4_000
"""Of training, whatever a page asks for, except in tutorials."""
LANGUAGES = ("", "json", "python", "sh", "text", "yaml")
GROUP = typer.main.get_command(app)


@pytest.fixture
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A directory with the files that readers of the repository have."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def _of(*languages: str) -> list[Path]:
    return [page for page in PAGES if any(block.language in languages for block in blocks(page))]


def _is_run(page: Path) -> bool:
    """Are the commands of this page run, not only looked at?"""
    return "tutorials" in page.parts or page.name == "quickstart.md"


def _train_little(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (DQN, MaskablePPO):

        def learn(
            self: Any, steps: int, *args: Any, _learn: Any = kind.learn, **options: Any
        ) -> Any:
            return _learn(self, min(steps, MOST_STEPS), *args, **options)

        monkeypatch.setattr(kind, "learn", learn)


def _run_python(text: str, name: str, line: int, names: dict[str, object]) -> None:
    """Line numbers in a traceback are those of the page."""
    exec(compile("\n" * (line - 1) + text, name, "exec"), names)


def _run_shell(command: str) -> None:
    words = shlex.split(command)
    if words[0] != COMMAND:
        return
    with pytest.raises(SystemExit) as end:
        run_command(words[1:])
    assert end.value.code in (0, None), command


@pytest.mark.parametrize("page", _of("python"), ids=page_id)
@pytest.mark.usefixtures("_folder")
def test_code_of_a_page_runs_from_top_to_bottom(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # dataclasses look there
    names = vars(module)
    if not _is_run(page):
        _train_little(monkeypatch)
    if page_id(page) in PREAMBLES:
        names.update(PREAMBLES[page_id(page)]())
    for block in blocks(page):
        if block.not_run:
            assert page_id(page) in ABOUT_OTHERS, f"line {block.line}: blocks of ours are run"
        elif block.language == "python":
            _run_python(block.text, page_id(page), block.line, names)
        elif _is_run(page):
            for command in shell_commands(block):
                _run_shell(command)


def _commands() -> Iterator[tuple[str, str]]:
    """Page and line of everything that looks like our command, inline code included."""
    for page in PAGES:
        found = [line for block in blocks(page) for line in shell_commands(block)]
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        found += re.findall(rf"`({COMMAND} [^`]+)`", text)
        for line in found:
            if line.startswith(f"{COMMAND} "):
                yield page_id(page), line


def _find_command(words: list[str]) -> tuple[Any, list[str]]:
    """The command that is named, and what follows its name."""
    command: Any = GROUP
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    return command, words


def _is_synopsis(line: str) -> bool:
    """Does it have placeholders instead of values?"""
    return re.search(r"\[-|…|\.\.\.|\b[A-Z]{3,}\b(?!\.)", line) is not None


def _options(command: Any) -> set[str]:
    own = {name for parameter in command.params for name in parameter.opts}
    own |= {name for parameter in command.params for name in parameter.secondary_opts}
    return {*own, "--help", "-h"}


@pytest.mark.parametrize(("page", "line"), sorted(set(_commands())))
def test_commands_that_a_page_names_exist_with_their_options(page: str, line: str) -> None:
    command, words = _find_command(shlex.split(re.sub(r"[\[\]]", " ", line))[1:])
    if command.context_settings.get("ignore_unknown_options", False):
        return  # a bundled task's parameters are options, too
    for word in words:
        if word.startswith("-"):
            assert word.split("=")[0] in _options(command), f"{command.name} has no {word}"
    if hasattr(command, "commands"):
        placeholders = ("COMMAND",)
        assert all(word.startswith("-") or word in placeholders for word in words), line
    elif words and not _is_synopsis(line):
        command.make_context(command.name, join_constants(words))


def test_every_command_has_its_line_on_the_page_of_commands() -> None:
    text = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    commands: Any = GROUP
    missing = [name for name in commands.commands if f"safetest-gym {name}" not in text]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_blocks_say_what_language_they_are_in(page: Path) -> None:
    for block in blocks(page):
        assert block.language in LANGUAGES, f"line {block.line}: {block.language!r}"


@pytest.mark.parametrize("page", _of("json"), ids=page_id)
def test_json_of_a_page_is_json(page: Path) -> None:
    for block in blocks(page):
        if block.language == "json":
            json.loads(block.text)


@pytest.mark.parametrize("page", _of("sh"), ids=page_id)
def test_scripts_that_a_page_runs_are_there(page: Path) -> None:
    for block in blocks(page):
        for command in shell_commands(block):
            words = shlex.split(command)
            if words[0] in ("python", "bash"):
                files = [word for word in words[1:2] if "/" in word]
                assert all((ROOT / file).exists() for file in files), command


def test_blocks_are_cut_out_with_their_place() -> None:
    found = [block for block in blocks(ROOT / "README.md") if block.language == "python"]
    assert all(isinstance(block, Block) and block.text for block in found)
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert lines[found[0].line - 1] == found[0].text.splitlines()[0]
