"""Rewrite expressions and assignments so that machine code need only read one state.

Calls become their bodies with the arguments in place of the parameters, and assignments
of higher indices get the values that lower ones left put in place of the variables. What
is left are expressions over the state before the step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from safetest_gym.errors import JaniError
from safetest_gym.jani.tree import (
    Assignment,
    Call,
    Expression,
    Literal,
    Operation,
    Parameter,
    Reference,
    Variable,
)

__all__ = ["ATTEMPT", "REAL", "Inliner", "Update", "as_kind", "reads", "sequence"]

REAL = "real"
"""Internal operator: an int as a real."""

ATTEMPT = "attempt"
"""Internal operator: the first operand, or the second (a literal) where it has no value."""

MAX_NODES = 2_000_000


class Inliner:
    """Removes calls; shared parts stay shared, so a DAG comes out.

    Args:
        limit: how many nodes all calls together may expand to.
    """

    def __init__(self, limit: int = MAX_NODES) -> None:
        self._done: dict[int, Expression] = {}
        self._bodies: dict[tuple[int, ...], Expression] = {}
        self._kept: list[object] = []  # keeps every node alive whose id is a key
        self._left = limit

    def plain(self, expression: Expression) -> Expression:
        """The expression without calls, over the same variables."""
        if isinstance(expression, (Literal, Reference, Parameter)):
            return expression
        known = self._done.get(id(expression))
        if known is not None:
            return known
        result = self._inline(expression)
        self._done[id(expression)] = result
        self._kept.append(expression)
        return result

    def _inline(self, expression: Operation | Call) -> Expression:
        old = expression.operands if isinstance(expression, Operation) else expression.arguments
        operands = []
        changed = False
        for operand in old:
            new = self.plain(operand)
            changed = changed or new is not operand
            operands.append(new)
        if isinstance(expression, Operation):
            if not changed:
                return expression
            return Operation(expression.operator, tuple(operands), expression.kind)
        function = expression.function
        key = (id(function), *map(id, operands))
        known = self._bodies.get(key)
        if known is None:
            places: dict[object, Expression] = {}
            for parameter, argument in zip(function.parameters, operands, strict=True):
                places[parameter] = as_kind(argument, parameter.kind)
            known = as_kind(self.replace(self.plain(function.body), places), function.kind)
            self._bodies[key] = known
            self._kept.append((function, operands))
        return known

    def replace(self, expression: Expression, places: Mapping[object, Expression]) -> Expression:
        """The expression with parameters or variables replaced (keys of ``places``)."""
        if not places:
            return expression
        return self._replace(expression, places, {})

    def _replace(
        self,
        expression: Expression,
        places: Mapping[object, Expression],
        memo: dict[int, Expression],
    ) -> Expression:
        if isinstance(expression, Literal):
            return expression
        if isinstance(expression, Reference):
            return places.get(expression.variable, expression)
        if isinstance(expression, Parameter):
            return places.get(expression, expression)
        known = memo.get(id(expression))
        if known is not None:
            return known
        assert isinstance(expression, Operation), "calls are inlined first"
        operands = []
        changed = False
        for operand in expression.operands:
            new = self._replace(operand, places, memo)
            changed = changed or new is not operand
            operands.append(new)
        result: Expression = expression
        if changed:
            self._left -= 1
            if self._left < 0:
                raise JaniError(
                    f"the function calls expand to more than {MAX_NODES} operations",
                    path="$.functions",
                    hint="call fewer functions from functions",
                )
            result = Operation(expression.operator, tuple(operands), expression.kind)
        memo[id(expression)] = result
        return result


def as_kind(expression: Expression, kind: str) -> Expression:
    """The expression, converted if an int stands where a real is expected."""
    if kind == "real" and expression.kind == "int":
        return Operation(REAL, (expression,), "real")
    return expression


def reads(expressions: Iterable[Expression]) -> set[Variable]:
    """All variables read, also inside functions."""
    found: set[Variable] = set()
    seen: set[int] = set()
    stack = list(expressions)
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Reference):
            found.add(node.variable)
        elif isinstance(node, Operation):
            stack.extend(node.operands)
        elif isinstance(node, Call):
            stack.extend(node.arguments)
            stack.append(node.function.body)
    return found


@dataclass(frozen=True, slots=True)
class Update:
    """What one step does, over the state before it.

    Attributes:
        values: final value of every state variable that is assigned.
        checked: further expressions that are computed on the way and must have a value.
        agreeing: pairs assigned to one variable at once, which must be equal.
    """

    values: dict[Variable, Expression]
    checked: tuple[Expression, ...]
    agreeing: tuple[tuple[Expression, Expression], ...]


def sequence(assignments: Iterable[Assignment], inline: Inliner) -> Update:
    """Carry out assignments by ascending index, all of one index at once."""
    by_index: dict[int, list[Assignment]] = {}
    for assignment in assignments:
        by_index.setdefault(assignment.index, []).append(assignment)
    now: dict[object, Expression] = {}
    checked: list[Expression] = []
    agreeing: list[tuple[Expression, Expression]] = []
    transient_start: dict[object, Expression] = {}
    for index in sorted(by_index):
        before = dict(now)
        written: dict[object, Expression] = {}
        later = reads([a.value for i in by_index if i > index for a in by_index[i]])
        for assignment in by_index[index]:
            variable = assignment.variable
            places = _with_transients(assignment.value, before, transient_start)
            value = as_kind(inline.replace(inline.plain(assignment.value), places), variable.kind)
            if variable in written:
                if variable in later or not variable.transient:  # else a reward
                    agreeing.append((written[variable], value))
            else:
                written[variable] = value
            checked.append(value)
        now.update(written)
    values = {v: e for v, e in now.items() if isinstance(v, Variable) and not v.transient}
    final = {id(e) for e in values.values()}
    return Update(values, tuple(e for e in checked if id(e) not in final), tuple(agreeing))


def _with_transients(
    value: Expression, now: dict[object, Expression], start: dict[object, Expression]
) -> dict[object, Expression]:
    """``now`` and the initial values of the transients that ``value`` reads unassigned."""
    places = now
    for variable in reads([value]):
        if variable.transient and variable not in now:
            if variable not in start:
                assert variable.initial is not None, "the reader requires it"
                start[variable] = Literal(variable.initial, variable.kind)
            if places is now:
                places = dict(now)
            places[variable] = start[variable]
    return places
