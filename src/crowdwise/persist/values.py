"""Values as JSON and named arrays, and back: a closed list of kinds."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from crowdwise.errors import FormatError, ParameterError, explain
from crowdwise.persist.registry import class_named, name_of
from crowdwise.persist.savable import Savable, is_learned
from crowdwise.persist.times import MOMENTS, TIMES, as_times, pack_moment, unpack_moment
from crowdwise.typing import Array

Arrays = dict[str, Array]
NUMBERS = "biuf"  # kinds of numpy numbers that a file can hold
PLAIN = (str, bool, int)


class Kind(NamedTuple):
    """How one kind of value is told apart, taken to pieces and put together again."""

    takes: Callable[[Any], bool]
    pack: Callable[[Any, str, Arrays], dict[str, Any]]
    unpack: Callable[[dict[str, Any], Arrays], Any]


def encode(value: Any, place: str, arrays: Arrays) -> Any:
    """A value as JSON, its arrays put into ``arrays`` under the name of their place."""
    if value is None or type(value) in PLAIN or (type(value) is float and math.isfinite(value)):
        return value
    if isinstance(value, str):  # numpy's own, say
        return str(value)
    if type(value) is list:
        return [encode(item, f"{place}.{i}", arrays) for i, item in enumerate(value)]
    for name, kind in KINDS.items():
        if kind.takes(value):
            return {"kind": name, **kind.pack(value, place, arrays)}
    raise ParameterError(
        explain(
            f"{place} is a {type(value).__name__}, which a file without pickle cannot hold.",
            expected="numbers, text, arrays, and parts of crowdwise",
            fix="save the model in pieces, or choose parts of crowdwise",
        )
    )


def decode(tree: Any, arrays: Arrays) -> Any:
    """The value that :func:`encode` made ``tree`` of."""
    if isinstance(tree, list):
        return [decode(item, arrays) for item in tree]
    if isinstance(tree, dict):
        if tree.get("kind") not in KINDS:
            raise FormatError(f"There is no kind of value named {tree.get('kind')!r:.80}.")
        return KINDS[tree["kind"]].unpack(tree, arrays)
    return tree


# -- numbers and arrays --------------------------------------------------------------------


def _pack_scalar(value: Any, place: str, arrays: Arrays) -> dict[str, Any]:
    return {"type": value.dtype.name, "value": encode(value.item(), place, arrays)}


def _unpack_scalar(tree: dict[str, Any], arrays: Arrays) -> Any:
    return _number_type(tree["type"]).type(decode(tree["value"], arrays))


def _number_type(name: Any) -> np.dtype[Any]:
    dtype = np.dtype(str(name))
    if dtype.kind not in NUMBERS:
        raise FormatError(f"{name!r:.80} is not a type of number.")
    return dtype


def _pack_array(value: Any, place: str, arrays: Arrays) -> dict[str, Any]:
    array = np.array(value, order="C", dtype=value.dtype.newbyteorder("="))
    return {"array": _put(array, place, arrays)}


def _put(array: Array, place: str, arrays: Arrays) -> str:
    if place in arrays:
        raise ParameterError(f"Two arrays would be saved as {place}.")
    arrays[place] = array
    return place


def _pack_names(value: Any, place: str, arrays: Arrays) -> dict[str, Any]:
    """Text and mixed names, as JSON in bytes: a header is no place for a million of them."""
    items: list[Any] = value.tolist()
    if not {type(item) for item in items} <= set(PLAIN):
        items = encode(items, place, arrays)
    text = np.frombuffer(json.dumps(items).encode("ascii"), dtype=np.uint8)
    return {"array": _put(text, place, arrays), "type": value.dtype.kind}


def _unpack_names(tree: dict[str, Any], arrays: Arrays) -> Array:
    items = decode(json.loads(arrays[tree["array"]].tobytes()), arrays)
    if tree["type"] == "U":
        return np.array(items, dtype=str)
    names = np.empty(len(items), dtype=object)
    names[:] = items
    return names


def _pack_times(value: Any, place: str, arrays: Arrays) -> dict[str, Any]:
    native = value.astype(value.dtype.newbyteorder("="))
    return {**_pack_array(native.view(np.int64), place, arrays), "type": native.dtype.name}


def _pack_tensor(value: Any, place: str, arrays: Arrays) -> dict[str, Any]:
    tensor = value.detach().cpu()
    if tensor.is_floating_point() and tensor.element_size() < 4:
        tensor = tensor.float()  # numpy knows no bfloat16; loading narrows it again
    return _pack_array(tensor.numpy(), place, arrays)


def _unpack_tensor(tree: dict[str, Any], arrays: Arrays) -> Any:
    import torch

    return torch.from_numpy(arrays[tree["array"]])


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")  # without it there are no tensors either
    return torch is not None and isinstance(value, torch.Tensor)


def _pack_random_state(value: Any, place: str, arrays: Arrays) -> dict[str, Any]:
    return {"state": encode(value.get_state(legacy=False), place, arrays)}


def _unpack_random_state(tree: dict[str, Any], arrays: Arrays) -> np.random.RandomState:
    generator = np.random.RandomState(0)
    generator.set_state(decode(tree["state"], arrays))
    return generator


# -- what holds other values ---------------------------------------------------------------


def _pack_dict(value: Any, place: str, arrays: Arrays) -> dict[str, Any]:
    pairs = [
        [encode(key, f"{place}.key", arrays), encode(item, f"{place}.{key}", arrays)]
        for key, item in value.items()
    ]
    return {"items": pairs}


def _unpack_dict(tree: dict[str, Any], arrays: Arrays) -> dict[Any, Any]:
    return {decode(key, arrays): decode(item, arrays) for key, item in tree["items"]}


def _pack_table(value: Any, place: str, arrays: Arrays) -> dict[str, Any]:
    """A series or frame: its values, and the names along its axes."""
    parts: dict[str, Any] = {"values": value.to_numpy(), "name": getattr(value, "name", None)}
    for number, axis in enumerate(value.axes):
        parts |= {f"axis_{number}": axis.to_numpy(), f"axis_name_{number}": axis.name}
    return {name: encode(part, f"{place}.{name}", arrays) for name, part in parts.items()}


def _unpack_table(tree: dict[str, Any], arrays: Arrays) -> Any:
    part = {name: decode(value, arrays) for name, value in tree.items() if name != "kind"}
    axes = [
        pd.Index(part[f"axis_{number}"], name=part[f"axis_name_{number}"])
        for number in range(part["values"].ndim)
    ]
    if len(axes) == 1:
        return pd.Series(part["values"], index=axes[0], name=part["name"])
    return pd.DataFrame(part["values"], index=axes[0], columns=axes[1])


def _pack_record(value: Any, place: str, arrays: Arrays) -> dict[str, Any]:
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {"name": name_of(type(value)), "fields": encode(fields, place, arrays)}


def _unpack_record(tree: dict[str, Any], arrays: Arrays) -> Any:
    record: Any = class_named(tree["name"])
    if not hasattr(record, "__dataclass_fields__"):
        raise FormatError(f"{tree['name']} is no record.")
    return record(**decode(tree["fields"], arrays))


def _pack_estimator(value: Any, place: str, arrays: Arrays) -> dict[str, Any]:
    params = value.get_params(deep=False)
    if params.get("memory") is not None:
        raise ParameterError(f"{place} has a cache on disk.\n  fix:      set_params(memory=None)")
    return {
        "name": name_of(type(value)),
        "params": encode(params, place, arrays),
        "learned": encode(learned_by(value), place, arrays),
    }


def learned_by(estimator: Any) -> dict[str, Any]:
    """Learned attributes of an estimator of ours or of scikit-learn's."""
    if isinstance(estimator, Savable):
        return estimator._learned()
    return {name: value for name, value in vars(estimator).items() if is_learned(name)}


def _unpack_estimator(tree: dict[str, Any], arrays: Arrays) -> Any:
    return build(tree["name"], decode(tree["params"], arrays), decode(tree["learned"], arrays))


def build(name: str, params: dict[str, Any], learned: dict[str, Any]) -> Any:
    """An estimator by its name on our list, with parameters and learned attributes."""
    cls: Any = class_named(name)
    strange = [key for key in learned if not is_learned(key)]
    if not issubclass(cls, BaseEstimator) or strange:
        raise FormatError(f"{name} cannot have learned {', '.join(strange) or 'anything'!s:.80}.")
    unknown = params.keys() - inspect.signature(cls).parameters.keys()
    if unknown:
        raise FormatError(f"{name} has no parameter {sorted(unknown)[0]!r:.80}.")
    if params.get("memory") is not None:  # a cache is read with pickle, whatever is in there
        raise FormatError(f"{name} has a cache on disk.")
    estimator = cls(**params)
    if isinstance(estimator, Savable):
        estimator._restore(learned)
    else:
        vars(estimator).update(learned)
    return estimator


KINDS: dict[str, Kind] = {
    "float": Kind(
        lambda value: type(value) is float,  # what JSON has no number for
        lambda value, _place, _arrays: {"value": repr(value)},
        lambda tree, _arrays: float(tree["value"]),
    ),
    "scalar": Kind(
        lambda value: isinstance(value, np.generic) and value.dtype.kind in NUMBERS,
        _pack_scalar,
        _unpack_scalar,
    ),
    "array": Kind(
        lambda value: type(value) is np.ndarray and value.dtype.kind in NUMBERS,
        _pack_array,
        lambda tree, arrays: arrays[tree["array"]],
    ),
    "names": Kind(
        lambda value: type(value) is np.ndarray and value.ndim == 1 and value.dtype.kind in "OU",
        _pack_names,
        _unpack_names,
    ),
    "times": Kind(
        lambda value: type(value) is np.ndarray and value.dtype.kind in TIMES,
        _pack_times,
        lambda tree, arrays: as_times(arrays[tree["array"]], tree["type"]),
    ),
    "moment": Kind(
        lambda value: type(value) in MOMENTS,
        lambda value, _place, _arrays: pack_moment(value),
        lambda tree, _arrays: unpack_moment(tree),
    ),
    "tensor": Kind(_is_tensor, _pack_tensor, _unpack_tensor),
    "random_state": Kind(
        lambda value: type(value) is np.random.RandomState,
        _pack_random_state,
        _unpack_random_state,
    ),
    "tuple": Kind(
        lambda value: type(value) is tuple,
        lambda value, place, arrays: {"items": encode(list(value), place, arrays)},
        lambda tree, arrays: tuple(decode(tree["items"], arrays)),
    ),
    "dict": Kind(lambda value: isinstance(value, dict), _pack_dict, _unpack_dict),
    "table": Kind(
        lambda value: isinstance(value, pd.Series | pd.DataFrame), _pack_table, _unpack_table
    ),
    "estimator": Kind(
        lambda value: isinstance(value, BaseEstimator) and name_of(type(value)) is not None,
        _pack_estimator,
        _unpack_estimator,
    ),
    "record": Kind(
        lambda value: dataclasses.is_dataclass(value) and name_of(type(value)) is not None,
        _pack_record,
        _unpack_record,
    ),
}
