"""Call machine code that depends on the model, by raw address, from cached kernels."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["call", "either", "place"]


@intrinsic
def call(typingctx: Any, address: Any, arguments: Any) -> Any:
    """``int64 f(int64, ...)`` at ``address``, called with a tuple of int64 (pointers too)."""
    if not isinstance(arguments, types.BaseTuple):
        return None
    count = len(arguments)
    signature = types.int64(types.int64, types.UniTuple(types.int64, count))

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        i64 = ir.IntType(64)
        function_type = ir.FunctionType(i64, [i64] * count)
        function = builder.inttoptr(args[0], function_type.as_pointer())
        return builder.call(function, cgutils.unpack_tuple(builder, args[1], count))

    return signature, codegen


@intrinsic
def either(typingctx: Any, condition: Any, then: Any, otherwise: Any) -> Any:
    """One of two uint64, without a branch: for conditions that nobody can foresee."""
    signature = types.uint64(types.boolean, types.uint64, types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        chosen = builder.select(*args)
        chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
        return chosen

    return signature, codegen


@intrinsic
def place(typingctx: Any, array: Any, index: Any) -> Any:
    """Address of element ``index`` of a contiguous array's memory, as an int64."""
    signature = types.int64(array, types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0]).data
        start = builder.ptrtoint(data, ir.IntType(64))
        size = context.get_abi_sizeof(context.get_data_type(sig.args[0].dtype))
        return builder.add(start, builder.mul(args[1], ir.Constant(ir.IntType(64), size)))

    return signature, codegen
