"""The checked, typed tree that the JANI reader builds and everything else reads.

Names are resolved, constants substituted, bounds and initial values evaluated. Nodes are
immutable and compared by identity; a node may be shared, so a tree is really a DAG.
Recursive passes over deep trees run inside `safetest_gym.jani.depth.deep_recursion`.

Operators after reading (operand kinds -> kind). ``n`` marks operators that take two or
more operands: nested ``∧ ∨ min max`` and integer ``+ *`` are flattened in order; real
``+ *`` only from the left, so floating-point results are those of the document.

==============================================  ====================================
``∧ ∨`` (n), ``¬``                              bool -> bool
``= ≠``                                         two bools or two numbers -> bool
``< ≤``                                         numbers -> bool (``> ≥`` are swapped)
``+ *`` (n), ``-``, ``min max`` (n)             int if all int, else real
``%``                                           int, int -> int; the sign is the divisor's
``pow``                                         int if both int, else real
``/ log``                                       numbers -> real; ``log(x, base)``
``abs sgn``                                     int -> int, real -> real (sgn: int)
``floor ceil trc``                              number -> int
``ite``                                         bool, x, x -> x (real if one is real)
``sin cos tan cot sec csc`` and ``a…``, ``…h``  number -> real
==============================================  ====================================

``⇒`` is read as ``∨(¬a, b)``. ``∧ ∨ ite`` evaluate left to right and stop early, so a
guard like ``x ≠ 0 ∧ 6 / x > 2`` has a value everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from typing import Literal as Choice

__all__ = [
    "FALSE",
    "TRUE",
    "Assignment",
    "Automaton",
    "Call",
    "Destination",
    "Edge",
    "Expression",
    "FilterProperty",
    "Function",
    "Kind",
    "Literal",
    "Model",
    "Operation",
    "Parameter",
    "PlanningProperty",
    "Property",
    "Reference",
    "Start",
    "StartCondition",
    "StartValues",
    "UnsupportedProperty",
    "Value",
    "Variable",
    "Vector",
    "subexpressions",
]

Kind = Choice["bool", "int", "real"]
Value = bool | int | float


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A declared variable, or the hidden one that holds an automaton's location.

    Attributes:
        name: unique in the model; a local variable keeps its plain name where that is
            unique, else it is ``automaton.name``. A location variable is
            ``automaton.location``.
        lower: least value; None if unbounded. Always 0 and 1 for bool.
        initial: None if the document gives none (any value within the bounds is initial).
        locations: for a location variable, the location names by value; else empty.
        path: JSON path of the declaration.
    """

    name: str
    kind: Kind
    lower: Value | None
    upper: Value | None
    initial: Value | None
    transient: bool = False
    locations: tuple[str, ...] = ()
    path: str = "$"


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A value; ints have any size, reals are finite."""

    value: Value
    kind: Kind


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The value of a variable."""

    variable: Variable

    @property
    def kind(self) -> Kind:
        """Kind of the variable."""
        return self.variable.kind


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """A function's parameter, inside its body."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """An operator applied to operands (see the module's table)."""

    operator: str
    operands: tuple[Expression, ...]
    kind: Kind


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A named expression with parameters; never recursive, directly or through others."""

    name: str
    parameters: tuple[Parameter, ...]
    kind: Kind
    body: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A function applied to arguments; an int argument may meet a real parameter."""

    function: Function
    arguments: tuple[Expression, ...]

    @property
    def kind(self) -> Kind:
        """Kind of the function's result."""
        return self.function.kind


Expression = Literal | Reference | Parameter | Operation | Call

TRUE = Literal(True, "bool")
FALSE = Literal(False, "bool")


def subexpressions(roots: Iterable[Expression]) -> list[Expression]:
    """Every node below and in ``roots`` once, after those it is made of; no recursion.

    Bodies of called functions are included.
    """
    found: dict[Expression, None] = {}
    stack = [(root, False) for root in roots]
    while stack:
        node, is_complete = stack.pop()
        if node in found:
            continue
        parts: tuple[Expression, ...] = ()
        if isinstance(node, Operation):
            parts = node.operands
        elif isinstance(node, Call):
            parts = (*node.arguments, node.function.body)
        if is_complete or not parts:
            found[node] = None
            continue
        stack.append((node, True))
        for part in parts:
            stack.append((part, False))
    return list(found)


class _Shallow:
    """Pickles and copies without deep recursion, however deep the expressions are.

    Nodes are saved parts first, so that each one refers to known parts only.
    """

    __slots__ = ()

    def _roots(self) -> list[Expression | None]:
        return [getattr(self, f.name) for f in fields(self)]  # type: ignore[arg-type]  # a dataclass

    def __reduce__(self) -> tuple[object, ...]:
        nodes = subexpressions([root for root in self._roots() if isinstance(root, _NODES)])
        values = tuple([getattr(self, f.name) for f in fields(self)])  # type: ignore[arg-type]
        return _rebuild, (type(self), nodes, values)


_NODES = (Literal, Reference, Parameter, Operation, Call)


def _rebuild(cls: type[Any], _: list[Expression], values: tuple[object, ...]) -> Any:
    return cls(*values)


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """``variable := value``.

    Assignments of one index happen at once, reading what lower indices left. A transient
    variable that is read here has its initial value until it is assigned.
    """

    variable: Variable
    value: Expression
    index: int = 0
    path: str = "$"


@dataclass(frozen=True, slots=True, eq=False)
class Destination:
    """One probabilistic alternative of an edge; ``probability`` None means 1."""

    location: int
    probability: Expression | None
    assignments: tuple[Assignment, ...]
    path: str = "$"


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """A guarded command; ``action`` None means silent.

    Guard and probabilities read transient variables as the location gives them; the
    reader has put those expressions in their place.
    """

    action: str | None
    location: int
    guard: Expression
    destinations: tuple[Destination, ...]
    path: str = "$"


@dataclass(frozen=True, slots=True, eq=False)
class Automaton:
    """One instance of an automaton in the composition, with its own local variables.

    ``edges`` include the self-loops that input-enabling adds (they come last).
    ``location_variable`` is None when there is one location only.
    """

    name: str
    locations: tuple[str, ...]
    location_variable: Variable | None
    initial_locations: tuple[int, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """A synchronisation: per automaton of the model, the action it takes part with, or None.

    ``result`` None means that the outcome is silent.
    """

    synchronise: tuple[str | None, ...]
    result: str | None


@dataclass(frozen=True, slots=True, eq=False)
class StartValues:
    """Start states listed, as values in the order of ``Model.variables``."""

    states: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class StartCondition(_Shallow):
    """All states within the variables' bounds that satisfy a condition."""

    condition: Expression


Start = StartValues | StartCondition


@dataclass(frozen=True, slots=True, eq=False)
class PlanningProperty(_Shallow):
    """A ``PA`` property: goal, failure condition, start states and shaping terms."""

    name: str
    goal: Expression | None
    failure: Expression | None
    start: Start | None
    goal_potential: Expression | None = None
    goal_reward: Expression | None = None
    step_reward: Expression | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FilterProperty(_Shallow):
    """A standard property whose ``F``/``U`` target can serve as goal or failure condition."""

    name: str
    target: Expression


@dataclass(frozen=True, slots=True, eq=False)
class UnsupportedProperty:
    """A property that was recognised as such but not understood, and why.

    Attributes:
        is_planning: a ``PA`` property with errors, which somebody surely wants to be used.
    """

    name: str
    reason: str
    is_planning: bool = False


Property = PlanningProperty | FilterProperty | UnsupportedProperty


@dataclass(frozen=True, slots=True, eq=False)
class Model(_Shallow):
    """A checked model.

    Attributes:
        type: ``lts``, ``mdp`` or ``dtmc``.
        variables: the state variables: globals, then each automaton's locals, then one
            location variable per automaton with several locations.
        transients: transient variables; no part of the state.
        actions: labels a synchronisation can result in, in declaration order.
        vectors: synchronisations of labelled edges; silent edges (``Edge.action`` None)
            happen on their own and are not listed here.
        initial: condition on initial states besides initial values and locations
            (all restrict-initial together).
        digest: hex SHA-256 over everything that decides the model's behaviour (the
            document and the constants given), the same in every process.
    """

    name: str
    type: Choice["lts", "mdp", "dtmc"]
    constants: Mapping[str, Value]
    variables: tuple[Variable, ...]
    transients: tuple[Variable, ...]
    actions: tuple[str, ...]
    automata: tuple[Automaton, ...]
    vectors: tuple[Vector, ...]
    initial: Expression
    properties: tuple[Property, ...]
    digest: str
    metadata: Mapping[str, object] = field(default_factory=dict)
    scope: Mapping[str, object] = field(default_factory=dict)

    def _roots(self) -> list[Expression | None]:
        roots: list[Expression | None] = [self.initial]
        for automaton in self.automata:
            for edge in automaton.edges:
                roots.append(edge.guard)
                for destination in edge.destinations:
                    roots.append(destination.probability)
                    roots += [assignment.value for assignment in destination.assignments]
        for part in self.scope.values():
            if isinstance(part, dict):
                roots += [getattr(item, "body", item) for item in part.values()]
        return roots
