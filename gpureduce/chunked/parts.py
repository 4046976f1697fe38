"""Arrays that lie on several devices: each part is reduced there, and what it gives is merged."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpureduce import _core
from gpureduce.partial import merging, positions
from gpureduce.partial.carrier import Partials
from gpureduce.partial.kinds import INDEX, Kind, dtype_of, kind_of

_NO = np._NoValue
_DEVICES = ("auto", "cuda:all", "all")


class _Part(NamedTuple):
    """A part, and its place in the whole array: one number of a list's flat index, or one for each
    axis."""

    array: Any
    place: Any


def _sharded(a: Any) -> tuple[list[_Part], Any]:
    if not a.is_fully_addressable:
        raise ValueError(
            "an array that is sharded over several processes: reduce a.addressable_data(0) in each "
            "by gpureduce.partials() and merge those"
        )
    parts = []
    for shard in a.addressable_shards:
        if shard.replica_id == 0:
            place = tuple(s.start or 0 for s in shard.index)
            parts.append(_Part(shard.data, place))
    return parts, a.shape


def _listed(arrays: Sequence[Any]) -> tuple[list[_Part], None]:
    parts, at = [], 0
    for array in arrays:
        parts.append(_Part(array, at))
        at += math.prod(array.shape if hasattr(array, "shape") else _interface(array)["shape"])
    return parts, None


def _interface(array: Any) -> Any:
    return array.__cuda_array_interface__


def _dtype_of(array: Any) -> np.dtype[Any]:
    if hasattr(array, "dtype"):
        return dtype_of(str(array.dtype).removeprefix("torch."))
    return dtype_of(_interface(array)["typestr"])


def _kind(name: str, parts: Sequence[_Part], given: Mapping[str, Any]) -> Kind:
    dtypes = {_dtype_of(part.array) for part in parts}
    if len(dtypes) != 1:
        raise TypeError(
            f"gpureduce.{name}: parts of several dtypes: {', '.join(sorted(map(str, dtypes)))}"
        )
    asked = given.get("dtype")
    kind = kind_of(name, dtypes.pop() if asked is None else dtype_of(asked), name)
    if kind.tree:
        raise TypeError(
            f"gpureduce.{name}: of several devices' arrays none is formed along the tree: multiply "
            "host copies, or gather them on one device"
        )
    return kind


def _check(name: str, given: Mapping[str, Any]) -> None:
    usual = {"keepdims": False, "where": True, "ddof": 0}
    for key, value in given.items():
        is_taken = key in ("dtype", "device", "progress")
        if not is_taken and value is not _NO and value is not usual.get(key):
            raise TypeError(f"gpureduce.{name}: {key} is not taken with arrays on several devices")
    if given.get("device", "auto") not in _DEVICES:
        raise ValueError(
            f"gpureduce.{name}: arrays on several devices are reduced where they lie; device is "
            f"one of {', '.join(_DEVICES)}, not {given['device']!r}"
        )


def reduce(name: str, a: Any, given: Mapping[str, Any]) -> Any:
    """All elements of a list of devices' arrays, or of one that is sharded."""
    _check(name, given)
    parts, whole = _listed(a) if isinstance(a, list | tuple) else _sharded(a)
    kind = _kind(name, parts, given)
    arrays = tuple(part.array for part in parts)
    words = np.stack(_core.partials_of_parts(INDEX[name], arrays, given.get("dtype"), kind.number))
    if kind.is_position:
        for row, part in zip(words, parts, strict=True):
            shape = part.array.shape if whole else ()
            positions.shift(Partials(kind, name, row), part.place, whole, shape)
    merged = _core.partials_merge(kind.row, kind.dtype, kind.number, words[:, np.newaxis])
    return merging.finish(Partials(kind, name, merged[0]))
