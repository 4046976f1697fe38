from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from gpureduce import warp as warp
from gpureduce import work_queue as work_queue
from gpureduce._core import DeviceError, dtypes
from gpureduce.functions import (
    devices,
    get_num_threads,
    isa,
    kernels,
    operators,
    reduce,
    set_num_threads,
)

__version__: str
__all__ = [
    "DeviceError",
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "devices",
    "dtypes",
    "get_num_threads",
    "isa",
    "kernels",
    "max",
    "mean",
    "min",
    "operators",
    "prod",
    "ptp",
    "reduce",
    "set_num_threads",
    "sum",
]

def sum(
    a: ArrayLike,
    *,
    dtype: DTypeLike | None = None,
    initial: Any = None,
    device: str = "auto",
    kernel: str | None = None,
) -> Any: ...
def prod(
    a: ArrayLike,
    *,
    dtype: DTypeLike | None = None,
    initial: Any = None,
    device: str = "auto",
    kernel: str | None = None,
) -> Any: ...
def min(
    a: ArrayLike, *, initial: Any = None, device: str = "auto", kernel: str | None = None
) -> Any: ...

amin = min

def max(
    a: ArrayLike, *, initial: Any = None, device: str = "auto", kernel: str | None = None
) -> Any: ...

amax = max

def argmin(a: ArrayLike, *, device: str = "auto") -> np.int64: ...
def argmax(a: ArrayLike, *, device: str = "auto") -> np.int64: ...
def mean(a: ArrayLike, *, dtype: DTypeLike | None = None, device: str = "auto") -> Any: ...
def any(a: ArrayLike, *, device: str = "auto") -> np.bool: ...
def all(a: ArrayLike, *, device: str = "auto") -> np.bool: ...
def count_nonzero(a: ArrayLike, *, device: str = "auto") -> np.int64: ...
def ptp(a: ArrayLike, *, device: str = "auto") -> Any: ...
