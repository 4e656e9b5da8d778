"""Cut expressions given as text into tokens."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Literal as Choice

from safetest_gym.errors import JaniError
from safetest_gym.jani.hints import operator_hint
from safetest_gym.jani.reporting import quote

__all__ = ["KEYWORDS", "WORD", "Token", "tokenize"]

WORD = re.compile(r"[^\W\d][\w.#]*(?:-[\w.#]+)*")
"""Names that need no quotation marks."""

_TOKEN = re.compile(
    r"""(?P<number>(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<name>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<word>[^\W\d][\w.#]*(?:-[\w.#]+)*)
    |(?P<sign><=>|===|=>|->|==|!=|<>|=<|<=|>=|&&|\|\||\*\*|//|\S)""",
    re.VERBOSE,
)
_SPACE = re.compile(r"\s*")

_SPELLINGS = {
    "∧": ("and", "&&"),
    "∨": ("or", "||"),
    "¬": ("not", "!"),
    "=": ("==",),
    "≠": ("!=",),
    "≤": ("<=",),
    "≥": (">=",),
    "⇒": ("=>", "->"),
    "-": ("−",),
}
_MEANING = {spelling: sign for sign, others in _SPELLINGS.items() for spelling in (sign, *others)}
_SIGNS = frozenset((*_MEANING, *"<>+*/%(),", "**"))
KEYWORDS = frozenset(("and", "or", "not", "if", "else", "true", "false", "True", "False"))
"""Words that are no names unless in quotation marks."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text.

    Attributes:
        text: JANI's spelling of a sign or keyword; a name without quotation marks.
        column: counted from 1.
    """

    kind: Choice["number", "name", "word", "sign", "end"]
    text: str
    column: int

    def shown(self) -> str:
        """How messages call it."""
        return "the end" if self.kind == "end" else quote(self.text)


def tokenize(text: str, known: Container[str]) -> list[Token]:
    """The tokens of ``text``, an end token last.

    Names may contain dashes: of ``a-b-c`` the longest part that is a ``known`` name counts.

    Raises:
        JaniError: a sign means nothing.
    """
    tokens: list[Token] = []
    position = 0
    while True:
        space = _SPACE.match(text, position)
        position = space.end() if space else position
        found = _TOKEN.match(text, position)
        if found is None:
            tokens.append(Token("end", "", position + 1))
            return tokens
        token = _token(found, position + 1, known)
        position += len(token.text) if token.kind == "word" else len(found.group())
        if token.kind == "word" and token.text in KEYWORDS:
            token = Token("sign", _MEANING.get(token.text, token.text), token.column)
        tokens.append(token)


def _token(found: re.Match[str], column: int, known: Container[str]) -> Token:
    whole = found.group()
    if found.lastgroup == "number":
        return Token("number", whole, column)
    if found.lastgroup == "name":
        return Token("name", re.sub(r"\\(.)", r"\1", whole[1:-1], flags=re.DOTALL), column)
    if found.lastgroup == "word":
        return Token("word", _longest_known(whole, known), column)
    if whole in _SIGNS:
        return Token("sign", _MEANING.get(whole, whole), column)
    if whole in ("'", '"'):
        message, hint = "a quotation mark is not closed", ""
    else:
        message, hint = f"unexpected {quote(whole)}", operator_hint(whole)
    raise JaniError(message, path=f"text:{column}", hint=hint)


def _longest_known(word: str, known: Container[str]) -> str:
    candidate = word
    while "-" in candidate:
        if candidate in known:
            return candidate
        candidate = candidate.rpartition("-")[0]
    return candidate if candidate in known or candidate in KEYWORDS else word
