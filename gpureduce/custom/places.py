"""Arrays on devices, as operators see them."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpureduce import _core
from gpureduce.custom import arrays as host
from gpureduce.custom.scalars import Kind

# The default stream has these names.
DEFAULT_STREAMS = {0, 1}


class Placed(NamedTuple):
    """strides in bytes. holder keeps the memory; is_known: whether `stream` is the one that its
    library works on."""

    address: int
    kind: Kind
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: int
    stream: int
    swapped: bool
    read_only: bool
    is_known: bool
    holder: Any
    given: Any  # what the caller has; None of what was brought here

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def ends(self) -> tuple[int, int]:
        """Its first address, and the one behind its last."""
        reach = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        size = self.kind.parts * self.kind.part.bytes
        low = self.address + sum(r for r in reach if r < 0)
        return low, self.address + sum(r for r in reach if r > 0) + size


def viewed(name: str, a: Any) -> Placed | None:
    """The array where it lies on a device; None of others."""
    if isinstance(a, np.ndarray | np.generic):
        return None
    found = _core.device_view(a, name)
    if found is None:
        return None
    address, dtype, shape, strides, device, stream, swapped, read_only, known, holder = found
    kind = host.kind(name, dtype)
    return Placed(
        address, kind, shape, strides, device, stream, bool(swapped), bool(read_only),
        bool(known), holder, a,
    )  # fmt: skip


def device_of(
    name: str, device: Any, arrays: Sequence[Any], way_out: str = 'use device="cpu"'
) -> int | None:
    """Which device is to fold them; None: the host. way_out: what works without any."""
    if not isinstance(device, str):
        raise TypeError(f"{name}: device is a text, as 'cuda:0', not {type(device).__name__}")
    kind, _, number = device.partition(":")
    if device not in ("auto", "cpu") and kind != "cuda":
        if kind == "all":
            raise TypeError(f"{name}: a user's operator runs on one device: auto, cpu or cuda:0")
        raise ValueError(f"{name}: device {device!r} is not known: auto, cpu and cuda:0 are")
    if device == "cpu" or (
        device == "auto" and all(isinstance(a, np.ndarray | np.generic) for a in arrays)
    ):
        return None
    there = {p.device for a in arrays if (p := viewed(name, a)) is not None}
    if len(there) > 1:
        raise ValueError(f"{name}: the inputs are on the devices {sorted(there)}: give them on one")
    if device == "auto":
        return min(there, default=None)
    if number and not number.isdecimal():
        raise TypeError(f"{name}: a user's operator runs on one device, not on {device!r}")
    wanted = int(number) if number else min(there, default=0)
    if there and wanted not in there:
        raise ValueError(f"{name}: the inputs are on cuda:{min(there)}, not on {device}")
    count, why = _core.device_count()
    if not count:
        raise _core.DeviceError(why if there else f"{why}, or {way_out}")
    if wanted >= count:
        raise _core.DeviceError(f"there is no {device}: {count} devices are there")
    return wanted


def brought(name: str, a: Any, device: int, stream: int) -> Placed:
    """An array of the host, copied to the device once for each place that it has."""
    array = host.taken(name, a)
    kind = host.kind(name, array.dtype)
    ones = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in array.strides)
    own = np.ascontiguousarray(array[ones], array.dtype.newbyteorder("=")).reshape(
        tuple(1 if s == 0 else n for n, s in zip(array.shape, array.strides, strict=True))
    )
    strides = tuple(
        0 if old == 0 else new for old, new in zip(array.strides, own.strides, strict=True)
    )
    memory = _core.device_memory(device, stream, "uint8", own.nbytes)
    address = _core.device_address(memory)
    _core.device_put(device, stream, address, own.reshape(-1).view(np.uint8))
    return Placed(
        address, kind, array.shape, strides, device, stream, False, False, True, memory, None
    )


def follow(arrays: Sequence[Placed], device: int, stream: int) -> None:
    """What comes on the stream waits for what makes the arrays."""
    for a in arrays:
        if a.stream != stream and {a.stream, stream} - DEFAULT_STREAMS:
            _core.device_order(device, a.stream, stream)


def let_go(arrays: Sequence[Placed], device: int, stream: int) -> None:
    """What comes on the arrays' streams waits for the stream, and what was brought is freed then.
    Of an array that came by DLPack nobody knows who writes to it next, and the host waits."""
    for a in arrays:
        if a.given is None:
            _core.device_mark(a.holder, stream)
        elif not a.is_known:
            _core.device_wait(device, stream)
        elif a.stream != stream:
            _core.device_order(device, stream, a.stream)


def c_strides(shape: Sequence[int], size: int) -> tuple[int, ...]:
    return tuple(size * math.prod(shape[d + 1 :]) for d in range(len(shape)))


def overlaps(one: Placed, other: Placed) -> bool:
    (low, high), (first, stop) = one.ends(), other.ends()
    return low < stop and first < high
