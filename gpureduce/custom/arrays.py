"""What operators are given and give back: arrays of the host, and nothing stripped in silence."""

import operator as python_operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpureduce.caller import told_of
from gpureduce.chunked import check_in_memory
from gpureduce.partial.axes import axes_of
from gpureduce.partial.given import check_mask

if TYPE_CHECKING:
    from gpureduce.custom.scalars import Kind

Array = NDArray[np.generic]


def _is_on_device(a: Any) -> bool:
    if hasattr(a, "__cuda_array_interface__"):
        return True
    where = getattr(a, "__dlpack_device__", None)
    if where is None or isinstance(a, np.ndarray | np.generic):
        return False
    return int(where()[0]) not in (1, 3)  # the host's memory, and its pinned memory


def taken(name: str, a: Any) -> Array:
    """The array, as it lies."""
    if isinstance(a, np.ndarray) and type(a) in (np.ndarray, np.memmap):
        return a
    check_in_memory(name, a)
    what = f"{type(a).__module__}.{type(a).__qualname__}"
    if _is_on_device(a):
        raise TypeError(
            f"{name}: this {what} is on a device, and device='cpu' was asked for: "
            "leave it out, or give an array of the host"
        )
    other = hasattr(a, "__array_ufunc__") or hasattr(a, "__array_function__")
    if other and not isinstance(a, np.generic) and type(a) is not np.ndarray:
        raise TypeError(
            f"{name}: {what} is more than an array, and a user's operator would lose what it is: "
            "give numpy.asarray() of it"
        )
    found = np.asarray(a)
    if found.dtype == object and isinstance(a, Sequence):
        raise TypeError(f"{name}: {what} makes an array of objects, which have no numbers")
    return found


def kind(name: str, dtype: DTypeLike) -> "Kind":
    from gpureduce.custom.scalars import BFLOAT, Kind, kind_of

    is_named = isinstance(dtype, str) and dtype == "bfloat16"  # of a device, without ml_dtypes
    found = Kind(BFLOAT) if is_named else kind_of(np.dtype(dtype))
    if found is None:
        raise TypeError(f"{name}: dtype {dtype} is not supported: operators take numbers")
    return found


def one_axis(name: str, axis: Any, dims: int) -> int:
    if dims == 0:
        raise TypeError(f"{name}: a number has no axis to cut")
    try:
        at = python_operator.index(axis)
    except TypeError:
        raise ValueError(f"{name}: axis is one axis, not {axis!r}") from None
    return axes_of(at, dims, name)[0]


def mask_of(name: str, where: Any, shape: tuple[int, ...]) -> Array | None:
    """None where all count."""
    if where is True:
        return None
    mask = taken(name, where)
    check_mask(mask, shape, f"{name}: where")
    return np.broadcast_to(mask, shape)


def bounds_of(name: str, what: str, given: Any) -> NDArray[np.int64]:
    found = np.asarray(given)
    if found.size == 0 and found.ndim == 1 and not isinstance(given, np.ndarray):
        found = found.astype(np.int64)
    if found.dtype.kind not in "iu":
        raise TypeError(f"{name}: {what} are of dtype {found.dtype}, not integers")
    if found.ndim != 1:
        raise ValueError(f"{name}: {what} have {found.ndim} dimensions, not one")
    return np.ascontiguousarray(found, np.int64)


def checked_out(name: str, result: Array, out: Any) -> Array:
    """It, if it may take the result: of several none is written if one may not."""
    if not isinstance(out, np.ndarray):
        if _is_on_device(out):
            raise TypeError(f"{name}: out is on a device, and a user's operator runs on the host")
        raise TypeError(f"{name}: out is a {type(out).__name__}, not an array")
    if out.shape != result.shape:
        raise ValueError(f"{name}: out has the shape {out.shape}, and the result {result.shape}")
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise TypeError(f"{name}: a result of {result.dtype} does not fit out's {out.dtype}")
    if not out.flags.writeable:
        raise ValueError(f"{name}: out is read-only")
    return out


def put(name: str, result: Array, out: Any) -> Array:
    """The result into the caller's own array."""
    room = checked_out(name, result, out)
    with told_of("cast"):
        np.copyto(room, result, casting="same_kind")
    return room
