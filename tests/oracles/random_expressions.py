"""Random JANI expressions (as JSON data), drawn so that they shrink towards small ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import strategies as st

__all__ = ["Expressions", "Scope", "Signature", "binary", "chain", "clamp", "ite", "unary"]

Json = Any
Item = TypeVar("Item")
Draw = Callable[[st.SearchStrategy[Any]], Any]

_REALS = (0.5, 0.0, 1.0, -1.25, 2.0, 0.001, -3.0, 7.75)
_HUGE = (2**62, -(2**62), 2**63 - 1, -(2**63))


@dataclass(frozen=True)
class Signature:
    """A declared function as callers see it."""

    name: str
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class Scope:
    """Names that an expression may use, by kind."""

    ints: tuple[str, ...] = ()
    bools: tuple[str, ...] = ()
    reals: tuple[str, ...] = ()
    functions: dict[str, tuple[Signature, ...]] = field(default_factory=dict)


def binary(operator: str, left: Json, right: Json) -> Json:
    """``left operator right``."""
    return {"op": operator, "left": left, "right": right}


def unary(operator: str, operand: Json) -> Json:
    """``operator operand``."""
    return {"op": operator, "exp": operand}


def ite(condition: Json, then: Json, otherwise: Json) -> Json:
    """``if condition then … else …``."""
    return {"op": "ite", "if": condition, "then": then, "else": otherwise}


def clamp(value: Json, lower: Json, upper: Json) -> Json:
    """``value``, moved into ``lower..upper``."""
    return binary("max", lower, binary("min", upper, value))


def chain(operator: str, terms: Sequence[Json], *, from_left: bool) -> Json:
    """``terms`` joined by ``operator``, nested to the left or to the right."""
    terms = list(terms)
    result = terms.pop(0 if from_left else -1)
    for term in terms if from_left else reversed(terms):
        result = binary(operator, result, term) if from_left else binary(operator, term, result)
    return result


class Expressions:
    """Draws expressions over ``scope``.

    Args:
        draw: Hypothesis' draw function.
        scope: the names to use.
        wild: also draw expressions that have no value in some states.
        reals: also use real operations where an int or bool is asked for.
    """

    def __init__(self, draw: Draw, scope: Scope, *, wild: bool, reals: bool) -> None:
        self._draw = draw
        self._scope = scope
        self._wild = wild
        self._reals = reals

    def pick(self, items: Sequence[Item]) -> Item:
        """One of ``items``; shrinks towards the first."""
        return items[self._draw(st.integers(0, len(items) - 1))]

    def chance(self, percent: int) -> bool:
        """True about ``percent`` times out of 100; shrinks towards False."""
        return bool(self._draw(st.integers(0, 99)) >= 100 - percent)

    def of_kind(self, kind: str, depth: int) -> Json:
        """An expression of ``kind``."""
        return {"int": self.integer, "bool": self.boolean, "real": self.real}[kind](depth)

    def integer(self, depth: int) -> Json:
        """An int expression."""
        if depth <= 0 or not self.chance(70):
            return self._int_leaf()
        shape = self.pick(("+", "-", "*", "min", "max", "ite", "%", "pow", "round", "abs", "sum"))
        if shape in ("+", "-", "*", "min", "max"):
            return binary(shape, self.integer(depth - 1), self.integer(depth - 1))
        if shape == "ite":
            return ite(self.boolean(depth - 1), self.integer(depth - 1), self.integer(depth - 1))
        if shape == "%":
            dividend = self.integer(depth - 1)
            if self._wild:
                return binary("%", dividend, self.integer(0))
            return binary("%", unary("abs", dividend), self.pick((2, 3, 5)))  # Storm: -2 % 2 = 2
        if shape == "pow":
            exponent = self.integer(0) if self._wild and self.chance(30) else self.pick((2, 0, 1))
            return binary("pow", self.integer(0), exponent)
        if shape == "round":
            # Storm: trc(0.3) = 1, sgn(-2) = 0
            operators = ("floor", "ceil", "trc", "sgn") if self._wild else ("floor", "ceil")
            return unary(self.pick(operators), self._quotient(depth))
        if shape == "abs":
            return unary("abs", self.integer(depth - 1))
        return self._sum(self._int_leaf)

    def boolean(self, depth: int) -> Json:
        """A bool expression."""
        if depth <= 0 or not self.chance(85):
            return self._bool_leaf()
        shape = self.pick(("<", "=", "∧", "∨", "¬", "⇒", "bools", "ite", "guarded", "call"))
        if shape in ("<", "="):
            return self._comparison(depth - 1)
        if shape in ("∧", "∨", "⇒"):
            return binary(shape, self.boolean(depth - 1), self.boolean(depth - 1))
        if shape == "¬":
            return unary("¬", self.boolean(depth - 1))
        if shape == "bools":
            operator = self.pick(("=", "≠"))
            return binary(operator, self.boolean(depth - 1), self.boolean(depth - 1))
        if shape == "ite":
            return ite(self.boolean(depth - 1), self.boolean(depth - 1), self.boolean(depth - 1))
        if shape == "guarded" and self._wild:  # Storm does not stop early
            divisor = self._int_leaf()
            quotient = binary("/", self._int_leaf(), divisor)
            return binary("∧", binary("≠", divisor, 0), binary("<", quotient, 1))
        return self._call("bool", depth) or self._comparison(depth - 1)

    def real(self, depth: int) -> Json:
        """A real expression (its kind may still be int)."""
        if depth <= 0 or not self.chance(70):
            return self._real_leaf()
        shape = self.pick(("+", "-", "*", "min", "max", "ite", "/", "f", "pow", "log", "sum"))
        if shape in ("+", "-", "*", "min", "max"):
            return binary(shape, self.real(depth - 1), self.real(depth - 1))
        if shape == "ite":
            return ite(self.boolean(depth - 1), self.real(depth - 1), self.real(depth - 1))
        if shape == "/":
            return self._quotient(depth)
        if shape == "f":
            tame = ("abs", "sin", "cos", "atan", "tanh", "asinh", "acot")
            wild = ("asin", "acos", "tan", "cot", "sec", "csc", "cosh", "sinh", "coth", "sech")
            return unary(self.pick(tame + (wild if self._wild else ())), self.real(depth - 1))
        if shape == "pow":
            base = self.real(depth - 1)
            return binary("pow", base if self._wild else unary("abs", base), self.pick((2, 0.5)))
        if shape == "log":
            inside = self.real(depth - 1)
            if not self._wild or self.chance(50):
                inside = binary("+", unary("abs", inside), 1)
            return binary("log", inside, self.pick((2, 10, 2.5)))
        return self._sum(self._real_leaf)

    def _comparison(self, depth: int) -> Json:
        operator = self.pick(("<", "≤", "=", "≠", ">", "≥"))
        if self._reals and self.chance(30):
            return binary(operator, self.real(depth), self.real(depth))
        right = (
            self.pick((*_HUGE, 10**30)) if self._wild and self.chance(3) else self.integer(depth)
        )
        return binary(operator, self.integer(depth), right)

    def _quotient(self, depth: int) -> Json:
        divisor = self.integer(0) if self._wild else self.pick((2, 3, -2))
        above = self.real(depth - 1) if self._reals else self.integer(depth - 1)
        return binary("/", above, divisor)

    def _sum(self, leaf: Callable[[], Json]) -> Json:
        terms = [leaf(), leaf(), leaf()] * self.pick((1, 2, 4, 9))
        operator = "*" if self._wild and self.chance(10) else "+"
        return chain(operator, terms, from_left=self.chance(50))

    def _int_leaf(self) -> Json:
        if self._scope.ints and self.chance(60):
            return self.pick(self._scope.ints)
        if self._wild and self.chance(4):
            return self.pick(_HUGE)
        call = self._call("int", 1) if self.chance(20) else None
        return self.pick((0, 1, 2, 3, -1, -2, 5)) if call is None else call

    def _bool_leaf(self) -> Json:
        if self._scope.bools and self.chance(60):
            return self.pick(self._scope.bools)
        if self._scope.ints and self.chance(80):
            operator = self.pick(("≤", "≥", "=", "≠", "<"))
            return binary(operator, self.pick(self._scope.ints), self.pick((0, 1, 2, -1)))
        return self.pick((True, False))

    def _real_leaf(self) -> Json:
        if self._scope.reals and self.chance(70):
            return self.pick(self._scope.reals)
        call = self._call("real", 1) if self.chance(20) else None
        if call is not None:
            return call
        return self._int_leaf() if self.chance(30) else self.pick(_REALS)

    def _call(self, kind: str, depth: int) -> Json:
        known = self._scope.functions.get(kind, ())
        if not known:
            return None
        function = self.pick(known)
        arguments = [self.of_kind(parameter, depth - 1) for parameter in function.parameters]
        return {"op": "call", "function": function.name, "args": arguments}
