from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from gpureduce.lists import Device, Kernel, Operator

__version__: str

class DeviceError(RuntimeError): ...

def reduce(
    op: int,
    a: ArrayLike,
    axis: Any,
    dtype: DTypeLike | None,
    out: Any,
    keepdims: Any,
    initial: Any,
    where: Any,
    ddof: float,
    mean: Any,
    device: str,
    kernel: str | None,
    progress: Callable[[int, int], object] | None,
    /,
) -> Any: ...

ufunc_reduce = reduce

def segments(
    op: int,
    a: ArrayLike,
    starts: ArrayLike,
    stops: ArrayLike | None,
    axis: Any,
    dtype: DTypeLike | None,
    out: Any,
    initial: Any,
    device: str,
    progress: Callable[[int, int], object] | None,
    /,
) -> Any: ...
def partials(
    op: int,
    a: ArrayLike,
    axis: Any,
    dtype: DTypeLike | None,
    keepdims: Any,
    where: Any,
    device: str,
    kind: int,
    brief: bool,
    progress: Callable[[int, int], object] | None,
    /,
) -> NDArray[Any]: ...
def brief_doubles(op: int, dtype: np.dtype[Any], /) -> int: ...
def brief_finish(
    op: int,
    dtype: np.dtype[Any],
    into: int,
    kind: int,
    ddof: float,
    parts: tuple[NDArray[np.float64], ...],
    /,
) -> tuple[NDArray[Any], int]: ...
def partials_rows() -> list[tuple[str, str, str, int, bool, list[str]]]: ...
def partials_check(kind: int, words: NDArray[np.int64]) -> int: ...
def partials_merge(
    op: int, dtype: np.dtype[Any], kind: int, words: NDArray[np.int64], /
) -> NDArray[np.int64]: ...
def float_errors(name: str, flags: int) -> None: ...
def partials_finish(
    op: int,
    dtype: np.dtype[Any],
    asked: int,
    into: np.dtype[Any],
    ddof: float,
    words: NDArray[np.int64],
    /,
) -> tuple[NDArray[Any], int]: ...
def operators() -> list[Operator]: ...
def dtypes() -> list[str]: ...
def kernels() -> list[Kernel]: ...
def kernel_dtypes() -> list[str]: ...
def rows() -> list[tuple[str, str, str, str]]: ...
def set_num_threads(number: int, /) -> None: ...
def get_num_threads() -> int: ...
def isa() -> str: ...
def device_count() -> tuple[int, str]: ...
def devices() -> list[Device]: ...
def programs() -> list[tuple[str, str, str]]: ...
def program_image(index: int, arch: str, /) -> tuple[str, bytes, bool]: ...
def compiler(arch: str, /) -> tuple[bool, str]: ...
def cache_folder() -> str | None: ...
def chosen(
    op: str,
    a: ArrayLike,
    axis: Any,
    dtype: DTypeLike | None,
    where: Any,
    kernel: str | None,
    multiprocessors: int,
    /,
) -> tuple[str, str, int, int]: ...
def bandwidth(device: int, bytes: int, /) -> dict[str, float]: ...
def speeds() -> dict[str, dict[str, Any] | None]: ...
def partials_of_parts(
    op: int, arrays: tuple[Any, ...], dtype: DTypeLike | None, kind: int, /
) -> list[NDArray[np.int64]]: ...
def measure_speeds(bytes: int, /) -> None: ...
def kernel_time(
    kernel: str, op: str, a: ArrayLike, device: str, repeats: int, /
) -> list[float]: ...
def axes_time(
    op: str, a: Any, axis: int | None, starts: Any, stops: Any, repeats: int, /
) -> list[float]: ...
def shuffle(
    name: str,
    x: NDArray[np.generic],
    out: NDArray[np.generic],
    width: int,
    by: int,
    i: int,
    j: int,
    /,
) -> None: ...
def segment_sums(
    name: str,
    a: NDArray[np.generic],
    offsets: NDArray[np.int64],
    out: NDArray[np.int64],
    repeats: int,
    /,
) -> list[float]: ...

@final
class DeviceArray:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

def device_view(
    a: Any, name: str, /
) -> tuple[int, str, tuple[int, ...], tuple[int, ...], int, int, int, int, int, Any] | None: ...
def device_memory(device: int, stream: int, dtype: str, count: int, /) -> DeviceArray: ...
def device_address(array: DeviceArray, /) -> int: ...
def device_mark(array: DeviceArray, stream: int, /) -> None: ...
def device_shaped(
    array: DeviceArray, shape: tuple[int, ...], strides: tuple[int, ...], /
) -> DeviceArray: ...
def device_put(device: int, stream: int, address: int, data: NDArray[Any], /) -> None: ...
def device_get(device: int, stream: int, address: int, to: NDArray[Any], /) -> None: ...
def device_order(device: int, before: int, stream: int, /) -> None: ...
def device_wait(device: int, stream: int, /) -> None: ...
def multiprocessors(device: int, /) -> int: ...
def operator_program(header: str, defines: str, kernel: str, /) -> object: ...
def operator_launch(
    program: object,
    device: int,
    stream: int,
    args: NDArray[np.int64],
    blocks: int,
    threads: int,
    scratch: int,
    is_own: bool,
    words: NDArray[np.int64],
    segments: int,
    /,
) -> None: ...
