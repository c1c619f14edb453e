"""Values as JSON and named arrays, and back, for a fixed list of kinds."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Callable
from datetime import date, datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from crowdwise.errors import FormatError, ParameterError, explain
from crowdwise.persist.registry import (
    Tree,
    Value,
    build,
    find_class,
    get_learned,
    registered_name,
)
from crowdwise.typing import Array

if TYPE_CHECKING:
    import torch

Arrays = dict[str, Array]
NUMBERS = "biuf"  # kinds of numpy numbers that can be stored
TIMES = "mM"  # kinds of numpy durations and dates
PLAIN = (str, bool, int)


class Kind(NamedTuple):
    """How to recognize, pack and unpack one kind of value."""

    takes: Callable[[Value], bool]
    pack: Callable[[Value, str, Arrays], Tree]
    unpack: Callable[[Tree, Arrays], Value]


def to_json(value: Value, place: str, arrays: Arrays) -> Value:
    """Convert a value to JSON, with its arrays in ``arrays`` under the name of their place."""
    if value is None or type(value) in PLAIN or (type(value) is float and math.isfinite(value)):
        return value
    if isinstance(value, str):  # such as numpy's own
        return str(value)
    if type(value) is list:
        return [to_json(item, f"{place}.{i}", arrays) for i, item in enumerate(value)]
    for name, kind in KINDS.items():
        if kind.takes(value):
            return {"kind": name, **kind.pack(value, place, arrays)}
    raise ParameterError(
        explain(
            f"{place} is a {type(value).__name__}, which cannot be stored without pickle.",
            expected="numbers, text, arrays, and parts of crowdwise",
            fix="save the model in pieces, or use parts of crowdwise",
        )
    )


def from_json(tree: Value, arrays: Arrays) -> Value:
    """Restore the value that :func:`to_json` converted."""
    if isinstance(tree, list):
        return [from_json(item, arrays) for item in tree]
    if isinstance(tree, dict):
        if tree.get("kind") not in KINDS:
            raise FormatError(f"There is no kind of value named {tree.get('kind')!r:.80}.")
        return KINDS[tree["kind"]].unpack(tree, arrays)
    return tree


# -- numbers and arrays --------------------------------------------------------------------


def _pack_scalar(value: np.generic, place: str, arrays: Arrays) -> Tree:
    return {"type": value.dtype.name, "value": to_json(value.item(), place, arrays)}


def _unpack_scalar(tree: Tree, arrays: Arrays) -> np.generic:
    return _number_type(tree["type"]).type(from_json(tree["value"], arrays))


def _number_type(name: Value) -> np.dtype[np.generic]:
    dtype = np.dtype(str(name))
    if dtype.kind not in NUMBERS:
        raise FormatError(f"{name!r:.80} is not a type of number.")
    return dtype


def _pack_array(value: Array, place: str, arrays: Arrays) -> Tree:
    array = np.array(value, order="C", dtype=value.dtype.newbyteorder("="))
    return {"array": _put(array, place, arrays)}


def _put(array: Array, place: str, arrays: Arrays) -> str:
    if place in arrays:
        raise ParameterError(
            f"Two arrays would be saved as {place}.\n  fix:      rename one of the parameters"
        )
    arrays[place] = array
    return place


def _pack_names(value: Array, place: str, arrays: Arrays) -> Tree:
    """Pack text and mixed names as JSON in bytes, since a header could not hold a million."""
    items: list[Value] = value.tolist()
    if not {type(item) for item in items} <= set(PLAIN):
        items = to_json(items, place, arrays)
    text = np.frombuffer(json.dumps(items).encode("ascii"), dtype=np.uint8)
    return {"array": _put(text, place, arrays), "type": value.dtype.kind}


def _unpack_names(tree: Tree, arrays: Arrays) -> Array:
    items = from_json(json.loads(arrays[tree["array"]].tobytes()), arrays)
    if tree["type"] == "U":
        return np.array(items, dtype=str)
    names = np.empty(len(items), dtype=object)
    names[:] = items
    return names


def _pack_times(value: Array, place: str, arrays: Arrays) -> Tree:
    native = value.astype(value.dtype.newbyteorder("="))
    return {**_pack_array(native.view(np.int64), place, arrays), "type": native.dtype.name}


def _unpack_times(tree: Tree, arrays: Arrays) -> Array:
    dtype = np.dtype(str(tree["type"]))
    if dtype.kind not in TIMES:
        raise FormatError(f"{tree['type']!r:.80} is not a type of time.")
    return arrays[tree["array"]].view(dtype)


def _pack_moment(value: date, _place: str, _arrays: Arrays) -> Tree:
    """Pack a date or time as text, with its time zone if that has a name."""
    zone = getattr(value, "tzinfo", None)
    named = None if zone is None else str(zone)
    try:
        pd.Timestamp(0, tz=named)
    except (KeyError, ValueError, TypeError, OSError):  # the text has at least the offset
        named = None
    return {"type": type(value).__name__, "value": value.isoformat(), "zone": named}


def _unpack_moment(tree: Tree, _arrays: Arrays) -> date:
    if tree["type"] == "Timestamp":  # the only kind that finds time zones by name
        moment = pd.Timestamp(tree["value"])
        return moment if tree["zone"] is None else moment.tz_convert(tree["zone"])
    return {"date": date, "datetime": datetime}[tree["type"]].fromisoformat(tree["value"])


def _pack_tensor(value: torch.Tensor, place: str, arrays: Arrays) -> Tree:
    tensor = value.detach().cpu()
    if tensor.is_floating_point() and tensor.element_size() < 4:
        tensor = tensor.float()  # numpy has no bfloat16; loading narrows it again
    return _pack_array(tensor.numpy(), place, arrays)


def _unpack_tensor(tree: Tree, arrays: Arrays) -> torch.Tensor:
    import torch

    return torch.from_numpy(arrays[tree["array"]])


def _is_tensor(value: Value) -> bool:
    torch = sys.modules.get("torch")  # not imported: no tensors
    return torch is not None and isinstance(value, torch.Tensor)


def _pack_random_state(value: np.random.RandomState, place: str, arrays: Arrays) -> Tree:
    return {"state": to_json(value.get_state(legacy=False), place, arrays)}


def _unpack_random_state(tree: Tree, arrays: Arrays) -> np.random.RandomState:
    generator = np.random.RandomState(0)
    generator.set_state(from_json(tree["state"], arrays))
    return generator


# -- values that contain others ------------------------------------------------------------


def _pack_dict(value: dict[Value, Value], place: str, arrays: Arrays) -> Tree:
    pairs = [
        [to_json(key, f"{place}.key", arrays), to_json(item, f"{place}.{key}", arrays)]
        for key, item in value.items()
    ]
    return {"items": pairs}


def _unpack_dict(tree: Tree, arrays: Arrays) -> dict[Value, Value]:
    return {from_json(key, arrays): from_json(item, arrays) for key, item in tree["items"]}


def _pack_table(value: pd.Series | pd.DataFrame, place: str, arrays: Arrays) -> Tree:
    """Pack a series or frame: its values, and the names along its axes."""
    parts: Tree = {"values": value.to_numpy(), "name": getattr(value, "name", None)}
    for number, axis in enumerate(value.axes):
        parts |= {f"axis_{number}": axis.to_numpy(), f"axis_name_{number}": axis.name}
    return {name: to_json(part, f"{place}.{name}", arrays) for name, part in parts.items()}


def _unpack_table(tree: Tree, arrays: Arrays) -> pd.Series | pd.DataFrame:
    part = {name: from_json(value, arrays) for name, value in tree.items() if name != "kind"}
    axes = [
        pd.Index(part[f"axis_{number}"], name=part[f"axis_name_{number}"])
        for number in range(part["values"].ndim)
    ]
    if len(axes) == 1:
        return pd.Series(part["values"], index=axes[0], name=part["name"])
    return pd.DataFrame(part["values"], index=axes[0], columns=axes[1])


def _pack_record(value: Value, place: str, arrays: Arrays) -> Tree:
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {"name": registered_name(type(value)), "fields": to_json(fields, place, arrays)}


def _unpack_record(tree: Tree, arrays: Arrays) -> Value:
    record: Value = find_class(tree["name"])
    if not hasattr(record, "__dataclass_fields__"):
        raise FormatError(f"{tree['name']} is not a record.")
    return record(**from_json(tree["fields"], arrays))


def _pack_estimator(value: BaseEstimator, place: str, arrays: Arrays) -> Tree:
    params = value.get_params(deep=False)
    if params.get("memory") is not None:
        raise ParameterError(f"{place} has a cache on disk.\n  fix:      set_params(memory=None)")
    return {
        "name": registered_name(type(value)),
        "params": to_json(params, place, arrays),
        "learned": to_json(get_learned(value), place, arrays),
    }


def _unpack_estimator(tree: Tree, arrays: Arrays) -> BaseEstimator:
    return build(
        tree["name"], from_json(tree["params"], arrays), from_json(tree["learned"], arrays)
    )


KINDS: dict[str, Kind] = {
    "float": Kind(
        lambda value: type(value) is float,  # including NaN and infinity, which JSON lacks
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
        _unpack_times,
    ),
    "moment": Kind(
        lambda value: type(value) in (date, datetime, pd.Timestamp),
        _pack_moment,
        _unpack_moment,
    ),
    "tensor": Kind(_is_tensor, _pack_tensor, _unpack_tensor),
    "random_state": Kind(
        lambda value: type(value) is np.random.RandomState,
        _pack_random_state,
        _unpack_random_state,
    ),
    "tuple": Kind(
        lambda value: type(value) is tuple,
        lambda value, place, arrays: {"items": to_json(list(value), place, arrays)},
        lambda tree, arrays: tuple(from_json(tree["items"], arrays)),
    ),
    "dict": Kind(lambda value: isinstance(value, dict), _pack_dict, _unpack_dict),
    "table": Kind(
        lambda value: isinstance(value, pd.Series | pd.DataFrame), _pack_table, _unpack_table
    ),
    "estimator": Kind(
        lambda value: isinstance(value, BaseEstimator) and registered_name(type(value)) is not None,
        _pack_estimator,
        _unpack_estimator,
    ),
    "record": Kind(
        lambda value: dataclasses.is_dataclass(value) and registered_name(type(value)) is not None,
        _pack_record,
        _unpack_record,
    ),
}
