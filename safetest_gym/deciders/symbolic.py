"""Expressions over bounded variables as decision diagrams.

The value of an expression is a `Partition`: for each value it can have, the condition
under which it has it. Conditions exclude each other; where none holds, the expression has
no value. So every operator works as in `engine.evaluation`, the slow twin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from safetest_gym.engine.evaluation import Argument, Parameters, as_kind, bind, evaluate
from safetest_gym.errors import ConfigError, EvaluationError
from safetest_gym.jani.depth import deep_recursion
from safetest_gym.jani.tree import (
    Call,
    Expression,
    Kind,
    Literal,
    Operation,
    Parameter,
    Reference,
    Value,
    Variable,
)

__all__ = ["Condition", "Encoding", "Environment", "Partition"]

Condition = Any
"""A decision diagram; the package has no types."""

Partition = Mapping[Value, Condition]
Environment = Mapping[Variable, Partition]


class Encoding:
    """Bits for the variables of a state, and expressions over them.

    Attributes:
        bdd: the manager of all diagrams.
        state: the partition of each variable.
        valid: all variables are within their bounds.
    """

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.bdd = _manager()
        self._bits: dict[Variable, tuple[str, ...]] = {}
        self._applied: dict[tuple[str, Kind, tuple[Value, ...]], Value | None] = {}
        self._known: dict[Expression, Partition] = {}
        self.state: dict[Variable, Partition] = {}
        self.valid = self.bdd.true
        for number, variable in enumerate(variables):
            lower, upper = _bounds(variable)
            names = [f"x{number}_{bit}" for bit in range((upper - lower).bit_length())]
            if names:
                self.bdd.declare(*names)
            self._bits[variable] = tuple(names)
            partition: dict[Value, Condition] = {}
            for value in range(lower, upper + 1):
                key = bool(value) if variable.kind == "bool" else value
                partition[key] = self._equals(names, value - lower)
            self.state[variable] = partition
            self.valid &= self.union(partition.values())

    def _equals(self, names: Sequence[str], code: int) -> Condition:
        return self.bdd.cube({name: bool(code >> bit & 1) for bit, name in enumerate(names)})

    def union(self, conditions: Any) -> Condition:
        """Does one of them hold?"""
        found = self.bdd.false
        for condition in conditions:
            found |= condition
        return found

    def bits_after(self, variable: Variable, after: Partition) -> dict[str, Condition]:
        """What the bits of ``variable`` become; values out of bounds are left out."""
        lower, upper = _bounds(variable)
        return {
            name: self.union(
                condition
                for value, condition in after.items()
                if lower <= value <= upper and (int(value) - lower) >> bit & 1
            )
            for bit, name in enumerate(self._bits[variable])
        }

    def within(self, variable: Variable, after: Partition) -> Condition:
        """Does ``variable`` get a value, and one within its bounds?"""
        lower, upper = _bounds(variable)
        return self.union(c for value, c in after.items() if lower <= value <= upper)

    def bits_of(self, variable: Variable, value: int) -> dict[str, bool]:
        """The bits of a value."""
        code = value - _bounds(variable)[0]
        return {name: bool(code >> bit & 1) for bit, name in enumerate(self._bits[variable])}

    def partition(self, expression: Expression, environment: Environment) -> Partition:
        """The values of ``expression`` where variables have the values given."""
        with deep_recursion():
            return self._partition(expression, environment, {})

    def _partition(
        self, expression: Expression, environment: Environment, parameters: Parameters
    ) -> Partition:
        plain = environment is self.state and not parameters
        if plain and expression in self._known:
            return self._known[expression]
        found = self._compute(expression, environment, parameters)
        if plain:
            self._known[expression] = found
        return found

    def _compute(
        self, expression: Expression, environment: Environment, parameters: Parameters
    ) -> Partition:
        if isinstance(expression, Literal):
            return {as_kind(expression.value, expression.kind): self.bdd.true}
        if isinstance(expression, Reference):
            return environment[expression.variable]
        if isinstance(expression, Parameter):
            argument: Argument = parameters[expression]
            inner = self._partition(argument.expression, environment, argument.parameters)
            return self._converted(inner, expression.kind)
        if isinstance(expression, Call):
            bound = bind(expression, parameters)
            inner = self._partition(expression.function.body, environment, bound)
            return self._converted(inner, expression.kind)
        if expression.operator in ("∧", "∨"):
            return self._connective(expression, environment, parameters)
        if expression.operator == "ite":
            return self._if(expression, environment, parameters)
        parts = [self._partition(o, environment, parameters) for o in expression.operands]
        if len(parts) == 1:
            return self._combined(expression, [parts[0]])
        found = self._combined(expression, parts[:2])
        for part in parts[2:]:
            found = self._combined(expression, [found, part])
        return found

    def _connective(
        self, expression: Operation, environment: Environment, parameters: Parameters
    ) -> Partition:
        """Operands after a decisive one are not looked at."""
        decisive = expression.operator == "∨"
        decided, open_ = self.bdd.false, self.bdd.true
        for operand in expression.operands:
            part = self._partition(operand, environment, parameters)
            decided |= open_ & part.get(decisive, self.bdd.false)
            open_ &= part.get(not decisive, self.bdd.false)
        return self._cleaned({decisive: decided, not decisive: open_})

    def _if(
        self, expression: Operation, environment: Environment, parameters: Parameters
    ) -> Partition:
        condition = self._partition(expression.operands[0], environment, parameters)
        found: dict[Value, Condition] = {}
        for holds, branch in ((True, 1), (False, 2)):
            here = condition.get(holds, self.bdd.false)
            if here == self.bdd.false:
                continue
            part = self._partition(expression.operands[branch], environment, parameters)
            for value, when in self._converted(part, expression.kind).items():
                found[value] = found.get(value, self.bdd.false) | (here & when)
        return self._cleaned(found)

    def _converted(self, partition: Partition, kind: Kind) -> Partition:
        """Ints where reals are expected become reals."""
        if kind != "real":
            return partition
        found: dict[Value, Condition] = {}
        for value, when in partition.items():
            real = as_kind(value, "real")
            found[real] = found.get(real, self.bdd.false) | when
        return found

    def _combined(self, expression: Operation, parts: Sequence[Partition]) -> Partition:
        combinations: list[tuple[tuple[Value, ...], Condition]] = [((), self.bdd.true)]
        for part in parts:
            combinations = [
                ((*values, value), both)
                for values, when in combinations
                for value, here in part.items()
                if (both := when & here) != self.bdd.false
            ]
        found: dict[Value, Condition] = {}
        for values, when in combinations:
            value = self._apply(expression, values)
            if value is not None:
                found[value] = found.get(value, self.bdd.false) | when
        return found

    def _apply(self, expression: Operation, values: tuple[Value, ...]) -> Value | None:
        """The operator's value for these operands, None if it has none."""
        key = expression.operator, expression.kind, values
        if key not in self._applied:
            operands = tuple(Literal(v, _kind_of(v)) for v in values)
            operation = Operation(expression.operator, operands, expression.kind)
            try:
                self._applied[key] = as_kind(evaluate(operation, {}), expression.kind)
            except EvaluationError:
                self._applied[key] = None
        return self._applied[key]

    def _cleaned(self, partition: Mapping[Value, Condition]) -> Partition:
        return {v: c for v, c in partition.items() if c != self.bdd.false}


def _kind_of(value: Value) -> Kind:
    if isinstance(value, bool):
        return "bool"
    return "real" if isinstance(value, float) else "int"


def _bounds(variable: Variable) -> tuple[int, int]:
    if variable.kind == "bool":
        return 0, 1
    if variable.kind == "real" or variable.lower is None or variable.upper is None:
        raise ConfigError(
            f"propu-bdd needs bounded variables, but {variable.name!r} is "
            f"{'real' if variable.kind == 'real' else 'an int without bounds'}; use otf"
        )
    return int(variable.lower), int(variable.upper)


def _manager() -> Any:
    """A manager from the package dd: the one written in C, if it is there."""
    try:
        from dd import cudd
    except ImportError:
        pass
    else:
        return cudd.BDD()
    try:
        from dd import autoref
    except ImportError:
        raise ConfigError("propu-bdd needs the package dd; install safetest-gym[bdd]") from None
    return autoref.BDD()
