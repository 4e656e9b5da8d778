"""Compile call-free expressions to instructions of one function.

Kinds become i1, i64 and double. Wherever interval analysis cannot rule it out, a result
without a value (division by zero, overflow, nan) leaves the function with an error, so
operands that may fail are only evaluated where the definition evaluates them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from safetest_gym.engine.evaluation import INT_MAX, INT_MIN
from safetest_gym.engine.ir import FunctionText, real_constant
from safetest_gym.engine.layout import Layout
from safetest_gym.engine.ranges import Range, Ranges
from safetest_gym.engine.rewrite import ATTEMPT, REAL
from safetest_gym.jani.operations import comparable
from safetest_gym.jani.tree import Expression, Literal, Operation, Reference, Variable

__all__ = ["DECLARATIONS", "TYPES", "Lowering"]

TYPES = {"bool": "i1", "int": "i64", "real": "double"}

_CIRCULAR = ("sin", "cos", "tan", "asin", "acos", "atan")
_LIBM = (*_CIRCULAR, "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "log", "pow")

DECLARATIONS = "\n".join(
    [
        *(
            f"declare {{ i64, i1 }} @llvm.{name}.with.overflow.i64(i64, i64)"
            for name in ("sadd", "ssub", "smul")
        ),
        *(
            f"declare double @llvm.{name}.f64(double)"
            for name in ("floor", "ceil", "trunc", "fabs")
        ),
        *(
            f"declare double @{name}({'double, double' if name == 'pow' else 'double'})"
            for name in _LIBM
        ),
        """
define internal i64 @int_power(i64 %base, i64 %exponent, ptr %overflow) nounwind {
entry:
  br label %loop
loop:
  %b = phi i64 [ %base, %entry ], [ %square, %more ]
  %e = phi i64 [ %exponent, %entry ], [ %half, %more ]
  %result = phi i64 [ 1, %entry ], [ %next, %more ]
  %odd = trunc i64 %e to i1
  %product = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %result, i64 %b)
  %value = extractvalue { i64, i1 } %product, 0
  %high = extractvalue { i64, i1 } %product, 1
  %next = select i1 %odd, i64 %value, i64 %result
  %bad = and i1 %odd, %high
  %half = lshr i64 %e, 1
  %done = icmp eq i64 %half, 0
  br i1 %bad, label %fail, label %check
check:
  br i1 %done, label %out, label %again
again:
  %squared = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %b, i64 %b)
  %square = extractvalue { i64, i1 } %squared, 0
  %large = extractvalue { i64, i1 } %squared, 1
  br i1 %large, label %fail, label %more
more:
  br label %loop
out:
  ret i64 %next
fail:
  store i64 1, ptr %overflow
  ret i64 0
}
""",
    ]
)

_COMPARE_INT = {"=": "eq", "≠": "ne", "<": "slt", "≤": "sle"}
_COMPARE_REAL = {"=": "oeq", "≠": "une", "<": "olt", "≤": "ole"}
_OVERFLOW = {"+": "sadd", "-": "ssub", "*": "smul"}
_INT = {"+": "add", "-": "sub", "*": "mul"}
_FLOAT = {"+": "fadd", "-": "fsub", "*": "fmul"}
_RECIPROCAL = {
    "cot": "tan",
    "coth": "tanh",
    "sec": "cos",
    "csc": "sin",
    "sech": "cosh",
    "csch": "sinh",
}
_INVERSE = {
    "asec": "acos",
    "acsc": "asin",
    "asech": "acosh",
    "acsch": "asinh",
    "acoth": "atanh",
}


class Lowering:
    """Values of expressions over the state whose words are in registers.

    Args:
        function: where the instructions go.
        words: registers holding the packed state.
        ranges: what is known of the variables where the instructions go.
    """

    def __init__(
        self, function: FunctionText, layout: Layout, words: Sequence[str], ranges: Ranges
    ) -> None:
        self._fn = function
        self._layout = layout
        self._fields = {field.variable: field for field in layout.fields}
        self.words = words
        self.ranges = ranges

    def knowing(self, ranges: Ranges) -> Lowering:
        """The same with other knowledge of the variables."""
        return Lowering(self._fn, self._layout, self.words, ranges)

    def value(self, expression: Expression) -> str:
        """Register or constant with the value of ``expression``."""
        if isinstance(expression, Literal):
            return self._literal(expression)
        found = self.ranges.of(expression)
        if found.constant and expression.kind != "real":
            number = int(found.lower)
            return str(number) if expression.kind == "int" else str(bool(number)).lower()
        if isinstance(expression, Reference):
            return self.variable(expression.variable)
        register = self._fn.recall(expression)
        if register is None:
            assert isinstance(expression, Operation), "calls are inlined first"
            register = self._operation(expression, found)
            self._fn.remember(expression, register)
        return register

    def real(self, expression: Expression) -> str:
        """The same as a double, whatever number it is."""
        if isinstance(expression, Literal):
            return self._real_literal(expression)
        register = self.value(expression)
        return register if expression.kind == "real" else self._to_real(register)

    def variable(self, variable: Variable) -> str:
        """Unpack a variable."""
        register = self._fn.recall(variable)
        if register is not None:
            return register
        field = self._fields[variable]
        fn, word = self._fn, self.words[field.word]
        if variable.kind == "real":
            register = fn.op(f"bitcast i64 {word} to double")
        elif field.width == 64:
            register = word
        elif field.width == 0:
            return str(field.offset)
        else:
            shifted = fn.op(f"lshr i64 {word}, {field.shift}") if field.shift else word
            register = fn.op(f"and i64 {shifted}, {(1 << field.width) - 1}")
            if variable.kind == "bool":
                register = fn.op(f"trunc i64 {register} to i1")
            elif field.offset:
                register = fn.op(f"add nsw i64 {register}, {field.offset}")
        fn.remember(variable, register)
        return register

    def _literal(self, literal: Literal) -> str:
        if literal.kind == "bool":
            return str(literal.value).lower()
        if literal.kind == "real":
            return self._real_literal(literal)
        if not INT_MIN <= literal.value <= INT_MAX:
            self._fn.fail_if("true")
            return "0"
        return str(int(literal.value))

    def _real_literal(self, literal: Literal) -> str:
        try:
            return real_constant(float(literal.value))
        except OverflowError:
            self._fn.fail_if("true")
            return real_constant(0.0)

    def _to_real(self, register: str) -> str:
        if register.startswith("%"):
            return self._fn.op(f"sitofp i64 {register} to double")
        return real_constant(float(int(register)))

    def _operation(self, expression: Operation, found: Range) -> str:
        operator = expression.operator
        if operator in ("∧", "∨"):
            return self.connective(operator, expression.operands)
        if operator == "ite":
            return self._choice(expression)
        if operator == ATTEMPT:
            return self._attempt(*expression.operands)
        if operator == "¬":
            return self._fn.op(f"xor i1 {self.value(expression.operands[0])}, true")
        if operator in _COMPARE_INT:
            return self._comparison(operator, *expression.operands)
        if operator == REAL:
            return self.real(expression.operands[0])
        if operator in ("floor", "ceil", "trc"):
            return self._rounding(operator, expression.operands[0], found)
        if operator == "sgn":
            return self._sign(expression.operands[0])
        if expression.kind == "int":
            return self._int_operation(expression)
        return self._real_operation(expression, found)

    def connective(self, operator: str, operands: Sequence[Expression]) -> str:
        """∧ or ∨ of ``operands``, left to right, stopping early where it matters."""
        deciding = "false" if operator == "∧" else "true"
        instruction = "and" if operator == "∧" else "or"
        fn = self._fn
        result = "true" if deciding == "false" else "false"
        exits: list[tuple[str, str]] = []
        done = fn.label("decided")
        scopes = []
        for operand in operands:
            found = self.ranges.of(operand)
            if found.fails and result not in ("true", "false"):
                exits.append((deciding, fn.block))
                more = fn.label("more")
                fn.branch(result, *((more, done) if operator == "∧" else (done, more)))
                fn.start(more)
                scope = fn.scope()
                scope.__enter__()
                scopes.append(scope)
                result = self.value(operand)
            else:
                value = self.value(operand)
                if result in ("true", "false"):
                    result = value if result != deciding else result
                elif value == deciding:
                    result = deciding
                elif value not in ("true", "false"):
                    result = fn.op(f"{instruction} i1 {result}, {value}")
            if result == deciding:
                break
        for scope in reversed(scopes):
            scope.__exit__(None, None, None)
        if not exits:
            return result
        exits.append((result, fn.block))
        fn.jump(done)
        fn.start(done)
        return fn.phi("i1", exits)

    def _choice(self, expression: Operation) -> str:
        condition, then, otherwise = expression.operands
        test = self.value(condition)
        pick = self.real if expression.kind == "real" else self.value
        if test in ("true", "false"):
            return pick(then if test == "true" else otherwise)
        kind = TYPES[expression.kind]
        fn = self._fn
        if not self.ranges.of(expression).fails:
            first, second = pick(then), pick(otherwise)
            return fn.op(f"select i1 {test}, {kind} {first}, {kind} {second}")
        yes, no, join = fn.label("then"), fn.label("else"), fn.label("join")
        fn.branch(test, yes, no)
        incoming = []
        for label, branch in ((yes, then), (no, otherwise)):
            fn.start(label)
            with fn.scope():
                incoming.append((pick(branch), fn.block))
            fn.jump(join)
        fn.start(join)
        return fn.phi(kind, incoming)

    def _attempt(self, wanted: Expression, otherwise: Expression) -> str:
        """``wanted`` where it has a value, else ``otherwise``."""
        if not self.ranges.of(wanted).fails:
            return self.value(wanted)
        fn = self._fn
        fallback, join = fn.label("fallback"), fn.label("join")
        with fn.scope(), fn.errors_to(fallback):
            incoming = [(self.value(wanted), fn.block)]
        fn.jump(join)
        fn.start(fallback)
        incoming.append((self.value(otherwise), fallback))
        fn.jump(join)
        fn.start(join)
        return fn.phi(TYPES[wanted.kind], incoming)

    def _comparison(self, operator: str, left: Expression, right: Expression) -> str:
        fn = self._fn
        if left.kind == "real" or right.kind == "real":
            a, b = self._compared(left), self._compared(right)
            return fn.op(f"fcmp {_COMPARE_REAL[operator]} double {a}, {b}")
        kind = TYPES[left.kind]
        clipped = [self._clipped(side) for side in (left, right)]
        return fn.op(f"icmp {_COMPARE_INT[operator]} {kind} {clipped[0]}, {clipped[1]}")

    def _compared(self, side: Expression) -> str:
        """A side of a comparison as a double; a literal beyond the reals is infinite here."""
        if isinstance(side, Literal):
            return real_constant(comparable(side.value))
        return self.real(side)

    def _clipped(self, side: Expression) -> str:
        """A side of a comparison; a huge literal here meets a side that may fail."""
        if isinstance(side, Literal) and side.kind == "int":
            return str(min(max(int(side.value), INT_MIN), INT_MAX))
        return self.value(side)

    def _int_operation(self, expression: Operation) -> str:
        operator, operands = expression.operator, expression.operands
        if operator in ("min", "max"):
            test = "slt" if operator == "min" else "sgt"
            return self._extremum(operands, "i64", f"icmp {test}", self.value)
        if operator == "abs":
            return self._int_absolute(operands[0])
        if operator == "%":
            return self._modulo(*operands)
        if operator == "pow":
            return self._int_power(*operands)
        result = self.value(operands[0])
        bounds = self._int_bounds(operands[0])
        for operand in operands[1:]:
            other = self.value(operand)
            bounds = _unclipped(operator, bounds, self._int_bounds(operand))
            fits = bounds[0] >= INT_MIN and bounds[1] <= INT_MAX
            result = self._int_step(operator, result, other, fits)
            bounds = max(bounds[0], INT_MIN), min(bounds[1], INT_MAX)
        return result

    def _int_bounds(self, operand: Expression) -> tuple[int, int]:
        found = self.ranges.of(operand)
        return int(found.lower), int(found.upper)

    def _int_step(self, operator: str, left: str, right: str, fits: bool) -> str:
        fn = self._fn
        if fits:
            return fn.op(f"{_INT[operator]} nsw i64 {left}, {right}")
        pair = fn.op(
            "call { i64, i1 } "
            f"@llvm.{_OVERFLOW[operator]}.with.overflow.i64(i64 {left}, i64 {right})"
        )
        fn.fail_if(fn.op(f"extractvalue {{ i64, i1 }} {pair}, 1"))
        return fn.op(f"extractvalue {{ i64, i1 }} {pair}, 0")

    def _extremum(
        self,
        operands: Sequence[Expression],
        kind: str,
        test: str,
        pick: Callable[[Expression], str],
    ) -> str:
        fn = self._fn
        result = pick(operands[0])
        for operand in operands[1:]:
            other = pick(operand)
            better = fn.op(f"{test} {kind} {other}, {result}")
            result = fn.op(f"select i1 {better}, {kind} {other}, {kind} {result}")
        return result

    def _int_absolute(self, operand: Expression) -> str:
        fn, register = self._fn, self.value(operand)
        if self.ranges.of(operand).lower == INT_MIN:
            fn.fail_if(fn.op(f"icmp eq i64 {register}, {INT_MIN}"))
        negative = fn.op(f"icmp slt i64 {register}, 0")
        flipped = fn.op(f"sub i64 0, {register}")
        return fn.op(f"select i1 {negative}, i64 {flipped}, i64 {register}")

    def _modulo(self, left: Expression, right: Expression) -> str:
        fn = self._fn
        a, b = self.value(left), self.value(right)
        divisor = self.ranges.of(right)
        if divisor.lower <= 0 <= divisor.upper:
            fn.fail_if(fn.op(f"icmp eq i64 {b}, 0"))
        if divisor.lower <= -1 <= divisor.upper:  # the remainder by -1 overflows in hardware
            b_is = fn.op(f"icmp eq i64 {b}, -1")
            b = fn.op(f"select i1 {b_is}, i64 1, i64 {b}")
        rest = fn.op(f"srem i64 {a}, {b}")
        if self.ranges.of(left).lower >= 0 and divisor.lower > 0:
            return rest
        signs = fn.op(f"xor i64 {rest}, {b}")
        differs = fn.op(f"icmp slt i64 {signs}, 0")
        nonzero = fn.op(f"icmp ne i64 {rest}, 0")
        moved = fn.op(f"add i64 {rest}, {b}")
        both = fn.op(f"and i1 {differs}, {nonzero}")
        return fn.op(f"select i1 {both}, i64 {moved}, i64 {rest}")

    def _int_power(self, base: Expression, exponent: Expression) -> str:
        fn = self._fn
        b, e = self.value(base), self.value(exponent)
        if self.ranges.of(exponent).lower < 0:
            fn.fail_if(fn.op(f"icmp slt i64 {e}, 0"))
        flag = fn.slot("i64")
        fn.do(f"store i64 0, ptr {flag}")
        result = fn.op(f"call i64 @int_power(i64 {b}, i64 {e}, ptr {flag})")
        overflow = fn.op(f"load i64, ptr {flag}")
        fn.fail_if(fn.op(f"icmp ne i64 {overflow}, 0"))
        return result

    def _rounding(self, operator: str, operand: Expression, found: Range) -> str:
        if operand.kind == "int":
            return self.value(operand)
        fn = self._fn
        name = {"floor": "floor", "ceil": "ceil", "trc": "trunc"}[operator]
        rounded = fn.op(f"call double @llvm.{name}.f64(double {self.value(operand)})")
        if found.fails:
            low = fn.op(f"fcmp olt double {rounded}, {real_constant(-(2.0**63))}")
            high = fn.op(f"fcmp oge double {rounded}, {real_constant(2.0**63)}")
            fn.fail_if(fn.op(f"or i1 {low}, {high}"))
        return fn.op(f"fptosi double {rounded} to i64")

    def _sign(self, operand: Expression) -> str:
        fn, register = self._fn, self.value(operand)
        kind = TYPES[operand.kind]
        test, zero = ("fcmp o", real_constant(0.0)) if kind == "double" else ("icmp s", "0")
        more = fn.op(f"{test}gt {kind} {register}, {zero}")
        less = fn.op(f"{test}lt {kind} {register}, {zero}")
        up = fn.op(f"zext i1 {more} to i64")
        down = fn.op(f"zext i1 {less} to i64")
        return fn.op(f"sub i64 {up}, {down}")

    def _real_operation(self, expression: Operation, found: Range) -> str:
        operator, operands = expression.operator, expression.operands
        if operator in ("min", "max"):
            test = "olt" if operator == "min" else "ogt"
            return self._extremum(operands, "double", f"fcmp {test}", self.real)
        values = [self.real(operand) for operand in operands]
        if operator in _FLOAT:
            result = values[0]
            for value in values[1:]:
                result = self._fn.op(f"{_FLOAT[operator]} double {result}, {value}")
                if found.fails:
                    self._require_finite(result)
            return result
        if operator == "abs":
            return self._fn.op(f"call double @llvm.fabs.f64(double {values[0]})")
        if operator == "/":
            return self._quotient(values[0], values[1], found.fails)
        if operator == "log":
            return self._logarithm(values[0], values[1])
        if operator == "pow":
            result = self._fn.op(f"call double @pow(double {values[0]}, double {values[1]})")
        else:
            result = self._function(operator, values[0])
        if found.fails:
            self._require_finite(result)
        return result

    def _function(self, operator: str, value: str) -> str:
        fn = self._fn
        if operator == "acot":
            angle = fn.op(f"call double @atan(double {value})")
            return fn.op(f"fsub double {real_constant(math.pi / 2)}, {angle}")
        if operator in _RECIPROCAL:
            below = fn.op(f"call double @{_RECIPROCAL[operator]}(double {value})")
            return self._quotient(real_constant(1.0), below, True)
        if operator in _INVERSE:
            inner = self._quotient(real_constant(1.0), value, True)
            return fn.op(f"call double @{_INVERSE[operator]}(double {inner})")
        return fn.op(f"call double @{operator}(double {value})")

    def _quotient(self, above: str, below: str, check: bool) -> str:
        fn = self._fn
        if check:
            fn.fail_if(fn.op(f"fcmp oeq double {below}, {real_constant(0.0)}"))
        result = fn.op(f"fdiv double {above}, {below}")
        if check:
            self._require_finite(result)
        return result

    def _logarithm(self, value: str, base: str) -> str:
        fn = self._fn
        for argument in (value, base):
            fn.fail_if(fn.op(f"fcmp ole double {argument}, {real_constant(0.0)}"))
        above = fn.op(f"call double @log(double {value})")
        below = fn.op(f"call double @log(double {base})")
        return self._quotient(above, below, True)

    def _require_finite(self, register: str) -> None:
        fn = self._fn
        size = fn.op(f"call double @llvm.fabs.f64(double {register})")
        fn.fail_if(fn.op(f"fcmp uge double {size}, 0x7FF0000000000000"))


def _unclipped(operator: str, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    """Exact bounds of a sum, difference or product of ints."""
    if operator == "+":
        return left[0] + right[0], left[1] + right[1]
    if operator == "-":
        return left[0] - right[1], left[1] - right[0]
    corners = [a * b for a in left for b in right]
    return min(corners), max(corners)
