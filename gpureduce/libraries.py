"""Results that stay on a device, as arrays of the library that the input came from."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gpureduce._core import DeviceArray
from gpureduce.bfloat import bfloat16


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


def of_torch(tensor: Any) -> Any:
    """What NumPy takes of a tensor in host memory, without a copy."""
    torch: Any = sys.modules["torch"]
    if tensor.dtype is not torch.bfloat16 or tensor.requires_grad:
        return tensor
    bits = tensor.view(torch.int16).numpy()
    return bits.view(bfloat16())


def _to_torch(array: Any) -> Any:
    torch: Any = sys.modules["torch"]
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


# The same of arrays in host memory.
_TAKE_HOST: dict[str, Callable[[Any], Any]] = {
    "torch": _to_torch,
    "jaxlib": lambda array: sys.modules["jax"].numpy.asarray(array),
    "jax": lambda array: sys.modules["jax"].numpy.asarray(array),
}


def of_host(result: Any, like: Any) -> Any:
    """NumPy's result, or two of them, as like's library has it; as it is where that has no such
    dtype, as JAX has none of 64 bits unless it is told to."""
    take = _TAKE_HOST.get(type(like).__module__.partition(".")[0])
    if take is None:
        return result
    if isinstance(result, tuple):
        return tuple(of_host(one, like) for one in result)
    if not isinstance(result, np.ndarray) or (
        type(like).__module__.startswith("jax")
        and result.itemsize // (1 + (result.dtype.kind == "c")) == 8
        and not sys.modules["jax"].config.jax_enable_x64
    ):
        return result
    try:
        return take(result)
    except (RuntimeError, TypeError, ValueError):
        return result
