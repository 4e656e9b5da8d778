"""What names mean at some place of a document."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from safetest_gym.jani.reporting import Place, Report, quote, suggest
from safetest_gym.jani.tree import Expression, Function

__all__ = ["Scope"]


@dataclass(slots=True)
class Scope:
    """Names and functions in force.

    Attributes:
        absent: names that exist but may not be used here, and why.
        find_name: asked for what is not in ``names``: things further down in the document.
            None: unknown.
        find_function: the same for functions.
        known: all names that may be meant, for hints; ``known_functions`` likewise.
    """

    names: dict[str, Expression] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    find_name: Callable[[str, Place], Expression | None] | None = None
    find_function: Callable[[str, Place], Function | None] | None = None
    known: Callable[[], Iterable[str]] = tuple
    known_functions: Callable[[], Iterable[str]] = tuple

    def name(self, word: str, place: Place, report: Report) -> Expression | None:
        """What ``word`` stands for; None if that is an error, which is then reported."""
        found = self.names.get(word)
        if found is None and self.find_name is not None:
            found = self.find_name(word, place)
        if found is not None:
            self.names[word] = found
            return found
        if word in self.absent:
            report.add(place, self.absent[word])
            return None
        hint = suggest(word, {*self.names, *self.known()})
        if word.lower() in ("true", "false"):
            hint = f"write the JSON value {word.lower()}, without quotation marks"
        report.add(place, f"unknown identifier {quote(word)}", hint)
        return None

    def function(self, word: str, place: Place, report: Report) -> Function | None:
        """The function called ``word``; None if that is an error, which is then reported."""
        found = self.functions.get(word)
        if found is None and self.find_function is not None:
            found = self.find_function(word, place)
        if found is not None:
            self.functions[word] = found
            return found
        candidates = {*self.functions, *self.known_functions()}
        report.add(place, f"unknown function {quote(word)}", suggest(word, candidates))
        return None
