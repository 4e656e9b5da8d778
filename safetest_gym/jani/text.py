"""Parse conditions given as text, in JANI's operators, Python's or C's.

From weakest to strongest: ``a if c else b``, ``⇒``, ``∨``, ``∧``, ``¬``, comparisons (which
may be chained), ``+ -``, ``* / %``, unary minus, ``**``. Nothing is ever evaluated as Python.
"""

from __future__ import annotations

from collections.abc import Callable

from safetest_gym.errors import JaniError
from safetest_gym.jani.conditions import StateReader
from safetest_gym.jani.depth import MAX_DEPTH, deep_recursion
from safetest_gym.jani.expressions import CONSTANTS
from safetest_gym.jani.numerals import MAX_DIGITS, parse_integer
from safetest_gym.jani.operators import ARITY, BROKEN
from safetest_gym.jani.reporting import Column, Place, Report, quote, suggest
from safetest_gym.jani.tokens import Token, tokenize
from safetest_gym.jani.tree import (
    FALSE,
    TRUE,
    Expression,
    Kind,
    Literal,
    Model,
    Operation,
    Reference,
)

__all__ = ["CALLED", "POWERS", "parse_expression"]

POWERS = {
    "if": 1, "⇒": 2, "∨": 3, "∧": 4, "¬": 5,
    "=": 6, "≠": 6, "<": 6, "≤": 6, ">": 6, "≥": 6,
    "+": 7, "-": 7, "*": 8, "/": 8, "%": 8, "negative": 9, "**": 10,
}  # fmt: skip
"""How strongly operators bind."""

CALLED = frozenset(symbol for symbol in ARITY if symbol.isalpha())
"""Operators written like function calls."""

_COMPARISONS = frozenset("=≠<≤>≥")
_WORDS = {"true": TRUE, "True": TRUE, "false": FALSE, "False": FALSE}

Operand = tuple[Expression, Place]


def parse_expression(text: str, model: Model, kind: Kind | None = None) -> Expression:
    """The expression ``text`` over the variables of ``model``, of any kind if none is given.

    Raises:
        JaniError: it is wrong; ``path`` tells the column.
    """
    report = Report()
    reader = StateReader(model, report)
    names = {*reader.expressions.scope.names, *reader.expressions.scope.functions, *CONSTANTS}
    for automaton in model.automata:
        names.update(automaton.locations)
    with deep_recursion():
        try:
            parser = _Parser(tokenize(text, names), reader)
            node = parser.whole(kind)
        except JaniError as error:
            report.include(error)
            node = BROKEN
    report.raise_errors()
    return node


class _Parser:
    """Operator-precedence parser; recursion is plain Python."""

    def __init__(self, tokens: list[Token], reader: StateReader) -> None:
        self._tokens = tokens
        self._position = 0
        self._depth = 0
        self._reader = reader.expressions
        self._scope = reader.expressions.scope
        self._unknown: dict[Expression, Token] = {}

    def whole(self, kind: Kind | None) -> Expression:
        """The expression that all tokens make."""
        node, place = self._parse(0)
        if self._next.kind != "end":
            raise self._unexpected("an operator")
        for token in self._unknown.values():
            self._scope.name(token.text, _place(token), self._reader.report)
        return self._reader.finish(node, place, kind)

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _take(self) -> Token:
        token = self._tokens[self._position]
        if token.kind != "end":
            self._position += 1
        return token

    def _sees(self, sign: str) -> bool:
        token = self._tokens[self._position]
        return token.kind == "sign" and token.text == sign

    def _expect(self, sign: str) -> None:
        if not self._sees(sign):
            raise self._unexpected(quote(sign))
        self._position += 1

    def _unexpected(self, wanted: str) -> JaniError:
        token = self._next
        hint = ""
        if token.kind == "sign" and token.text == "=" and wanted == "an operand":
            hint = "did you mean '=='?"
        return JaniError(
            f"expected {wanted}, found {token.shown()}", path=f"text:{token.column}", hint=hint
        )

    def _parse(self, least: int) -> Operand:
        """Everything from here on that binds at least as strongly as ``least``."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise JaniError(f"nested more than {MAX_DEPTH} levels deep", path="text:1")
        start = self._position
        left = self._operand()
        while True:
            token = self._next
            power = POWERS.get(token.text, -1) if token.kind == "sign" else -1
            if power < max(least, 1) or token.text == "¬":
                break
            if power == POWERS["="]:
                left = self._comparison(left, start)
            elif token.text == "if":
                left = self._choice(left)
            elif token.text in ("∧", "∨"):
                left = self._junction(token.text, left, power)
            else:
                self._take()
                right_associative = token.text in ("⇒", "**")
                right = self._parse(power if right_associative else power + 1)
                symbol = "pow" if token.text == "**" else token.text
                left = self._build(symbol, [left, right], _place(token))
        self._depth -= 1
        return left

    def _build(self, symbol: str, operands: list[Operand], place: Place) -> Operand:
        nodes = [node for node, _ in operands]
        return self._reader.operation(symbol, nodes, place, [at for _, at in operands]), place

    def _junction(self, symbol: str, left: Operand, power: int) -> Operand:
        operands, place = [left], _place(self._next)
        while self._sees(symbol):
            self._take()
            operands.append(self._parse(power + 1))
        return self._build(symbol, operands, place)

    def _choice(self, then: Operand) -> Operand:
        place = _place(self._take())
        condition = self._parse(POWERS["⇒"])
        self._expect("else")
        otherwise = self._parse(POWERS["if"])
        return self._build("ite", [condition, then, otherwise], place)

    def _comparison(self, left: Operand, start: int) -> Operand:
        """``a < b ≤ c`` means ``a < b ∧ b ≤ c``."""
        found: list[Operand] = []
        left_word = self._single(start)
        while self._next.kind == "sign" and self._next.text in _COMPARISONS:
            sign = self._take()
            start = self._position
            right = self._parse(POWERS["="] + 1)
            right_word = self._single(start)
            sides = [
                self._as_location(left, right[0], left_word),
                self._as_location(right, left[0], right_word),
            ]
            found.append(self._build(sign.text, sides, _place(sign)))
            left, left_word = right, right_word
        return found[0] if len(found) == 1 else self._build("∧", found, found[0][1])

    def _single(self, start: int) -> Token | None:
        """The token from ``start`` on, if it is one name only."""
        token = self._tokens[start]
        alone = self._position == start + 1 and token.kind in ("word", "name")
        return token if alone else None

    def _as_location(self, operand: Operand, other: Expression, token: Token | None) -> Operand:
        """A name compared with a location variable means that location."""
        node, place = operand
        if token is None or not isinstance(other, Reference) or not other.variable.locations:
            return operand
        locations = other.variable.locations
        if token.text in locations and (node in self._unknown or token.kind == "name"):
            self._unknown.pop(node, None)
            return Literal(locations.index(token.text), "int"), place
        if self._unknown.pop(node, None) is not None:
            message = f"{quote(other.variable.name)} has no value {quote(token.text)}"
            hint = suggest(token.text, locations) or f"known: {', '.join(locations[:8])}"
            self._reader.report.add(place, message, hint)
        return operand

    def _operand(self) -> Operand:
        token = self._next
        place = _place(token)
        if token.kind == "number":
            return _number(self._take()), place
        if token.kind in ("word", "name"):
            return self._name(self._take()), place
        if token.kind == "sign":
            prefix = _PREFIXES.get(token.text)
            if prefix is not None:
                return prefix(self)
        raise self._unexpected("an operand")

    def _name(self, token: Token) -> Expression:
        if self._sees("("):
            return self._call(token)
        node = self._scope.names.get(token.text)
        if node is None and token.kind == "word" and token.text in CONSTANTS:
            return Literal(CONSTANTS[token.text], "real")
        if node is None:
            node = Operation("unknown", (), BROKEN.kind)
            self._unknown[node] = token
        return node

    def _call(self, token: Token) -> Expression:
        place = _place(token)
        self._take()
        arguments: list[Operand] = []
        while not self._sees(")"):
            if arguments:
                self._expect(",")
            arguments.append(self._parse(0))
        self._take()
        nodes, places = [node for node, _ in arguments], [at for _, at in arguments]
        report = self._reader.report
        if token.kind == "name" or token.text not in CALLED:
            function = self._scope.function(token.text, place, report)
            return BROKEN if function is None else self._reader.call(function, nodes, place, places)
        wanted = ARITY[token.text]
        many = token.text in ("min", "max") and len(nodes) > 2
        if len(nodes) != wanted and not many:
            hint = "log(x, base)" if token.text == "log" else ""
            message = f"{token.text} takes {wanted} arguments, here are {len(nodes)}"
            report.add(place, message, hint)
            return BROKEN
        return self._reader.operation(token.text, nodes, place, places)

    def parenthesis(self) -> Operand:
        """``( … )``."""
        self._take()
        inner = self._parse(0)
        self._expect(")")
        return inner

    def negation(self) -> Operand:
        """``¬ …``."""
        place = _place(self._take())
        return self._build("¬", [self._parse(POWERS["¬"])], place)

    def negative(self) -> Operand:
        """``- …``."""
        place = _place(self._take())
        node, at = self._parse(POWERS["negative"])
        if isinstance(node, Literal) and node.kind != "bool":
            return Literal(-node.value, node.kind), place
        return self._build("-", [(Literal(0, "int"), place), (node, at)], place)

    def positive(self) -> Operand:
        """``+ …``."""
        place = _place(self._take())
        zero = Literal(0, "int")
        node, at = self._parse(POWERS["negative"])
        self._build("-", [(zero, place), (node, at)], place)  # it must be a number
        return node, place

    def truth(self) -> Operand:
        """``true`` or ``false``."""
        token = self._take()
        return _WORDS[token.text], _place(token)


def _place(token: Token) -> Place:
    return (None, Column(f"text:{token.column}"))


def _number(token: Token) -> Literal:
    if token.text.isdecimal():
        if len(token.text) > MAX_DIGITS:
            raise JaniError(
                f"an integer of more than {MAX_DIGITS} digits", path=f"text:{token.column}"
            )
        return Literal(parse_integer(token.text), "int")
    value = float(token.text)
    if value == float("inf"):
        raise JaniError(f"{token.text} is too large for a real", path=f"text:{token.column}")
    return Literal(value, "real")


_PREFIXES: dict[str, Callable[[_Parser], Operand]] = {
    "(": _Parser.parenthesis,
    "¬": _Parser.negation,
    "-": _Parser.negative,
    "+": _Parser.positive,
    **dict.fromkeys(_WORDS, _Parser.truth),
}
