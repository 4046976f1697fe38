from collections.abc import Callable
from typing import Any, SupportsIndex

from numpy.typing import ArrayLike, DTypeLike

from gpureduce import array_api as array_api
from gpureduce import warp as warp
from gpureduce import work_queue as work_queue
from gpureduce._core import DeviceArray, DeviceError, dtypes
from gpureduce.custom.decorator import operator
from gpureduce.custom.errors import OperatorError
from gpureduce.custom.laws import check_operator
from gpureduce.custom.operator import Operator
from gpureduce.functions import (
    devices,
    get_num_threads,
    isa,
    kernels,
    operators,
    reduce,
    reduceat,
    segments,
    set_num_threads,
)
from gpureduce.partial.accumulator import Accumulator
from gpureduce.partial.carrier import Partials
from gpureduce.partial.merging import fingerprint, finish, from_words, merge, words
from gpureduce.partial.take import partials

__version__: str
__all__ = [
    "Accumulator",
    "DeviceArray",
    "DeviceError",
    "Operator",
    "OperatorError",
    "Partials",
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "argminmax",
    "check_operator",
    "count_nonzero",
    "devices",
    "dtypes",
    "fingerprint",
    "finish",
    "from_words",
    "get_num_threads",
    "isa",
    "kernels",
    "max",
    "mean",
    "merge",
    "min",
    "minmax",
    "nanargmax",
    "nanargmin",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "operator",
    "operators",
    "partials",
    "prod",
    "ptp",
    "reduce",
    "reduceat",
    "segments",
    "set_num_threads",
    "std",
    "sum",
    "var",
    "words",
]

def sum(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
    *,
    device: str = "auto",
    kernel: str | None = None,
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def prod(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
    *,
    device: str = "auto",
    kernel: str | None = None,
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def min(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
    *,
    device: str = "auto",
    kernel: str | None = None,
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...

amin = min

def max(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
    *,
    device: str = "auto",
    kernel: str | None = None,
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...

amax = max

def argmin(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    out: Any = None,
    *,
    keepdims: Any = ...,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def argmax(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    out: Any = None,
    *,
    keepdims: Any = ...,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def mean(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    keepdims: Any = ...,
    *,
    where: Any = ...,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def any(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    out: Any = None,
    keepdims: Any = ...,
    *,
    where: Any = ...,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def all(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    out: Any = None,
    keepdims: Any = ...,
    *,
    where: Any = ...,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def count_nonzero(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    *,
    keepdims: Any = ...,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def ptp(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    out: Any = None,
    keepdims: Any = ...,
    *,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def minmax(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    out: Any = None,
    keepdims: Any = ...,
    *,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> tuple[Any, Any]: ...
def argminmax(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    out: Any = None,
    *,
    keepdims: Any = ...,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> tuple[Any, Any]: ...
def var(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: Any = ...,
    *,
    where: Any = ...,
    mean: Any = ...,
    correction: Any = ...,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def std(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: Any = ...,
    *,
    where: Any = ...,
    mean: Any = ...,
    correction: Any = ...,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def nansum(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
    *,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def nanprod(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
    *,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def nanmin(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
    *,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def nanmax(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
    *,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def nanargmin(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    out: Any = None,
    *,
    keepdims: Any = ...,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def nanargmax(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    out: Any = None,
    *,
    keepdims: Any = ...,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def nanmean(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    keepdims: Any = ...,
    *,
    where: Any = ...,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def nanvar(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: Any = ...,
    *,
    where: Any = ...,
    mean: Any = ...,
    correction: Any = ...,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
def nanstd(
    a: ArrayLike,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: Any = ...,
    *,
    where: Any = ...,
    mean: Any = ...,
    correction: Any = ...,
    device: str = "auto",
    progress: bool | Callable[[int, int], object] = False,
) -> Any: ...
