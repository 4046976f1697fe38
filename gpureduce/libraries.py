"""Results that stay on a device, as arrays of the library that the input came from."""

import sys
from typing import Any

from gpureduce._core import DeviceArray


def _of_numba(array: DeviceArray) -> Any:
    return sys.modules["numba.cuda"].as_cuda_array(array)


# By the first part of the input's module; a library that made an array is there to be asked.
_TAKE = {
    "torch": lambda array: sys.modules["torch"].from_dlpack(array),
    "cupy": lambda array: sys.modules["cupy"].from_dlpack(array),
    "jaxlib": lambda array: sys.modules["jax"].dlpack.from_dlpack(array),
    "jax": lambda array: sys.modules["jax"].dlpack.from_dlpack(array),
    "numba": _of_numba,
}


def of_its_kind(array: DeviceArray, like: Any) -> Any:
    """The array as one of like's library, without a copy; as it is where that cannot take it."""
    take = _TAKE.get(type(like).__module__.partition(".")[0])
    if take is None:
        return array
    try:
        return take(array)
    except (BufferError, RuntimeError, TypeError, ValueError):  # it has no such dtype or strides
        return array
