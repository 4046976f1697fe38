"""One device, all of them, the CPU, and all together: the same array, in turn; medians in GB/s.

From pinned memory, from memory as NumPy has it, along both axes, and where it lies on the devices.
Prints a table in less than a minute: python benchmarks/devices.py [GiB]
"""

import ctypes
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gpureduce

TIMES = 7
GIB = 1 << 30
EACH = 16 * GIB  # that lies on each device


class There:
    """So many bytes on a device, as float32; they stay until the process ends."""

    def __init__(self, device: int, nbytes: int):
        address = ctypes.c_uint64()
        call(device, "cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(nbytes))
        call(device, "cuMemsetD8_v2", address, ctypes.c_ubyte(0x3C), ctypes.c_size_t(nbytes))
        call(device, "cuCtxSynchronize")
        self.__cuda_array_interface__ = {
            "shape": (nbytes // 4,),
            "typestr": "<f4",
            "data": (address.value, True),
            "version": 3,
        }


def call(device: int, name: str, *arguments: Any) -> None:
    """A function of the CUDA driver, in the device's primary context."""
    cuda, handle, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
    cuda.cuDeviceGet(ctypes.byref(handle), device)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)
    cuda.cuCtxSetCurrent(context)
    error = getattr(cuda, name)(*arguments)
    if error:
        raise MemoryError(f"{name}: CUDA error {error}")


def pinned(nbytes: int) -> NDArray[np.float32]:
    """Page-locked memory; it stays until the process ends."""
    address = ctypes.c_void_p()
    call(0, "cuMemHostAlloc", ctypes.byref(address), ctypes.c_size_t(nbytes), ctypes.c_uint(3))
    room = (ctypes.c_char * nbytes).from_address(address.value or 0)
    return np.frombuffer(memoryview(room), np.float32)


def rates(calls: dict[str, Callable[[], Any]], nbytes: int) -> dict[str, float]:
    """In turn, so that what else the machine does is the same for all; GB/s by their medians."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    found = {}
    for i in range(TIMES + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            found[name] = np.asarray(call()).tobytes()
            if i:
                times[name].append(time.perf_counter() - start)
    assert len(set(found.values())) == 1, "the bits differ"
    return {name: nbytes / statistics.median(took) / 1e9 for name, took in times.items()}


def show(what: str, found: dict[str, float], names: list[str]) -> None:
    print(f"{what:34}" + "".join(f"{found.get(n, float('nan')):11.1f}" for n in names), flush=True)


def main() -> None:
    devices = len(gpureduce.devices())
    if not devices:
        sys.exit("there is no CUDA device")
    nbytes = int(float(sys.argv[1] if len(sys.argv) > 1 else 2) * GIB) >> 20 << 20
    names = ["cpu", "cuda", "cuda:all", "all", "auto"]
    print(f"{devices} x {gpureduce.devices()[0]['name']}, {gpureduce.get_num_threads()} threads")
    print(f"{nbytes / GIB:g} GiB, float32, GB/s".ljust(34) + "".join(f"{n:>11}" for n in names))
    x = np.random.default_rng(1).random(nbytes // 4, np.float32)
    arrays = {"pageable": x, "pinned": pinned(nbytes)}
    arrays["pinned"][:] = x
    for label, a in arrays.items():
        square = a.reshape(-1, 1 << 12)
        for what, reduce in {
            "sum": lambda device, a=a: gpureduce.sum(a, device=device),
            "max": lambda device, a=a: gpureduce.max(a, device=device),
            "sum, axis 1": lambda device, s=square: gpureduce.sum(s, axis=1, device=device),
            "sum, axis 0": lambda device, s=square: gpureduce.sum(s, axis=0, device=device),
        }.items():
            calls: dict[str, Callable[[], Any]] = {name: partial(reduce, name) for name in names}
            show(f"{label}: {what}", rates(calls, nbytes), names)
    there: list[Any] = [There(device, EACH) for device in range(devices)]
    found = rates({"cuda": lambda: gpureduce.sum(there[0])}, EACH)
    found |= rates({"cuda:all": lambda: gpureduce.sum(there)}, devices * EACH)
    show(f"resident: sum, {EACH / GIB:g} GiB on each", found, names)


if __name__ == "__main__":
    main()
