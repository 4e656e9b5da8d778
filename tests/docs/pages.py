"""The pages of the documentation, cut into their code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGES", "ROOT", "Block", "blocks", "page_id", "shell_commands"]

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`\n]*)$")
_NOT_RUN = re.compile(r"^<!-- not run: .+ -->$")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    Attributes:
        line: where its first line stands, from 1.
        not_run: is a comment ``<!-- not run: reason -->`` in front of it?
    """

    language: str
    text: str
    line: int
    not_run: bool


def page_id(page: Path) -> str:
    """Such as ``docs/tutorials/verify.md``."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    before, number = "", 0
    while number < len(lines):
        opened = _FENCE.match(lines[number])
        number += 1
        if opened is None:
            before = lines[number - 1].strip() or before
            continue
        first, closing = number, opened["indent"] + opened["ticks"]
        while lines[number].rstrip() != closing:
            number += 1
        inside = [line.removeprefix(opened["indent"]) for line in lines[first:number]]
        words = opened["info"].split() or [""]
        text = "\n".join(inside) + "\n"
        yield Block(words[0], text, first + 1, _NOT_RUN.match(before) is not None)
        before, number = "", number + 1


def shell_commands(block: Block) -> Iterator[str]:
    """The commands of a shell block, joined over line ends, without comments."""
    if block.language not in ("", "sh"):
        return
    text = re.sub(r"\s*\\\n\s*|\n +(?=\[)", " ", block.text)
    for line in text.splitlines():
        for command in re.split(r"\s*&&\s*", re.sub(r"(^|\s)#.*$", "", line)):
            if command.strip():
                yield command.strip()
