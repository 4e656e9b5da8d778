"""Write functions of LLVM IR as text: registers, blocks, memory of what was computed.

Every function returns an i64; a negative result is an error and every function has one
block, ``error``, that returns `FAILED`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["FAILED", "FULL", "FunctionText", "real_constant"]

FAILED = -1
"""An expression has no value, or an assignment leaves its variable's bounds."""
FULL = -2
"""The caller's buffers have no room."""


def real_constant(value: float) -> str:
    """A double, exactly."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class FunctionText:
    """One function under construction; code goes to the end of the current block.

    Args:
        name: without the ``@``.
        arguments: IR types and names, such as ``ptr %state``.
        visible: callable from outside the module.
    """

    def __init__(self, name: str, arguments: str, *, visible: bool) -> None:
        linkage = "" if visible else "internal "
        self._lines = [f"define {linkage}i64 @{name}({arguments}) nounwind {{", "entry:"]
        self._slots: list[str] = []
        self._counter = 0
        self._has_error = False
        self._terminated = False
        self.block = "entry"
        self._on_error = "error"
        self._memo: list[dict[int, tuple[object, str]]] = [{}]

    def register(self) -> str:
        """A fresh register name."""
        self._counter += 1
        return f"%r{self._counter}"

    def label(self, hint: str) -> str:
        """A fresh block name."""
        self._counter += 1
        return f"{hint}{self._counter}"

    def op(self, text: str) -> str:
        """Append an instruction that has a result; return its register."""
        self._counter += 1
        name = f"%r{self._counter}"
        self._lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self._lines.append(f"  {text}")

    def slot(self, text: str) -> str:
        """Memory on the stack, reserved once at the function's entry."""
        self._counter += 1
        name = f"%s{self._counter}"
        self._slots.append(f"  {name} = alloca {text}, align 8")
        return name

    def start(self, label: str) -> None:
        """Begin block ``label``; the current one must have been ended."""
        assert self._terminated
        self._lines.append(f"{label}:")
        self.block = label
        self._terminated = False

    def jump(self, label: str) -> None:
        """End the block with a jump."""
        self._end(f"br label %{label}")

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        """End the block with a conditional jump."""
        self._end(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def switch(self, value: str, default: str, cases: list[tuple[int, str]]) -> None:
        """End the block with a switch over an i64."""
        arms = " ".join(f"i64 {case}, label %{label}" for case, label in cases)
        self._end(f"switch i64 {value}, label %{default} [ {arms} ]")

    def ret(self, value: str | int) -> None:
        """End the block and the function."""
        self._end(f"ret i64 {value}")

    def _end(self, text: str) -> None:
        assert not self._terminated
        self._lines.append(f"  {text}")
        self._terminated = True

    def fail_if(self, condition: str) -> None:
        """Leave the function with `FAILED` if the i1 ``condition`` holds."""
        if condition == "false":
            return
        self._has_error = self._has_error or self._on_error == "error"
        after = self.label("ok")
        self.branch(condition, self._on_error, after)
        self.start(after)

    def fail_below_zero(self, result: str) -> None:
        """Pass on the negative result of a call."""
        bad, after = self.label("bad"), self.label("ok")
        self.branch(self.op(f"icmp slt i64 {result}, 0"), bad, after)
        self.start(bad)
        self.ret(result)
        self.start(after)

    def phi(self, kind: str, incoming: list[tuple[str, str]]) -> str:
        """Merge values that come from blocks."""
        values = {value for value, _ in incoming}
        if len(values) == 1:
            only = next(iter(values))
            if not only.startswith("%"):
                return only
        arms = ", ".join(f"[ {value}, %{block} ]" for value, block in incoming)
        return self.op(f"phi {kind} {arms}")

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed inside is not known to be computed outside."""
        self._memo.append({})
        try:
            yield
        finally:
            self._memo.pop()

    @contextmanager
    def errors_to(self, label: str) -> Iterator[None]:
        """What fails inside jumps to ``label`` instead of leaving the function."""
        before, self._on_error = self._on_error, label
        try:
            yield
        finally:
            self._on_error = before

    def recall(self, node: object) -> str | None:
        """The register that holds the value of ``node`` here, if any."""
        key = id(node)
        for memo in reversed(self._memo):
            if key in memo:
                return memo[key][1]
        return None

    def remember(self, node: object, register: str) -> None:
        """From here to the end of the scope ``register`` holds the value of ``node``."""
        self._memo[-1][id(node)] = (node, register)

    def text(self) -> str:
        """The finished function."""
        assert self._terminated
        lines = [*self._lines[:2], *self._slots, *self._lines[2:]]
        if self._has_error:
            lines += ["error:", f"  ret i64 {FAILED}"]
        return "\n".join([*lines, "}", ""])
