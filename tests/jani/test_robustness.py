"""Whatever bytes come in: a model or a `JaniError`, nothing else."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safetest_gym.errors import JaniError, JaniErrorGroup
from safetest_gym.jani import format_expression, read_model, read_properties
from safetest_gym.jani.depth import MAX_DEPTH
from safetest_gym.jani.document import parse_document
from safetest_gym.jani.reporting import Report
from safetest_gym.jani.tree import Literal, Model
from tests.jani.small import binary, guarded, minimal_model, small_model, variable

DEEP = 50_000
LESS_DEEP = 5_000


def write(tmp_path: Path, raw: bytes) -> Path:
    file = tmp_path / "model.jani"
    file.write_bytes(raw)
    return file


def as_bytes(model: dict[str, Any]) -> bytes:
    return json.dumps(model, ensure_ascii=False).encode()


def expect_error(tmp_path: Path, raw: bytes) -> JaniError:
    with pytest.raises(JaniError) as caught:
        read_model(write(tmp_path, raw))
    return caught.value


def with_guard_text(text: str) -> bytes:
    return as_bytes(guarded("HERE")).replace(b'"HERE"', text.encode())


def test_a_byte_order_mark_is_fine(tmp_path: Path) -> None:
    plain = read_model(write(tmp_path, as_bytes(small_model())))
    marked = read_model(write(tmp_path, b"\xef\xbb\xbf" + as_bytes(small_model())))
    assert marked.digest == plain.digest


def test_utf_16_is_named(tmp_path: Path) -> None:
    error = expect_error(tmp_path, json.dumps(small_model()).encode("utf-16"))
    assert "UTF-16" in error.message
    assert "UTF-8" in error.hint


def test_other_encodings_are_refused_with_the_offset(tmp_path: Path) -> None:
    error = expect_error(tmp_path, b'{"name": "caf\xe9"}')
    assert "0xe9 at offset 13" in error.message


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    assert "empty" in expect_error(tmp_path, b" \n").message


def test_a_truncated_file_tells_line_and_column(tmp_path: Path) -> None:
    raw = json.dumps(small_model(), indent=1).encode()
    error = expect_error(tmp_path, raw[: len(raw) // 2])
    assert "line" in error.message
    assert "column" in error.message


def test_a_file_cut_anywhere_is_an_error(tmp_path: Path) -> None:
    raw = as_bytes(small_model())
    for end in range(0, len(raw) - 1, 97):
        expect_error(tmp_path, raw[:end])


def test_a_directory_and_a_missing_file_are_errors(tmp_path: Path) -> None:
    with pytest.raises(JaniError, match="directory"):
        read_model(tmp_path)
    write(tmp_path, as_bytes(small_model()))
    with pytest.raises(JaniError, match="no such file") as caught:
        read_model(tmp_path / "modle.jani")
    assert caught.value.hint == "did you mean 'model.jani'?"


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "/dev/null", '{"name": 1}'])
def test_names_that_are_no_files_are_errors(name: str) -> None:
    with pytest.raises(JaniError):
        read_model(name)


def test_a_key_that_occurs_twice_is_an_error_at_its_path(tmp_path: Path) -> None:
    raw = as_bytes(small_model()).replace(b'"base": "int"', b'"base": "int", "base": "int"', 1)
    error = expect_error(tmp_path, raw)
    assert error.path == "$.constants[2].type.base"
    assert "twice" in error.message


def test_a_key_that_occurs_twice_is_reported_beside_other_errors(tmp_path: Path) -> None:
    raw = as_bytes(guarded("nothing")).replace(b'"base": "int"', b'"base": "int", "base": "int"', 1)
    error = expect_error(tmp_path, raw)
    assert isinstance(error, JaniErrorGroup)
    assert len(error.errors) == 2


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_errors_at_their_path(number: str, tmp_path: Path) -> None:
    error = expect_error(tmp_path, with_guard_text(f'{{"op": "<", "left": {number}, "right": 1}}'))
    assert error.path == "$.automata[0].edges[0].guard.exp.left"
    assert number in error.message


def test_half_a_surrogate_pair_is_an_error(tmp_path: Path) -> None:
    error = expect_error(tmp_path, as_bytes(small_model()).replace(b'"small"', rb'"\ud800"'))
    assert error.path == "$.name"


def test_integers_of_6000_digits_are_fine_everywhere(tmp_path: Path) -> None:
    limit = sys.get_int_max_str_digits()
    huge = "9" * 6000
    model = read_model(write(tmp_path, with_guard_text(f'{{"op":"<","left":"x","right":{huge}}}')))
    literal = model.automata[0].edges[0].guard.operands[1]  # type: ignore[union-attr]
    assert isinstance(literal, Literal)
    assert literal.value == 10**6000 - 1
    assert format_expression(literal) == huge
    assert sys.get_int_max_str_digits() == limit


def test_messages_about_huge_integers_are_short(tmp_path: Path) -> None:
    raw = as_bytes(minimal_model(variables=[variable("x", 0, 9, 77)]))
    error = expect_error(tmp_path, raw.replace(b"77", b"7" * 6000))
    assert "6000 digits" in str(error)
    assert len(str(error)) < 300


def test_absurdly_long_integers_are_refused_quickly(tmp_path: Path) -> None:
    error = expect_error(tmp_path, with_guard_text("1" * 2_000_000))
    assert "2000000 digits" in error.message


@pytest.mark.parametrize(
    ("opening", "inner", "closing"),
    [
        ('{"op":"¬","exp":', '{"op":"=","left":"x","right":1}', "}"),
        ('{"op":"∧","left":{"op":"=","left":"x","right":2},"right":', "true", "}"),
        ('{"op":"∨","right":{"op":"=","left":"x","right":2},"left":', "false", "}"),
        ('{"op":"ite","if":{"op":"<","left":"x","right":2},"then":true,"else":', "false", "}"),
        ('{"op":"=","left":0,"right":{"op":"ite","then":1,"else":2,"if":', "true", "}}"),
    ],
)
def test_deep_nesting_is_fine(opening: str, inner: str, closing: str, tmp_path: Path) -> None:
    depth = DEEP if "¬" in opening else LESS_DEEP
    model = read_model(write(tmp_path, with_guard_text(opening * depth + inner + closing * depth)))
    assert len(format_expression(model.automata[0].edges[0].guard)) > 3


def test_deep_sums_flatten_or_keep_their_order(tmp_path: Path) -> None:
    for name in ("x", "y"):
        text = '{"op":"<","left":0,"right":' + f'{{"op":"+","right":"{name}","left":' * LESS_DEEP
        text += f'"{name}"' + "}" * LESS_DEEP + "}"
        real = {"name": "y", "type": "real", "initial-value": 0}
        model = guarded("HERE", variables=[variable("x", 0, 9), real])
        raw = as_bytes(model).replace(b'"HERE"', text.encode())
        guard = read_model(write(tmp_path, raw)).automata[0].edges[0].guard
        assert len(guard.operands[1].operands) == LESS_DEEP + 1  # type: ignore[union-attr]


def test_nesting_beyond_the_limit_is_an_error(tmp_path: Path) -> None:
    error = expect_error(tmp_path, b"[" * (MAX_DEPTH + 1))
    assert "nested" in error.message


def test_a_deep_truncated_file_is_an_error(tmp_path: Path) -> None:
    assert "too early" in expect_error(tmp_path, b'{"a":[' * 20_000).message


def test_deep_nesting_is_fine_where_the_caller_is_deep_itself(tmp_path: Path) -> None:
    file = write(tmp_path, with_guard_text('{"op":"¬","exp":' * 300 + "true" + "}" * 300))

    def descend(levels: int) -> Model:
        return read_model(file) if levels == 0 else descend(levels - 1)

    assert descend(700).name == "minimal"


def test_data_that_contains_itself_is_an_error() -> None:
    model = minimal_model()
    model["automata"][0]["edges"].append(model)
    with pytest.raises(JaniError, match="nested"):
        read_model(model)


@pytest.mark.parametrize("odd", [{1, 2}, b"x", object(), (1,), 1j])
def test_python_objects_that_are_no_json_are_errors(odd: Any) -> None:
    model = guarded(odd)
    with pytest.raises(JaniError, match="Python") as caught:
        read_model(model)
    assert caught.value.path == "$.automata[0].edges[0].guard.exp"


def test_a_file_of_20_megabytes_is_fine(tmp_path: Path) -> None:
    model = minimal_model()
    edge = json.dumps(model["automata"][0]["edges"][0])
    filler = json.dumps({"location": "l", "comment": "x" * 20_000, "destinations": []})
    filler = filler.replace("[]", '[{"location": "l"}]')
    many = ", ".join([filler] * 1000)
    raw = as_bytes(model).replace(edge.encode(), f"{edge}, {many}".encode())
    assert len(raw) > 20_000_000
    assert len(read_model(write(tmp_path, raw)).automata[0].edges) == 1001


def test_many_errors_end_with_a_line_that_says_so() -> None:
    model = minimal_model()
    model["automata"][0]["edges"] *= 500
    model["automata"][0]["edges"] = [
        {**edge, "action": "nope"} for edge in model["automata"][0]["edges"]
    ]
    with pytest.raises(JaniErrorGroup) as caught:
        read_model(model)
    assert len(caught.value.errors) == 101
    assert "stopped after 100 errors" in str(caught.value.errors[-1])


def test_functions_that_call_each_other_exponentially_do_not_hang() -> None:
    functions = [_function("f0", binary("+", "n", 1))]
    for index in range(1, 60):
        inner = {"op": "call", "function": f"f{index - 1}"}
        left = {**inner, "args": [binary("*", 2, "n")]}
        right = {**inner, "args": [binary("+", binary("*", 2, "n"), 1)]}
        functions.append(_function(f"f{index}", binary("+", left, right)))
    call = {"op": "call", "function": "f59", "args": [1]}
    with pytest.raises(JaniError, match="steps"):
        read_model(guarded(binary("<", "x", call), functions=functions))


def test_powers_and_products_that_explode_do_not_hang() -> None:
    tower: Any = 10
    for _ in range(6):
        tower = binary("pow", 10, tower)
    with pytest.raises(JaniError, match="too large"):
        read_model(guarded(binary("<", "x", tower)))
    constants: list[dict[str, Any]] = [{"name": "c0", "type": "int", "value": 7}]
    for index in range(1, 80):
        value = binary("*", f"c{index - 1}", f"c{index - 1}")
        constants.append({"name": f"c{index}", "type": "int", "value": value})
    with pytest.raises(JaniError, match="too large"):
        read_model(minimal_model(constants=constants))


def test_constants_in_a_long_chain_backwards_are_fine() -> None:
    count = 20_000
    constants: list[dict[str, Any]] = [
        {"name": f"c{index}", "type": "int", "value": binary("+", f"c{index + 1}", 1)}
        for index in range(count)
    ]
    constants.append({"name": f"c{count}", "type": "int", "value": 0})
    assert read_model(minimal_model(constants=constants)).constants["c0"] == count


def _function(name: str, body: Any) -> dict[str, Any]:
    return {"name": name, "type": "int", "parameters": [{"name": "n", "type": "int"}], "body": body}


@settings(max_examples=150)
@given(data=st.data())
def test_random_bytes_in_a_model_never_crash(data: st.DataObject) -> None:
    raw = bytearray(as_bytes(small_model()))
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.integers(0, len(raw) - 1))
        raw[where : where + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    _read_or_refuse(bytes(raw))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["x", "b", "r", "N", "go", "near", "int", "cost", "∧", "call"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["op", "left", "right", "exp", "name", "kind", "file", "if", "args"]),
        inner,
        max_size=4,
    ),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32), values=st.lists(JSON, min_size=1, max_size=3))
def test_random_values_in_a_model_never_crash(seed: int, values: list[Any]) -> None:
    model, chance = small_model(), random.Random(seed)
    for value in values:
        item: Any = model
        while True:
            keys = list(item) if isinstance(item, dict) else list(range(len(item)))
            if not keys:
                break
            key = chance.choice(keys)
            if not isinstance(item[key], dict | list) or chance.random() < 0.2:
                item[key] = value
                break
            item = item[key]
    _read_or_refuse(json.dumps(model).encode())


@settings(max_examples=100)
@given(properties=JSON)
def test_random_properties_never_crash(properties: Any) -> None:
    model = read_model(minimal_model())
    for kind in ("PA", "filter", "objective", "states-values"):
        expression = {
            "op": kind,
            "objective": properties,
            "start": properties,
            "values": properties,
        }
        with_name = [{"name": "p", "expression": expression}]
        try:
            read_properties(json.loads(json.dumps(with_name)), model)
        except JaniError:
            continue


def _read_or_refuse(raw: bytes) -> None:
    with contextlib.suppress(JaniError):
        read_model(parse_document(raw, "", Report()).data)


def test_a_model_survives_pickling_and_copying() -> None:
    model = read_model(small_model())
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert twin.digest == model.digest
        assert [v.name for v in twin.variables] == [v.name for v in model.variables]
        guard, other = model.automata[0].edges[0].guard, twin.automata[0].edges[0].guard
        assert format_expression(guard) == format_expression(other)


def test_errors_survive_pickling(tmp_path: Path) -> None:
    error = expect_error(tmp_path, as_bytes(guarded(binary("∧", "u", "v"))))
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_deep_models_survive_pickling_and_copying(tmp_path: Path) -> None:
    text = '{"op":"ite","if":{"op":"<","left":"x","right":2},"then":true,"else":' * LESS_DEEP
    model = read_model(write(tmp_path, with_guard_text(text + "false" + "}" * LESS_DEEP)))
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        guard = twin.automata[0].edges[0].guard
        assert format_expression(guard) == format_expression(model.automata[0].edges[0].guard)
