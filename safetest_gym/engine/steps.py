"""Emit the functions that compute a state's successors.

Rows of successors go to three arrays of the caller: the packed state, the probability
and the number of the composed edge. Rows of one composed edge are adjacent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from safetest_gym.engine.composition import Composition, Rule
from safetest_gym.engine.dispatch import Dispatcher, Leaf
from safetest_gym.engine.ir import FunctionText, real_constant
from safetest_gym.engine.layout import Field, Layout
from safetest_gym.engine.lowering import Lowering
from safetest_gym.engine.prepared import Preparation, PreparedEdge
from safetest_gym.engine.ranges import Ranges
from safetest_gym.engine.rewrite import Update
from safetest_gym.jani.tree import Expression, Model, Operation, Reference

__all__ = ["StepCode", "begin", "load_words"]

ROW_ARGUMENTS = (
    "ptr noalias readonly %state, ptr noalias %succ, ptr noalias %prob, ptr noalias %number"
)
ROW_PASS = "ptr %state, ptr %succ, ptr %prob, ptr %number"
TOLERANCE = real_constant(1e-6)
MARGIN = 1e-9

Write = Callable[[Update, str, Lowering, str], str]
"""Stores one destination with its probability; takes and returns the row count."""


def load_words(fn: FunctionText, num_words: int) -> list[str]:
    """Registers with the words of ``%state``."""
    words = []
    for word in range(num_words):
        place = fn.op(f"getelementptr i64, ptr %state, i64 {word}")
        words.append(fn.op(f"load i64, ptr {place}"))
    return words


def begin(fn: FunctionText, layout: Layout) -> tuple[list[str], Lowering]:
    """Load the state; return its words and a lowering that knows nothing more."""
    words = load_words(fn, layout.num_words)
    return words, Lowering(fn, layout, words, Ranges({}))


@dataclass(frozen=True, slots=True)
class FieldBits:
    """What a destination writes to one word: constant mask and a register of bits."""

    mask: int
    bits: str


class StepCode:
    """Code for all rules of a model."""

    def __init__(self, model: Model, composition: Composition, layout: Layout) -> None:
        self.model = model
        self.composition = composition
        self.layout = layout
        self.preparation = Preparation(model, composition)
        self._fields = {field.variable: field for field in layout.fields}
        self.direct: list[list[PreparedEdge]] = [[] for _ in composition.labels]
        self.products: list[list[Rule]] = [[] for _ in composition.labels]
        self._alone: list[list[Expression]] = [[] for _ in composition.labels]
        for rule in composition.rules:
            if len(rule.participants) == 1:
                participant = rule.participants[0]
                for position, edge in enumerate(participant.edges):
                    number = rule.base + position
                    prepared = self.preparation.single(participant.automaton, edge, number)
                    self.direct[rule.label].append(prepared)
            elif self.preparation.is_tangled(rule):
                self.direct[rule.label].extend(self.preparation.combinations(rule))
                for participant in rule.participants:
                    for edge in participant.edges:
                        conjuncts = self.preparation.guard(participant.automaton, edge)
                        self._alone[rule.label].append(Operation("∧", conjuncts, "bool"))
            else:
                self.products[rule.label].append(rule)

    def rows(self, label: int) -> int:
        """The most rows that the edges of ``label`` outside products can give."""
        return sum(len(edge.destinations) for edge in self.direct[label])

    def emit_direct(self, fn: FunctionText, lowering: Lowering, label: int, count: str) -> str:
        """Rows of all enabled edges of ``label`` that need no product."""
        words = lowering.words

        def write(update: Update, probability: str, inside: Lowering, row: str) -> str:
            return self._write_row(fn, words, update, probability, inside, row, number[0])

        number = [0]

        def leaf(edge: PreparedEdge, inside: Lowering, row: str) -> str:
            number[0] = edge.number
            return self.destinations(fn, edge, inside, row, write)

        return self.dispatch(fn, lowering, label, leaf, count)

    def dispatch(
        self, fn: FunctionText, lowering: Lowering, label: int, leaf: Leaf, carry: str
    ) -> str:
        """Run ``leaf`` for every enabled edge of ``label`` that needs no product.

        Guards of combined edges are evaluated one by one first: each must have a value even
        where another one is false.
        """
        for guard in self._alone[label]:
            if lowering.ranges.of(guard).fails:
                lowering.value(guard)
        return Dispatcher(fn, lowering, leaf).run(self.direct[label], carry)

    def destinations(
        self,
        fn: FunctionText,
        edge: PreparedEdge,
        lowering: Lowering,
        count: str,
        write: Write,
    ) -> str:
        """Write every destination of positive probability."""
        for weights in edge.weights:
            self._require_sum(fn, [self._chance(fn, weight, lowering)[0] for weight in weights])
        destinations = edge.destinations
        chances = [self._chance(fn, d.probability, lowering) for d in destinations]
        for destination, (chance, (lower, upper)) in zip(destinations, chances, strict=True):
            if upper <= 0:
                continue
            if lower > 0:
                count = write(destination.update, chance, lowering, count)
                continue
            then, join = fn.label("possible"), fn.label("join")
            incoming = [(count, fn.block)]
            fn.branch(fn.op(f"fcmp ogt double {chance}, {real_constant(0.0)}"), then, join)
            fn.start(then)
            with fn.scope():
                incoming.append((write(destination.update, chance, lowering, count), fn.block))
            fn.jump(join)
            fn.start(join)
            count = fn.phi("i64", incoming)
        return count

    def _chance(
        self, fn: FunctionText, probability: Expression | None, lowering: Lowering
    ) -> tuple[str, tuple[float, float]]:
        """Register or constant, and its range."""
        if probability is None:
            return real_constant(1.0), (1.0, 1.0)
        found = lowering.ranges.of(probability)
        if found.constant:
            value = float(found.lower)
            if not -MARGIN <= value <= 1 + MARGIN:
                fn.fail_if("true")
            return real_constant(value), (value, value)
        register = lowering.real(probability)
        if found.fails or found.lower < 0 or found.upper > 1:
            low = fn.op(f"fcmp olt double {register}, {real_constant(-MARGIN)}")
            high = fn.op(f"fcmp ogt double {register}, {real_constant(1 + MARGIN)}")
            fn.fail_if(fn.op(f"or i1 {low}, {high}"))
        return register, (float(found.lower), float(found.upper))

    def _require_sum(self, fn: FunctionText, chances: Sequence[str]) -> None:
        total = chances[0]
        for chance in chances[1:]:
            total = fn.op(f"fadd double {total}, {chance}")
        off = fn.op(f"fsub double {total}, {real_constant(1.0)}")
        size = fn.op(f"call double @llvm.fabs.f64(double {off})")
        fn.fail_if(fn.op(f"fcmp ugt double {size}, {TOLERANCE}"))

    def effect(
        self, fn: FunctionText, update: Update, lowering: Lowering, *, clashing: bool = False
    ) -> list[FieldBits]:
        """Per word, what ``update`` writes; leaves the function where it has no value.

        With ``clashing``, writing a variable's own value counts: others may write another.
        """
        for checked in update.checked:
            if lowering.ranges.of(checked).fails:
                lowering.value(checked)
        for left, right in update.agreeing:
            kind = "double" if left.kind == "real" else {"bool": "i1", "int": "i64"}[left.kind]
            test = "fcmp une" if kind == "double" else "icmp ne"
            a, b = lowering.value(left), lowering.value(right)
            fn.fail_if(fn.op(f"{test} {kind} {a}, {b}"))
        parts: list[FieldBits] = [FieldBits(0, "0") for _ in range(self.layout.num_words)]
        for variable, value in update.values.items():
            field = self._fields[variable]
            if not clashing and isinstance(value, Reference) and value.variable is variable:
                continue
            bits = _field_bits(fn, field, value, lowering)
            if field.width == 0:
                continue
            old = parts[field.word]
            if field.shift:
                bits = _fold_shift(fn, bits, field.shift)
            if old.mask:
                bits = _fold_or(fn, old.bits, bits)
            parts[field.word] = FieldBits(old.mask | field.mask, bits)
        return parts

    def _write_row(
        self,
        fn: FunctionText,
        words: Sequence[str],
        update: Update,
        probability: str,
        lowering: Lowering,
        row: str,
        number: int,
    ) -> str:
        new = [
            merge(fn, word, part)
            for word, part in zip(words, self.effect(fn, update, lowering), strict=True)
        ]
        return store_row(fn, new, probability, str(number), row)


def _field_bits(fn: FunctionText, field: Field, value: Expression, lowering: Lowering) -> str:
    """Check the bounds; return the field's unshifted bits as an i64."""
    declared = field.variable
    register = lowering.value(value)
    found = lowering.ranges.of(value)
    kind = "double" if declared.kind == "real" else "i64"
    if declared.kind == "bool":
        if register in ("true", "false"):
            return "1" if register == "true" else "0"
        return fn.op(f"zext i1 {register} to i64")
    tests = ("fcmp olt", "fcmp ogt") if kind == "double" else ("icmp slt", "icmp sgt")
    convert = real_constant if kind == "double" else (lambda bound: str(int(bound)))
    if declared.lower is not None and found.lower < declared.lower:
        bound = convert(declared.lower)
        fn.fail_if(fn.op(f"{tests[0]} {kind} {register}, {bound}"))
    if declared.upper is not None and found.upper > declared.upper:
        bound = convert(declared.upper)
        fn.fail_if(fn.op(f"{tests[1]} {kind} {register}, {bound}"))
    if kind == "double":
        unsigned = fn.op(f"fadd double {register}, {real_constant(0.0)}")  # one zero only
        return fn.op(f"bitcast double {unsigned} to i64")
    if not field.offset:
        return register
    if not register.startswith("%"):
        return str(int(register) - field.offset)
    return fn.op(f"sub nsw i64 {register}, {field.offset}")


def merge(fn: FunctionText, word: str, part: FieldBits) -> str:
    """The word with the masked bits replaced."""
    if part.mask == 0:
        return word
    if part.mask == 2**64 - 1:
        return part.bits
    kept = fn.op(f"and i64 {word}, {_signed(~part.mask)}")
    return kept if part.bits == "0" else fn.op(f"or i64 {kept}, {part.bits}")


def store_row(
    fn: FunctionText, words: Sequence[str], probability: str, number: str, row: str
) -> str:
    """Append a row to the caller's arrays; return the new count."""
    width = len(words)
    base = row if width == 1 else fn.op(f"mul i64 {row}, {width}")
    for index, word in enumerate(words):
        place = base if index == 0 else fn.op(f"add i64 {base}, {index}")
        fn.do(f"store i64 {word}, ptr {fn.op(f'getelementptr i64, ptr %succ, i64 {place}')}")
    where = fn.op(f"getelementptr double, ptr %prob, i64 {row}")
    fn.do(f"store double {probability}, ptr {where}")
    where = fn.op(f"getelementptr i64, ptr %number, i64 {row}")
    fn.do(f"store i64 {number}, ptr {where}")
    return fn.op(f"add i64 {row}, 1")


def _signed(bits: int) -> int:
    bits &= 2**64 - 1
    return bits - 2**64 if bits >= 2**63 else bits


def _fold_shift(fn: FunctionText, bits: str, shift: int) -> str:
    if bits.startswith("%"):
        return fn.op(f"shl i64 {bits}, {shift}")
    return str(_signed(int(bits) << shift))


def _fold_or(fn: FunctionText, left: str, right: str) -> str:
    if left.startswith("%") or right.startswith("%"):
        return fn.op(f"or i64 {left}, {right}")
    return str(_signed(int(left) | int(right)))
