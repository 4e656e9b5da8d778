"""Put together the LLVM module of a task: everything that depends on the model.

Functions (states are packed words, every result is an i64, negative ones are errors):

- ``expand(state, succ, prob, number, ends, cap)``: rows of all labels; ``ends[k]`` is the
  number of rows up to and with label k. Returns the number of rows.
- ``outcomes(state, label, succ, prob, number, cap)``: the rows of one label.
- ``applicable(state, mask)``: per label, one byte: is an edge enabled?
- ``classify(state)``: bit 0 failing, bit 1 goal.
- ``unpack(state, values)``, ``pack(values, state)``: from and to vectors of the task's
  dtype; ``pack`` returns 1 + the index of the first value that its variable cannot have.
"""

from __future__ import annotations

from collections.abc import Sequence

from safetest_gym.engine.composition import Composition
from safetest_gym.engine.evaluation import INT_MAX, INT_MIN
from safetest_gym.engine.ir import FULL, FunctionText, real_constant
from safetest_gym.engine.layout import Field, Layout
from safetest_gym.engine.lowering import DECLARATIONS, Lowering
from safetest_gym.engine.prepared import PreparedEdge
from safetest_gym.engine.products import ProductCode
from safetest_gym.engine.rewrite import Inliner
from safetest_gym.engine.steps import ROW_ARGUMENTS, ROW_PASS, StepCode, begin
from safetest_gym.jani.tree import Expression, Model

__all__ = ["EVALUATE", "FUNCTIONS", "evaluator_text", "module_text"]

FUNCTIONS = ("expand", "outcomes", "applicable", "classify", "unpack", "pack")
EVALUATE = "evaluate"


def module_text(
    model: Model,
    composition: Composition,
    layout: Layout,
    conditions: Sequence[Expression],
) -> tuple[str, int]:
    """IR of the module, and a row capacity that is enough but for large products.

    Args:
        conditions: failing, goal.
    """
    steps = StepCode(model, composition, layout)
    products = ProductCode(steps)
    functions = products.functions()
    rows = 0
    for label in range(len(composition.labels)):
        functions.append(_label(steps, products, label))
        functions.append(_any(steps, products, label))
        rows += steps.rows(label)
    functions.append(_expand(composition, products))
    functions.append(_outcomes(composition, products))
    functions.append(_applicable(composition, products))
    functions.append(_classify(layout, conditions))
    floating = any(variable.kind == "real" for variable in model.variables)
    functions.append(_unpack(layout, floating))
    functions.append(_pack(layout, floating))
    extra = 256 if products.list_size else 0
    return "\n".join([DECLARATIONS, *functions]), max(1, rows) + extra


def evaluator_text(layout: Layout, expressions: Sequence[Expression]) -> str:
    """IR of ``evaluate(state, values)``: all expressions as doubles."""
    fn = FunctionText(EVALUATE, "ptr noalias readonly %state, ptr noalias %values", visible=True)
    _, lowering = begin(fn, layout)
    inline = Inliner()
    for index, expression in enumerate(expressions):
        plain = inline.plain(expression)
        if plain.kind == "bool":
            value = fn.op(f"uitofp i1 {lowering.value(plain)} to double")
        else:
            value = lowering.real(plain)
        where = fn.op(f"getelementptr double, ptr %values, i64 {index}")
        fn.do(f"store double {value}, ptr {where}")
    fn.ret(0)
    return "\n".join([DECLARATIONS, fn.text()])


def _label(steps: StepCode, products: ProductCode, label: int) -> str:
    fn = FunctionText(
        f"label_{label}",
        f"{ROW_ARGUMENTS}, i64 %count, i64 %cap, ptr noalias readonly %lists",
        visible=False,
    )
    _, lowering = begin(fn, steps.layout)
    count = "%count"
    if steps.direct[label]:
        needed = fn.op(f"add i64 %count, {steps.rows(label)}")
        full, room = fn.label("full"), fn.label("room")
        fn.branch(fn.op(f"icmp sgt i64 {needed}, %cap"), full, room)
        fn.start(full)
        fn.ret(FULL)
        fn.start(room)
        count = steps.emit_direct(fn, lowering, label, count)
    fn.ret(products.emit(fn, label, count))
    return fn.text()


def _any(steps: StepCode, products: ProductCode, label: int) -> str:
    fn = FunctionText(
        f"any_{label}",
        "ptr noalias readonly %state, ptr noalias readonly %lists",
        visible=False,
    )
    _, lowering = begin(fn, steps.layout)

    def leaf(edge: PreparedEdge, inside: Lowering, carry: str) -> str:
        return "1"

    found = steps.dispatch(fn, lowering, label, leaf, "0")
    fn.ret(products.emit_any(fn, label, found))
    return fn.text()


def _lists(fn: FunctionText, products: ProductCode) -> str:
    """List the enabled edges that products need; returns the pointer to pass on."""
    if not products.list_size:
        return "null"
    lists = fn.slot(f"i64, i64 {products.list_size}")
    fn.fail_below_zero(fn.op(f"call i64 @enabled(ptr %state, ptr {lists})"))
    return lists


def _expand(composition: Composition, products: ProductCode) -> str:
    fn = FunctionText("expand", f"{ROW_ARGUMENTS}, ptr noalias %ends, i64 %cap", visible=True)
    lists = _lists(fn, products)
    count = "0"
    for label in range(len(composition.labels)):
        count = fn.op(f"call i64 @label_{label}({ROW_PASS}, i64 {count}, i64 %cap, ptr {lists})")
        fn.fail_below_zero(count)
        where = fn.op(f"getelementptr i64, ptr %ends, i64 {label}")
        fn.do(f"store i64 {count}, ptr {where}")
    fn.ret(count)
    return fn.text()


def _outcomes(composition: Composition, products: ProductCode) -> str:
    arguments = ROW_ARGUMENTS.replace("%state, ", "%state, i64 %label, ", 1)
    fn = FunctionText("outcomes", f"{arguments}, i64 %cap", visible=True)
    lists = _lists(fn, products)
    cases = [(label, fn.label("label")) for label in range(len(composition.labels))]
    none = fn.label("none")
    fn.switch("%label", none, cases)
    for label, block in cases:
        fn.start(block)
        fn.ret(fn.op(f"call i64 @label_{label}({ROW_PASS}, i64 0, i64 %cap, ptr {lists})"))
    fn.start(none)
    fn.ret(0)
    return fn.text()


def _applicable(composition: Composition, products: ProductCode) -> str:
    fn = FunctionText("applicable", "ptr noalias readonly %state, ptr noalias %mask", visible=True)
    lists = _lists(fn, products)
    for label in range(len(composition.labels)):
        found = fn.op(f"call i64 @any_{label}(ptr %state, ptr {lists})")
        fn.fail_below_zero(found)
        byte = fn.op(f"zext i1 {fn.op(f'icmp ne i64 {found}, 0')} to i8")
        fn.do(f"store i8 {byte}, ptr {fn.op(f'getelementptr i8, ptr %mask, i64 {label}')}")
    fn.ret(0)
    return fn.text()


def _classify(layout: Layout, conditions: Sequence[Expression]) -> str:
    fn = FunctionText("classify", "ptr noalias readonly %state", visible=True)
    _, lowering = begin(fn, layout)
    inline = Inliner()
    result = "0"
    for bit, condition in enumerate(conditions):
        holds = lowering.value(inline.plain(condition))
        number = fn.op(f"select i1 {holds}, i64 {1 << bit}, i64 0")
        result = fn.op(f"or i64 {result}, {number}")
    fn.ret(result)
    return fn.text()


def _unpack(layout: Layout, floating: bool) -> str:
    fn = FunctionText("unpack", "ptr noalias readonly %state, ptr noalias %values", visible=True)
    _, lowering = begin(fn, layout)
    for index, field in enumerate(layout.fields):
        value = _number(fn, lowering, field, "double" if floating else "i64")
        kind = "double" if floating else "i64"
        where = fn.op(f"getelementptr i64, ptr %values, i64 {index}")
        fn.do(f"store {kind} {value}, ptr {where}")
    fn.ret(0)
    return fn.text()


def _number(fn: FunctionText, lowering: Lowering, field: Field, kind: str) -> str:
    """A variable as i64 or double."""
    value = lowering.variable(field.variable)
    if field.variable.kind == "bool":
        return fn.op(f"{'uitofp' if kind == 'double' else 'zext'} i1 {value} to {kind}")
    if kind == "double" and field.variable.kind == "int":
        return fn.op(f"sitofp i64 {value} to double")
    return value


def _pack(layout: Layout, floating: bool) -> str:
    fn = FunctionText("pack", "ptr noalias readonly %values, ptr noalias %state", visible=True)
    words: list[str] = ["0"] * layout.num_words
    for index, field in enumerate(layout.fields):
        where = fn.op(f"getelementptr i64, ptr %values, i64 {index}")
        wrong, fine = fn.label("wrong"), fn.label("fine")
        if floating:
            value, bad = _pack_real(fn, field, fn.op(f"load double, ptr {where}"))
        else:
            value, bad = _outside(fn, field, fn.op(f"load i64, ptr {where}"))
        fn.branch(bad, wrong, fine)
        fn.start(wrong)
        fn.ret(index + 1)
        fn.start(fine)
        if field.offset:
            value = fn.op(f"sub i64 {value}, {field.offset}")
        if field.shift:
            value = fn.op(f"shl i64 {value}, {field.shift}")
        if field.width:
            words[field.word] = fn.op(f"or i64 {words[field.word]}, {value}")
    for word, value in enumerate(words):
        where = fn.op(f"getelementptr i64, ptr %state, i64 {word}")
        fn.do(f"store i64 {value}, ptr {where}")
    fn.ret(0)
    return fn.text()


def _outside(fn: FunctionText, field: Field, value: str) -> tuple[str, str]:
    """An int and whether it is out of its variable's bounds."""
    variable = field.variable
    bad = "false"
    for bound, test in ((variable.lower, "slt"), (variable.upper, "sgt")):
        if bound is not None and INT_MIN <= bound <= INT_MAX:  # else all 64 bits are within
            beyond = fn.op(f"icmp {test} i64 {value}, {int(bound)}")
            bad = beyond if bad == "false" else fn.op(f"or i1 {bad}, {beyond}")
    return value, bad


def _pack_real(fn: FunctionText, field: Field, value: str) -> tuple[str, str]:
    """The bits of a double in its field, and whether the variable cannot have it."""
    variable = field.variable
    if variable.kind == "real":
        lower = -1.7976931348623157e308 if variable.lower is None else float(variable.lower)
        upper = 1.7976931348623157e308 if variable.upper is None else float(variable.upper)
        low = fn.op(f"fcmp ult double {value}, {real_constant(lower)}")
        high = fn.op(f"fcmp ugt double {value}, {real_constant(upper)}")
        unsigned = fn.op(f"fadd double {value}, {real_constant(0.0)}")  # one zero only
        bits = fn.op(f"bitcast double {unsigned} to i64")
        return bits, fn.op(f"or i1 {low}, {high}")
    limit = real_constant(2.0**53)
    size = fn.op(f"call double @llvm.fabs.f64(double {value})")
    large = fn.op(f"fcmp ugt double {size}, {limit}")
    safe = fn.op(f"select i1 {large}, double 0.0, double {value}")
    number = fn.op(f"fptosi double {safe} to i64")
    back = fn.op(f"sitofp i64 {number} to double")
    broken = fn.op(f"fcmp une double {back}, {safe}")
    _, bad = _outside(fn, field, number)
    result = fn.op(f"or i1 {large}, {broken}")
    return number, fn.op(f"or i1 {result}, {bad}")
