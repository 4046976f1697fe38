from typing import Any

from numpy.typing import ArrayLike, DTypeLike

from gpureduce.functions import Device, Operator

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
    /,
) -> Any: ...
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
    /,
) -> Any: ...
def operators() -> list[Operator]: ...
def dtypes() -> list[str]: ...
def rows() -> list[tuple[str, str, str, str]]: ...
def set_num_threads(number: int, /) -> None: ...
def get_num_threads() -> int: ...
def isa() -> str: ...
def device_count() -> tuple[int, str]: ...
def devices() -> list[Device]: ...
def bandwidth(device: int, bytes: int, /) -> dict[str, float]: ...
