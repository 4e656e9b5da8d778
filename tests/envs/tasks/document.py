"""Run a JANI document of one automaton directly: an independent judge for the generators.

Expressions become Python source, so small state spaces are explored within seconds. It
shares no code with the package; what it does not know (arrays, functions, several
automata) it refuses with a KeyError.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

State = tuple[Any, ...]
Json = dict[str, Any]
Choice = tuple[str, tuple[tuple[float, State], ...]]

_BINARY = {
    "∧": "and", "∨": "or", "=": "==", "≠": "!=", "<": "<", "≤": "<=", ">": ">", "≥": ">=",
    "+": "+", "-": "-", "*": "*", "/": "/", "%": "%",
}  # fmt: skip
_CALLS = {"min": "min", "max": "max", "abs": "abs", "floor": "floor", "ceil": "ceil"}


def read_json(path: Path) -> Json:
    """A JSON document, with or without a byte-order mark."""
    data: Json = json.loads(path.read_text(encoding="utf-8-sig"))
    return data


@dataclass(frozen=True)
class Bounds:
    """A variable as the document declares it, constants put in."""

    name: str
    kind: str
    lower: float | None
    upper: float | None
    initial: Any


class Document:
    """A model; a state holds the variables in order, then the location's number."""

    def __init__(self, data: Json) -> None:
        self.data = data
        self._automaton = data["automata"][0]
        assert len(data["automata"]) == 1
        self._locations = [location["name"] for location in self._automaton["locations"]]
        self._names: dict[str, str] = {}
        self._scope: dict[str, Any] = {
            "floor": math.floor, "ceil": math.ceil, "min": min, "max": max, "abs": abs,
        }  # fmt: skip
        for constant in data.get("constants", []):
            value = eval(self.source(constant["value"]), dict(self._scope))
            self._names[constant["name"]] = repr(value)
        self.variables = [self._bounds(v) for v in self._declared()]
        for number, variable in enumerate(self.variables):
            self._names[variable.name] = f"v{number}"
        self.actions = [sync["result"] for sync in data["system"]["syncs"]]
        self._successors = self._compile()

    def _declared(self) -> list[Json]:
        return [*self.data["variables"], *self._automaton.get("variables", [])]

    def _bounds(self, declared: Json) -> Bounds:
        kind = declared["type"]
        limits: list[Any] = [None, None]
        if isinstance(kind, dict):
            limits = [kind.get("lower-bound"), kind.get("upper-bound")]
            kind = kind["base"]
        lower, upper, initial = (
            None if x is None else eval(self.source(x))
            for x in (*limits, declared.get("initial-value"))
        )
        return Bounds(declared["name"], kind, lower, upper, initial)

    def source(self, expression: Any) -> str:
        """Python source of an expression over v0, v1, …"""
        if isinstance(expression, bool | int | float):
            return f"({expression!r})"
        if isinstance(expression, str):
            return self._names[expression]
        op = expression["op"]
        if op == "ite":
            parts = (self.source(expression[key]) for key in ("then", "if", "else"))
            return "(({}) if ({}) else ({}))".format(*parts)
        if op in ("¬", "floor", "ceil", "abs"):
            inner = self.source(expression["exp"])
            return f"(not {inner})" if op == "¬" else f"{op}({inner})"
        left, right = self.source(expression["left"]), self.source(expression["right"])
        if op in ("min", "max"):
            return f"{op}({left}, {right})"
        if op == "⇒":
            return f"((not {left}) or {right})"
        return f"({left} {_BINARY[op]} {right})"

    def function(self, expression: Any) -> Callable[[State], Any]:
        """The expression as a function of a state."""
        code = f"def run(state):\n {self._unpack()}\n return {self.source(expression)}\n"
        scope = dict(self._scope)
        exec(code, scope)
        run: Callable[[State], Any] = scope["run"]
        return run

    def _unpack(self) -> str:
        return "".join(f"v{i}, " for i in range(len(self.variables))) + "location = state"

    def _compile(self) -> Callable[[State], list[tuple[str, list[tuple[float, State]]]]]:
        lines = ["def run(state):", f" {self._unpack()}", " out = []"]
        for edge in self._automaton["edges"]:
            guard = self.source(edge["guard"]["exp"]) if "guard" in edge else "True"
            here = self._locations.index(edge["location"])
            targets = [self._target(target) for target in edge["destinations"]]
            lines.append(f" if location == {here} and {guard}:")
            lines.append(f"  out.append(({edge.get('action', '')!r}, [{', '.join(targets)}]))")
        lines.append(" return out\n")
        scope = dict(self._scope)
        exec("\n".join(lines), scope)
        run: Callable[[State], list[tuple[str, list[tuple[float, State]]]]] = scope["run"]
        return run

    def _target(self, target: Json) -> str:
        values = [f"v{i}" for i in range(len(self.variables))]
        for assignment in target.get("assignments", []):
            values[int(self._names[assignment["ref"]][1:])] = self.source(assignment["value"])
        probability = target.get("probability")
        chance = "1.0" if probability is None else self.source(probability["exp"])
        values.append(str(self._locations.index(target["location"])))
        return f"({chance}, ({', '.join(values)}))"

    def choices(self, state: State) -> Iterator[Choice]:
        """Enabled edges: label and merged outcomes; bounds are checked."""
        for label, targets in self._successors(state):
            merged: dict[State, float] = {}
            for probability, target in targets:
                if probability > 0:
                    merged[target] = merged.get(target, 0.0) + probability
            assert abs(sum(merged.values()) - 1) < 1e-9, (label, state, merged)
            for target in merged:
                self.require_bounds(target)
            yield label, tuple(sorted((round(p, 9), t) for t, p in merged.items()))

    def ordered_choices(self, state: State) -> list[tuple[str, list[State]]]:
        """Enabled edges with their targets, both in the document's order."""
        return [(label, [t for _, t in targets]) for label, targets in self._successors(state)]

    def require_bounds(self, state: State) -> None:
        """Fail if a value leaves its variable's bounds."""
        for variable, value in zip(self.variables, state, strict=False):
            assert variable.lower is None or value >= variable.lower, (variable, state)
            assert variable.upper is None or value <= variable.upper, (variable, state)

    def state(self, values: Mapping[str, Any]) -> State:
        """A full state; what is not given has its initial value."""
        known = [values.get(v.name, v.initial) for v in self.variables]
        place = self._automaton["initial-locations"][0]
        return (*known, self._locations.index(place))

    def matching(self, condition: Any, limit: int) -> list[State]:
        """All states that satisfy a condition over bounded integers, by pruned search."""
        return list(_Search(self, condition, limit).run())


class _Search:
    """Assign variables in order; intervals of the open rest prune hopeless branches."""

    def __init__(self, document: Document, condition: Any, limit: int) -> None:
        self._document, self._limit = document, limit
        conjuncts = list(_conjuncts(condition))
        order = {v.name: i for i, v in enumerate(document.variables)}
        self._order = order
        self._due: list[list[tuple[Any, Callable[[list[Any]], Any]]]] = [[] for _ in order]
        for conjunct in conjuncts:
            used = sorted(order[name] for name in _names(conjunct) if name in order)
            for position in set(used):
                self._due[position].append((conjunct, self._interval(conjunct)))

    def run(self) -> Iterator[State]:
        self._found = 0
        boxes = [(v.lower, v.upper) for v in self._document.variables]
        yield from self._extend(0, boxes)

    def _extend(self, position: int, boxes: list[Any]) -> Iterator[State]:
        if position == len(boxes):
            self._found += 1
            assert self._found <= self._limit, f"more than {self._limit} states"
            values = {v.name: b[0] for v, b in zip(self._document.variables, boxes, strict=True)}
            yield self._document.state(values)
            return
        low, high = boxes[position]
        for value in range(low, high + 1):
            boxes[position] = (value, value)
            if all(run(boxes)[1] for _, run in self._due[position]):
                yield from self._extend(position + 1, boxes)
        boxes[position] = (low, high)

    def _interval(self, expression: Any) -> Callable[[list[Any]], Any]:
        """A function from boxes to (least, greatest) value; truth counts as 0 and 1."""
        if isinstance(expression, bool | int | float):
            fixed = (expression, expression)
            return lambda boxes: fixed
        if isinstance(expression, str):
            if expression in self._order:
                index = self._order[expression]
                return lambda boxes: boxes[index]
            value = eval(self._document.source(expression))
            return lambda boxes: (value, value)
        op = expression["op"]
        keys = [k for k in ("if", "then", "else", "exp", "left", "right") if k in expression]
        parts = [self._interval(expression[k]) for k in keys]
        rule = _RULES[op]
        return lambda boxes: rule(*(part(boxes) for part in parts))


def _truth(least: Any, greatest: Any) -> tuple[bool, bool]:
    return bool(least), bool(greatest)


def _times(a: Any, b: Any) -> Any:
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _modulo(a: Any, b: Any) -> Any:
    if a[0] == a[1] and b[0] == b[1]:
        return a[0] % b[0], a[0] % b[0]
    return 0, b[1] - 1


def _branch(condition: Any, then: Any, otherwise: Any) -> Any:
    if condition[0]:
        return then
    if not condition[1]:
        return otherwise
    return min(then[0], otherwise[0]), max(then[1], otherwise[1])


def _equal(a: Any, b: Any) -> Any:
    return _truth(a[0] == a[1] == b[0] == b[1], a[0] <= b[1] and b[0] <= a[1])


_RULES: dict[str, Callable[..., Any]] = {
    "∧": lambda a, b: (a[0] and b[0], a[1] and b[1]),
    "∨": lambda a, b: (a[0] or b[0], a[1] or b[1]),
    "⇒": lambda a, b: (not a[1] or b[0], not a[0] or b[1]),
    "¬": lambda a: (not a[1], not a[0]),
    "=": _equal,
    "≠": lambda a, b: tuple(not x for x in reversed(_equal(a, b))),
    "<": lambda a, b: _truth(a[1] < b[0], a[0] < b[1]),
    "≤": lambda a, b: _truth(a[1] <= b[0], a[0] <= b[1]),
    ">": lambda a, b: _truth(a[0] > b[1], a[1] > b[0]),
    "≥": lambda a, b: _truth(a[0] >= b[1], a[1] >= b[0]),
    "+": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "-": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "*": _times,
    "%": _modulo,
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "ite": _branch,
}


def _conjuncts(expression: Any) -> Iterator[Any]:
    if isinstance(expression, dict) and expression["op"] == "∧":
        yield from _conjuncts(expression["left"])
        yield from _conjuncts(expression["right"])
    else:
        yield expression


def _names(expression: Any) -> Iterable[str]:
    if isinstance(expression, str):
        yield expression
    elif isinstance(expression, dict):
        for key, part in expression.items():
            if key != "op":
                yield from _names(part)
