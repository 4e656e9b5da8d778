"""Emit synchronisations of several automata as loops over what each one can do.

``@enabled`` lists the enabled edges of every (automaton, action) once per state; a rule
whose participants all have one turns their destinations into records (probability, mask
and bits per word) and writes the product of the records. Code grows with the number of
edges, not with the number of their combinations.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from safetest_gym.engine.composition import Participant, Rule
from safetest_gym.engine.dispatch import Dispatcher
from safetest_gym.engine.ir import FULL, FunctionText, real_constant
from safetest_gym.engine.lowering import Lowering
from safetest_gym.engine.prepared import PreparedEdge
from safetest_gym.engine.rewrite import Update
from safetest_gym.engine.steps import StepCode, Write, begin, store_row

__all__ = ["ProductCode"]


@dataclass(frozen=True, slots=True)
class Slot:
    """Enabled edges of one participant: a count at ``place``, then edge positions."""

    index: int
    place: int
    participant: Participant
    edges: tuple[PreparedEdge, ...]

    @property
    def rows(self) -> int:
        """The most records it can give."""
        return sum(len(edge.destinations) for edge in self.edges)


class ProductCode:
    """Code for the rules of a model that need products."""

    def __init__(self, steps: StepCode) -> None:
        self._steps = steps
        self._width = steps.layout.num_words
        self._slots: dict[Participant, Slot] = {}
        place = 0
        for rule in itertools.chain.from_iterable(steps.products):
            for participant in rule.participants:
                if participant not in self._slots:
                    edges = tuple(
                        steps.preparation.single(participant.automaton, edge, position)
                        for position, edge in enumerate(participant.edges)
                    )
                    self._slots[participant] = Slot(len(self._slots), place, participant, edges)
                    place += 1 + len(edges)
        self.list_size = place

    def functions(self) -> list[str]:
        """``@enabled`` and one ``@records_N`` per slot; empty without products."""
        if not self._slots:
            return []
        return [self._enabled(), *(self._records(slot) for slot in self._slots.values())]

    def _enabled(self) -> str:
        fn = FunctionText(
            "enabled", "ptr noalias readonly %state, ptr noalias %lists", visible=False
        )
        _, lowering = begin(fn, self._steps.layout)
        by_automaton: dict[int, list[Slot]] = {}
        for slot in self._slots.values():
            where = fn.op(f"getelementptr i64, ptr %lists, i64 {slot.place}")
            fn.do(f"store i64 0, ptr {where}")
            by_automaton.setdefault(slot.participant.automaton, []).append(slot)
        for slots in by_automaton.values():
            owner = {id(edge): slot for slot in slots for edge in slot.edges}
            edges = [edge for slot in slots for edge in slot.edges]

            def leaf(
                edge: PreparedEdge, _: Lowering, carry: str, owner: dict[int, Slot] = owner
            ) -> str:
                head = fn.op(f"getelementptr i64, ptr %lists, i64 {owner[id(edge)].place}")
                count = fn.op(f"load i64, ptr {head}")
                more = fn.op(f"add i64 {count}, 1")
                fn.do(f"store i64 {more}, ptr {head}")
                fn.do(
                    f"store i64 {edge.number}, "
                    f"ptr {fn.op(f'getelementptr i64, ptr {head}, i64 {more}')}"
                )
                return carry

            Dispatcher(fn, lowering, leaf).run(edges, "0")
        fn.ret(0)
        return fn.text()

    def _records(self, slot: Slot) -> str:
        """Records of the enabled edges of ``slot``, and where each edge's begin."""
        fn = FunctionText(
            f"records_{slot.index}",
            "ptr noalias readonly %state, ptr noalias readonly %list, ptr noalias %ends, "
            "ptr noalias %chance, ptr noalias %parts",
            visible=False,
        )
        _, lowering = begin(fn, self._steps.layout)
        at, row = fn.slot("i64"), fn.slot("i64")
        fn.do(f"store i64 0, ptr {at}")
        fn.do(f"store i64 0, ptr {row}")
        fn.do("store i64 0, ptr %ends")
        count = fn.op("load i64, ptr %list")
        head, body, after, done = (fn.label(x) for x in ("head", "body", "after", "done"))
        fn.jump(head)
        fn.start(head)
        position = fn.op(f"load i64, ptr {at}")
        fn.branch(fn.op(f"icmp slt i64 {position}, {count}"), body, done)
        fn.start(body)
        following = fn.op(f"add i64 {position}, 1")
        fn.do(f"store i64 {following}, ptr {at}")
        edge = fn.op(f"load i64, ptr {fn.op(f'getelementptr i64, ptr %list, i64 {following}')}")
        begun = fn.op(f"load i64, ptr {row}")
        cases = [(edge.number, fn.label("edge")) for edge in slot.edges]
        fn.switch(edge, after, cases)
        for prepared, (_, label) in zip(slot.edges, cases, strict=True):
            fn.start(label)
            with fn.scope():
                end = self._steps.destinations(
                    fn, prepared, lowering, begun, self._write_record(fn)
                )
                fn.do(f"store i64 {end}, ptr {row}")
            fn.jump(after)
        fn.start(after)
        end = fn.op(f"load i64, ptr {row}")
        fn.do(f"store i64 {end}, ptr {fn.op(f'getelementptr i64, ptr %ends, i64 {following}')}")
        fn.jump(head)
        fn.start(done)
        fn.ret(0)
        return fn.text()

    def _write_record(self, fn: FunctionText) -> Write:
        width = self._width

        def write(update: Update, probability: str, lowering: Lowering, row: str) -> str:
            parts = self._steps.effect(fn, update, lowering, clashing=True)
            where = fn.op(f"getelementptr double, ptr %chance, i64 {row}")
            fn.do(f"store double {probability}, ptr {where}")
            base = fn.op(f"mul i64 {row}, {2 * width}")
            for word, part in enumerate(parts):
                mask = part.mask - 2**64 if part.mask >= 2**63 else part.mask
                for offset, value in ((2 * word, str(mask)), (2 * word + 1, part.bits)):
                    place = fn.op(f"add i64 {base}, {offset}")
                    where = fn.op(f"getelementptr i64, ptr %parts, i64 {place}")
                    fn.do(f"store i64 {value}, ptr {where}")
            return fn.op(f"add i64 {row}, 1")

        return write

    def emit(self, fn: FunctionText, label: int, count: str) -> str:
        """Rows of all products of ``label``; ``%lists`` and ``%cap`` are arguments."""
        rules = self._steps.products[label]
        if not rules:
            return count
        row = fn.slot("i64")
        fn.do(f"store i64 {count}, ptr {row}")
        buffers = self._buffers(fn, rules)
        for rule in rules:
            slots = [self._slots[participant] for participant in rule.participants]
            counts, ready, skip = self._ready(fn, slots)
            fn.start(ready)
            with fn.scope():
                for slot, (ends, chance, parts) in zip(slots, buffers, strict=False):
                    where = fn.op(f"getelementptr i64, ptr %lists, i64 {slot.place}")
                    result = fn.op(
                        f"call i64 @records_{slot.index}(ptr %state, ptr {where}, "
                        f"ptr {ends}, ptr {chance}, ptr {parts})"
                    )
                    fn.fail_below_zero(result)
                _Loops(fn, self, rule, slots, buffers, counts, row).edges(0, str(rule.base))
            fn.jump(skip)
            fn.start(skip)
        return fn.op(f"load i64, ptr {row}")

    def emit_any(self, fn: FunctionText, label: int, found: str) -> str:
        """An i64 that is not 0 if ``found`` is not 0 or a product of ``label`` can happen."""
        for rule in self._steps.products[label]:
            all_ready = ""
            for participant in rule.participants:
                place = self._slots[participant].place
                where = fn.op(f"getelementptr i64, ptr %lists, i64 {place}")
                ready = fn.op(f"icmp ne i64 {fn.op(f'load i64, ptr {where}')}, 0")
                all_ready = fn.op(f"and i1 {all_ready}, {ready}") if all_ready else ready
            found = fn.op(f"or i64 {found}, {fn.op(f'zext i1 {all_ready} to i64')}")
        return found

    def _buffers(self, fn: FunctionText, rules: Sequence[Rule]) -> list[tuple[str, str, str]]:
        """Stack memory for the records of each participant, large enough for every rule."""
        sizes: list[tuple[int, int]] = []
        for rule in rules:
            for index, participant in enumerate(rule.participants):
                slot = self._slots[participant]
                size = (len(slot.edges) + 1, max(1, slot.rows))
                if index == len(sizes):
                    sizes.append(size)
                sizes[index] = (max(sizes[index][0], size[0]), max(sizes[index][1], size[1]))
        return [
            (
                fn.slot(f"i64, i64 {edges}"),
                fn.slot(f"double, i64 {rows}"),
                fn.slot(f"i64, i64 {2 * self._width * rows}"),
            )
            for edges, rows in sizes
        ]

    def _ready(self, fn: FunctionText, slots: Sequence[Slot]) -> tuple[list[str], str, str]:
        """Jump on when every participant has an enabled edge; returns their counts."""
        counts = []
        skip = fn.label("skip")
        for slot in slots:
            where = fn.op(f"getelementptr i64, ptr %lists, i64 {slot.place}")
            counts.append(fn.op(f"load i64, ptr {where}"))
            ready = fn.label("ready")
            fn.branch(fn.op(f"icmp ne i64 {counts[-1]}, 0"), ready, skip)
            if slot is not slots[-1]:
                fn.start(ready)
        return counts, ready, skip

    def may_clash(self, participants: Sequence[Slot]) -> bool:
        """Can two participants write one variable?"""
        written = [set().union(*(edge.written for edge in slot.edges)) for slot in participants]
        return any(a & b for a, b in itertools.combinations(written, 2))

    @property
    def width(self) -> int:
        """Words of a packed state."""
        return self._width


class _Loops:
    """The loops of one rule: over combinations of edges, then of their destinations."""

    def __init__(
        self,
        fn: FunctionText,
        code: ProductCode,
        rule: Rule,
        slots: Sequence[Slot],
        buffers: Sequence[tuple[str, str, str]],
        counts: Sequence[str],
        row: str,
    ) -> None:
        self._fn = fn
        self._width = code.width
        self._slots = slots
        self._buffers = buffers
        self._counts = counts
        self._row = row
        self._clash = code.may_clash(slots)
        self._scales = []
        scale = rule.size
        for slot in slots:
            scale //= len(slot.edges)
            self._scales.append(scale)
        self._spans: list[tuple[str, str]] = []

    def edges(self, level: int, number: str) -> None:
        """Loop over the enabled edges of participant ``level`` and those after it."""
        fn = self._fn
        if level == len(self._slots):
            words = load_state(fn, self._width)
            self._destinations(0, number, real_constant(1.0), words, [])
            return
        slot = self._slots[level]
        ends = self._buffers[level][0]

        def body(index: str) -> None:
            following = fn.op(f"add i64 {index}, 1")
            place = fn.op(f"add i64 {following}, {slot.place}")
            where = fn.op(f"getelementptr i64, ptr %lists, i64 {place}")
            position = fn.op(f"load i64, ptr {where}")
            scaled = fn.op(f"mul i64 {position}, {self._scales[level]}")
            chosen = fn.op(f"add i64 {number}, {scaled}")
            first = fn.op(f"load i64, ptr {fn.op(f'getelementptr i64, ptr {ends}, i64 {index}')}")
            last = fn.op(
                f"load i64, ptr {fn.op(f'getelementptr i64, ptr {ends}, i64 {following}')}"
            )
            self._spans.append((first, last))
            self.edges(level + 1, chosen)
            self._spans.pop()

        self._loop("0", self._counts[level], body)

    def _destinations(
        self, level: int, number: str, chance: str, words: list[str], masks: list[str]
    ) -> None:
        fn = self._fn
        if level == len(self._slots):
            row = fn.op(f"load i64, ptr {self._row}")
            full, room = fn.label("full"), fn.label("room")
            fn.branch(fn.op(f"icmp sge i64 {row}, %cap"), full, room)
            fn.start(full)
            fn.ret(FULL)
            fn.start(room)
            fn.do(f"store i64 {store_row(fn, words, chance, number, row)}, ptr {self._row}")
            return
        _, chances, parts = self._buffers[level]

        def body(index: str) -> None:
            where = fn.op(f"getelementptr double, ptr {chances}, i64 {index}")
            own = fn.op(f"load double, ptr {where}")
            product = own if level == 0 else fn.op(f"fmul double {chance}, {own}")
            base = fn.op(f"mul i64 {index}, {2 * self._width}")
            new, written = [], []
            for word, old in enumerate(words):
                mask, bits = (self._part(parts, base, 2 * word + k) for k in (0, 1))
                if masks and self._clash:
                    both = fn.op(f"and i64 {mask}, {masks[word]}")
                    differ = fn.op(f"xor i64 {old}, {bits}")
                    clash = fn.op(f"and i64 {both}, {differ}")
                    fn.fail_if(fn.op(f"icmp ne i64 {clash}, 0"))
                kept = fn.op(f"and i64 {old}, {fn.op(f'xor i64 {mask}, -1')}")
                new.append(fn.op(f"or i64 {kept}, {bits}"))
                written.append(fn.op(f"or i64 {mask}, {masks[word]}") if masks else mask)
            self._destinations(level + 1, number, product, new, written)

        self._loop(*self._spans[level], body)

    def _part(self, parts: str, base: str, offset: int) -> str:
        fn = self._fn
        where = fn.op(f"getelementptr i64, ptr {parts}, i64 {fn.op(f'add i64 {base}, {offset}')}")
        return fn.op(f"load i64, ptr {where}")

    def _loop(self, first: str, end: str, body: Callable[[str], None]) -> None:
        fn = self._fn
        head, inside, done = fn.label("head"), fn.label("body"), fn.label("done")
        counter = fn.slot("i64")
        fn.do(f"store i64 {first}, ptr {counter}")
        fn.jump(head)
        fn.start(head)
        index = fn.op(f"load i64, ptr {counter}")
        fn.branch(fn.op(f"icmp slt i64 {index}, {end}"), inside, done)
        fn.start(inside)
        body(index)
        fn.do(f"store i64 {fn.op(f'add i64 {index}, 1')}, ptr {counter}")
        fn.jump(head)
        fn.start(done)


def load_state(fn: FunctionText, width: int) -> list[str]:
    """The words of the state, loaded where the loops begin."""
    return [
        fn.op(f"load i64, ptr {fn.op(f'getelementptr i64, ptr %state, i64 {word}')}")
        for word in range(width)
    ]
