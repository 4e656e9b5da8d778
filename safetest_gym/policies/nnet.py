"""Networks as NNet text with a ``jani2nnet`` interface file, as the papers' C++ tool reads.

NNet: comment lines ``//``, then comma-separated lines: sizes, a flag, input minima, maxima,
means and ranges (the last two with one more entry for all outputs), then per layer its
weights row by row and its biases. Hidden layers are ReLU. Numbers are written with as many
digits as read back exactly, so writing, reading and writing gives the same bytes. Our own
comment line keeps how inputs are scaled to the last bit; other tools read the numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from safetest_gym.errors import PolicyError
from safetest_gym.policies.interface import Interface
from safetest_gym.policies.mlp import Layer, MlpPolicy
from safetest_gym.policies.scaling import Scaling
from safetest_gym.replacing import replace_file

__all__ = ["Network", "read_jani2nnet", "read_nnet", "write_jani2nnet", "write_nnet"]

_UNBOUNDED = float(np.finfo(np.float32).max)
_NOTE = "// safetest-gym scalings: "

Network = tuple[tuple[Layer, ...], tuple[Scaling, ...]]


def read_nnet(path: Path) -> Network:
    """Layers and input scaling of an ``.nnet`` file.

    An output range and mean other than 1 and 0 are folded into the last layer.
    """
    lines = _number_lines(path)
    try:
        header, sizes = next(lines), [int(size) for size in next(lines)]
        count, inputs = int(header[0]), int(header[1])
        if len(sizes) != count + 1 or sizes[0] != inputs or sizes[-1] != int(header[2]):
            raise ValueError(f"layer sizes {sizes} do not fit the header {header}")
        next(lines)
        low, high = next(lines), next(lines)
        means, ranges = next(lines), next(lines)
        layers = [_read_layer(lines, sizes, i) for i in range(count)]
        if means[inputs:] not in ([], [0.0]) or ranges[inputs:] not in ([], [1.0]):
            layers[-1] = _unfolded(layers[-1], means[inputs], ranges[inputs])
    except StopIteration:
        raise PolicyError(f"{path} ends early") from None
    except (IndexError, OverflowError, ValueError) as error:
        raise PolicyError(f"{path} is no NNet file: {error}") from error
    return tuple(layers), _scalings(path, (low, high, means, ranges), _own_note(path), inputs)


def write_nnet(policy: MlpPolicy, path: Path) -> None:
    """Write layers and scaling as NNet text.

    Raises:
        PolicyError: the format cannot express it (tanh, scaling after clipping).
    """
    *hidden, last = policy.layers
    if last.activation != "identity" or any(layer.activation != "relu" for layer in hidden):
        raise PolicyError("NNet files know ReLU networks only; save as .pt instead")
    sizes = [policy.layers[0].weight.shape[1], *(len(layer.bias) for layer in policy.layers)]
    rows: list[Sequence[object]] = [
        (len(policy.layers), sizes[0], sizes[-1], max(sizes)),
        sizes,
        (0,),
        *_scaling_rows(policy.scalings, sizes[0]),
    ]
    for layer in policy.layers:
        rows += [[str(value) for value in weights] for weights in layer.weight]
        rows += [(str(value),) for value in layer.bias]
    lines = ["// Neural network in NNet format, written by safetest-gym"]
    if policy.scalings:
        note = [scaling.as_json() for scaling in policy.scalings]
        lines.append(_NOTE + json.dumps(note, separators=(",", ":")))
    lines += [",".join(map(str, row)) + "," for row in rows]
    text = "\n".join(lines) + "\n"
    replace_file(path, lambda fresh: fresh.write_text(text, encoding="utf-8"))


def read_jani2nnet(path: Path) -> tuple[Interface, str]:
    """The interface and the name of the network's file, relative to ``path``."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        variables = tuple(
            f"{entry['automaton']}.{entry['name']}" if entry.get("automaton") else entry["name"]
            for entry in data["input"]
        )
        return Interface(variables, tuple(data["output"])), str(data["file"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, PolicyError):
            raise
        raise PolicyError(f"{path} is no jani2nnet file: {error!r}") from error


def write_jani2nnet(policy: MlpPolicy, path: Path, network: str) -> None:
    """Write the interface; a variable ``automaton.name`` is split at the last dot."""
    inputs = []
    for variable in policy.interface.variables:
        automaton, _, name = variable.rpartition(".")
        inputs.append({"automaton": automaton or None, "name": name})
    data = {
        "elements": [len(layer.bias) for layer in policy.layers[:-1]],
        "file": network,
        "filter": False,
        "input": inputs,
        "output": list(policy.interface.actions),
    }
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    replace_file(path, lambda fresh: fresh.write_text(text, encoding="utf-8"))


def _number_lines(path: Path) -> Iterator[list[float]]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise PolicyError(f"{path} is no NNet file: {error}") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("//"):
            continue
        try:
            yield [float(cell) for cell in line.split(",") if cell.strip()]
        except ValueError as error:
            raise PolicyError(f"{path}, line {number}: {error}") from error


def _read_layer(lines: Iterator[list[float]], sizes: Sequence[int], i: int) -> Layer:
    weight = np.array([next(lines) for _ in range(sizes[i + 1])], dtype=np.float32)
    bias = np.array([next(lines)[0] for _ in range(sizes[i + 1])], dtype=np.float32)
    if weight.shape != (sizes[i + 1], sizes[i]):
        raise ValueError(f"layer {i} has weights {weight.shape}")
    return Layer(weight, bias, "identity" if i == len(sizes) - 2 else "relu")


def _unfolded(layer: Layer, mean: float, scale: float) -> Layer:
    if scale <= 0:
        raise ValueError(f"output range {scale} is not positive")
    weight, bias = layer.weight.astype(np.float64) * scale, layer.bias.astype(np.float64) * scale
    return Layer(weight.astype(np.float32), (bias + mean).astype(np.float32))


def _scalings(
    path: Path, rows: Sequence[Sequence[float]], note: tuple[Scaling, ...], inputs: int
) -> tuple[Scaling, ...]:
    """Scalings of the four rows: those of our own note, if that is what the rows say."""
    low, high, mean, scale = (np.array(row[:inputs], dtype=np.float64) for row in rows)
    if len({len(row) for row in (low, high, mean, scale)} | {inputs}) != 1:
        raise PolicyError(f"{path}: minima, maxima, means and ranges need {inputs} numbers each")
    if note and _scaling_rows(note, inputs) == [list(row) for row in rows]:
        return note
    if (scale <= 0).any():
        raise PolicyError(f"{path}: input ranges must be positive")
    low = np.where(low <= -_UNBOUNDED, -np.inf, (low - mean) / scale)
    high = np.where(high >= _UNBOUNDED, np.inf, (high - mean) / scale)
    scaling = Scaling(mean, np.ones(inputs), scale, low, high)
    return () if scaling.only_rounds else (scaling,)


def _scaling_rows(scalings: Sequence[Scaling], inputs: int) -> list[list[float]]:
    """Minima, maxima, means and ranges of all scalings together."""
    mean, scale = np.zeros(inputs), np.ones(inputs)
    low, high = np.full(inputs, -np.inf), np.full(inputs, np.inf)
    for scaling in scalings:
        if np.isfinite(low).any() or np.isfinite(high).any():
            raise PolicyError("NNet files cannot clip inputs and scale them again")
        mean, scale = mean + scaling.shift * scale, scale * scaling.scale / scaling.factor
        low, high = mean + scaling.low * scale, mean + scaling.high * scale
    return [
        np.maximum(low, -_UNBOUNDED).tolist(),
        np.minimum(high, _UNBOUNDED).tolist(),
        [*mean.tolist(), 0.0],
        [*scale.tolist(), 1.0],
    ]


def _own_note(path: Path) -> tuple[Scaling, ...]:
    """The scalings in a comment of ours, which keep what the rows cannot say exactly."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(_NOTE):
            try:
                return tuple(Scaling.from_json(data) for data in json.loads(line[len(_NOTE) :]))
            except (KeyError, TypeError, ValueError) as error:
                raise PolicyError(f"{path}: damaged comment {_NOTE!r}: {error!r}") from error
    return ()
