"""Unique names for instances of automata and their variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

__all__ = ["LOCATION", "instance_names", "variable_names"]

LOCATION = "location"
"""The location variable of automaton ``A`` is called ``A.location``."""


def instance_names(automata: Iterable[str]) -> list[str]:
    """A name for each occurrence of an automaton: ``A``, ``A#2`` and so on."""
    listed = list(automata)
    seen: set[str] = set()
    used = set(listed)
    names: list[str] = []
    for automaton in listed:
        names.append(_free(automaton, used) if automaton in seen else automaton)
        seen.add(automaton)
        used.add(names[-1])
    return names


def variable_names(
    instances: Sequence[str], own: Sequence[Sequence[str]], taken: Iterable[str]
) -> list[dict[str, str]]:
    """Per instance the model-wide names of its own variables and, under "", its location's.

    Args:
        instances: their names.
        own: the names each one's variables have in the document.
        taken: names used otherwise.
    """
    uses = Counter([name for names in own for name in names])
    used = set(taken)
    result: list[dict[str, str]] = []
    plain = {name for name, count in uses.items() if count == 1} - used
    used |= plain
    for instance, names in zip(instances, own, strict=True):
        chosen: dict[str, str] = {}
        for name in [*names, ""]:
            wanted = name if name in plain else f"{instance}.{name or LOCATION}"
            chosen[name] = wanted if name in plain else _free(wanted, used)
            used.add(chosen[name])
        result.append(chosen)
    return result


def _free(name: str, used: Iterable[str]) -> str:
    candidate, number = name, 1
    while candidate in used:
        number += 1
        candidate = f"{name}#{number}"
    return candidate
