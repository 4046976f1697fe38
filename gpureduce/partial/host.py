"""What partials are taken of: arrays in the host's memory, and copies of those on a device."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpureduce import _core, annotated
from gpureduce.partial.given import check_mask
from gpureduce.partial.kinds import dtype_of

# What is copied from a device at a time.
_PIECE = 64 << 20


def array_of(x: Any, function: str) -> NDArray[Any]:
    """The elements, with nothing dropped in silence."""
    if type(x) is np.ndarray:
        return x
    found = _elements(x, function)
    if annotated.module_of(type(x)):
        raise TypeError(
            f"gpureduce.{function}: {type(x).__module__}.{type(x).__qualname__} is more than its "
            f"numbers, and partials are of numbers alone: {_advice(x)}"
        )
    return found


def _advice(x: Any) -> str:
    """How to give its numbers."""
    if hasattr(x, "unmasked"):
        return "give numpy.asarray(x.unmasked) with where=~x.mask"
    if hasattr(x, "isna"):
        return "give x.to_numpy(), with where=~x.isna() if values are missing"
    if hasattr(x, "null_count"):
        return "give x.to_numpy(), with where=x.is_valid() if values are missing"
    return "give numpy.asarray() of it"


def _elements(x: Any, function: str) -> NDArray[Any]:
    if hasattr(x, "mask") and hasattr(x, "compressed"):
        raise TypeError(
            f"gpureduce.{function}: masked arrays are not supported; give x.data with where=~x.mask"
        )
    if hasattr(x, "__dask_graph__") and getattr(x, "chunks", None):
        raise TypeError(
            f"gpureduce.{function}: a Dask array is reduced lazily by gpureduce's own functions, "
            "as in gpureduce.sum(x); give one block of it"
        )
    return np.asarray(brought(x, function))


def brought(x: Any, function: str) -> Any:
    """A copy of what lies on a device; all else as it is."""
    if isinstance(x, np.ndarray | np.generic):
        return x
    there = _core.device_view(x, function)
    return x if there is None else _copy(there)


def mask_of(where: Any, function: str, shape: tuple[int, ...] | None = None) -> Any:
    """The shape, if it is known already, is what the mask has to broadcast to."""
    if hasattr(where, "unmasked"):
        raise TypeError(f"gpureduce.{function}: where is masked itself: give a plain array of bool")
    if where is True:
        return where
    mask = _elements(where, function)
    if shape is not None:
        check_mask(mask, shape, f"gpureduce.{function}: where")
    return mask


def _copy(there: Any) -> NDArray[Any]:
    """Of a device's array, in the order of its stream."""
    address, dtype, shape, strides, device, stream, swapped, _, _, holder = there
    kind = dtype_of(dtype)
    found = np.empty(shape, kind)
    bits = found.view(f"V{kind.itemsize}")
    if found.size:
        _fill(bits, address, strides, (device, stream))
    del holder  # kept the memory until here
    if swapped:
        found = found.view(kind.newbyteorder())
    return found


def _fill(to: NDArray[Any], address: int, strides: tuple[int, ...], where: tuple[int, int]) -> None:
    """Piece by piece: what lies between the elements comes too, and is left behind."""
    low = sum((n - 1) * s for n, s in zip(to.shape, strides, strict=True) if s < 0)
    high = sum((n - 1) * s for n, s in zip(to.shape, strides, strict=True) if s > 0)
    span = high - low + to.itemsize
    if span <= max(_PIECE, to.itemsize) or not to.ndim:
        room = np.empty(span, np.uint8)
        _core.device_get(*where, address + low, room)
        to[...] = np.ndarray(to.shape, to.dtype, room.data, -low, strides)
        return
    outer = max(range(to.ndim), key=lambda d: abs(strides[d]) * (to.shape[d] > 1))
    rest = span - (to.shape[outer] - 1) * abs(strides[outer])
    step = max(1, (_PIECE - rest) // abs(strides[outer]))
    for start in range(0, to.shape[outer], step):
        part = (slice(None),) * outer + (slice(start, start + step),)
        _fill(to[part], address + start * strides[outer], strides, where)
