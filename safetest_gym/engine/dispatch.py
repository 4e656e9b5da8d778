"""Find the enabled edges of a state with few tests.

Guards that fix a variable are reached by a switch on it; the variable is chosen that
saves most tests, and again within every case and for the edges that it does not fix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from safetest_gym.engine.ir import FunctionText
from safetest_gym.engine.lowering import Lowering
from safetest_gym.engine.prepared import PreparedEdge
from safetest_gym.engine.ranges import Ranges
from safetest_gym.jani.tree import Expression, Literal, Operation, Reference, Variable

__all__ = ["Dispatcher", "Leaf"]

Limits = dict[Variable, tuple[int | float, int | float]]
Leaf = Callable[[PreparedEdge, Lowering, str], str]
"""Emits what happens at an enabled edge; takes and returns the carried register."""


class Dispatcher:
    """Emits the tests of many guards into one function.

    Args:
        leaf: called where an edge is enabled; may use what its guard tells about ranges.
        carry_kind: IR type of the value carried along (a counter).
    """

    def __init__(
        self, function: FunctionText, lowering: Lowering, leaf: Leaf, carry_kind: str = "i64"
    ) -> None:
        self._fn = function
        self._lowering = lowering
        self._leaf = leaf
        self._kind = carry_kind

    def run(self, edges: Sequence[PreparedEdge], carry: str) -> str:
        """Test all ``edges``; return the carried register after the last."""
        limited = [(edge, _limits(edge.conjuncts, self._lowering.ranges)) for edge in edges]
        return self._run(limited, {}, carry)

    def _run(self, edges: list[tuple[PreparedEdge, Limits]], known: Limits, carry: str) -> str:
        while True:
            variable = _best_variable(edges, known)
            if variable is None:
                break
            fixed: dict[int, list[tuple[PreparedEdge, Limits]]] = {}
            rest = []
            for edge, limits in edges:
                lower, upper = limits.get(variable, (0, 1))
                if lower == upper:
                    fixed.setdefault(int(lower), []).append((edge, limits))
                else:
                    rest.append((edge, limits))
            carry = self._switch(variable, fixed, known, carry)
            edges = rest
        lowering = self._lowering.knowing(Ranges(known))
        for edge, limits in edges:
            carry = self._test(edge, limits, known, lowering, carry)
        return carry

    def _switch(
        self,
        variable: Variable,
        fixed: dict[int, list[tuple[PreparedEdge, Limits]]],
        known: Limits,
        carry: str,
    ) -> str:
        fn = self._fn
        value = self._lowering.knowing(Ranges(known)).value(Reference(variable))
        if variable.kind == "bool":
            value = fn.op(f"zext i1 {value} to i64")
        join = fn.label("join")
        cases = [(case, fn.label("case")) for case in sorted(fixed)]
        incoming = [(carry, fn.block)]
        fn.switch(value, join, cases)
        for case, label in cases:
            fn.start(label)
            with fn.scope():
                after = self._run(fixed[case], {**known, variable: (case, case)}, carry)
            incoming.append((after, fn.block))
            fn.jump(join)
        fn.start(join)
        return fn.phi(self._kind, incoming)

    def _test(
        self,
        edge: PreparedEdge,
        limits: Limits,
        known: Limits,
        lowering: Lowering,
        carry: str,
    ) -> str:
        fn = self._fn
        enabled = lowering.connective("∧", edge.conjuncts) if edge.conjuncts else "true"
        if enabled == "false":
            return carry
        narrowed = _narrow(known, limits)
        inside = lowering.knowing(Ranges(narrowed))
        if enabled == "true":
            return self._leaf(edge, inside, carry)
        then, join = fn.label("enabled"), fn.label("join")
        incoming = [(carry, fn.block)]
        fn.branch(enabled, then, join)
        fn.start(then)
        with fn.scope():
            incoming.append((self._leaf(edge, inside, carry), fn.block))
        fn.jump(join)
        fn.start(join)
        return fn.phi(self._kind, incoming)


def _best_variable(
    edges: Sequence[tuple[PreparedEdge, Limits]], known: Mapping[Variable, object]
) -> Variable | None:
    """The variable whose switch saves most guard tests; None if none saves two."""
    seen: dict[Variable, dict[int, int]] = {}
    for _, limits in edges:
        for variable, (lower, upper) in limits.items():
            if lower == upper and variable.kind != "real" and variable not in known:
                counts = seen.setdefault(variable, {})
                counts[int(lower)] = counts.get(int(lower), 0) + 1
    best, best_saving = None, 2.0
    for variable, counts in seen.items():
        total = sum(counts.values())
        saving = total - total / max(2, len(counts))
        if saving > best_saving:
            best, best_saving = variable, saving
    return best


def _narrow(known: Limits, limits: Limits) -> Limits:
    result = dict(known)
    for variable, (lower, upper) in limits.items():
        if variable in result:
            before = result[variable]
            lower, upper = max(lower, before[0]), min(upper, before[1])
        if lower <= upper:
            result[variable] = (lower, upper)
    return result


def _limits(conjuncts: Sequence[Expression], ranges: Ranges) -> Limits:
    """Bounds that a guard puts on variables, read off before anything in it can fail."""
    limits: Limits = {}
    for conjunct in conjuncts:
        if ranges.of(conjunct).fails:
            break
        found = _limit(conjunct)
        if found is None:
            continue
        variable, lower, upper = found
        before = limits.get(variable)
        if before is None:
            bounds = ranges.variable(variable)
            before = (bounds.lower, bounds.upper)
        lower, upper = max(lower, before[0]), min(upper, before[1])
        if lower <= upper:
            limits[variable] = (lower, upper)
    return limits


_INF = float("inf")


def _limit(atom: Expression) -> tuple[Variable, int | float, int | float] | None:
    if isinstance(atom, Reference):
        return atom.variable, 1, 1
    if not isinstance(atom, Operation):
        return None
    if atom.operator == "¬" and isinstance(atom.operands[0], Reference):
        return atom.operands[0].variable, 0, 0
    if atom.operator not in ("=", "<", "≤"):
        return None
    left, right = atom.operands
    if isinstance(left, Reference) and isinstance(right, Literal):
        variable, value, flipped = left.variable, right.value, False
    elif isinstance(right, Reference) and isinstance(left, Literal):
        variable, value, flipped = right.variable, left.value, True
    else:
        return None
    if (right.kind == "real" or left.kind == "real") and variable.kind != "real":
        return None
    if variable.kind == "real" and isinstance(value, int) and abs(value) > 2**53:
        return None
    if atom.operator == "=":
        return variable, value, value
    strict = 1 if atom.operator == "<" and variable.kind == "int" else 0
    return (variable, value + strict, _INF) if flipped else (variable, -_INF, value - strict)
