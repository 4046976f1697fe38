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

import gpureduce

TIMES = 7
GIB = 1 << 30


def pinned(nbytes: int) -> np.ndarray | None:
    """Page-locked memory, for as long as the process runs."""
    address = ctypes.c_void_p()
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    cuda.cuCtxSetCurrent(context)
    if cuda.cuMemHostAlloc(ctypes.byref(address), ctypes.c_size_t(nbytes), 3):
        return None
    room = (ctypes.c_char * nbytes).from_address(address.value or 0)
    return np.frombuffer(room, np.uint8)


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


def resident(parts: int, nbytes: int) -> dict[str, Callable[[], Any]] | None:
    """An array on each device by PyTorch, alone and as a list."""
    try:
        import torch
    except ImportError:
        return None
    there = [torch.rand(nbytes // 4, device=f"cuda:{i}") for i in range(parts)]
    return {"cuda": lambda: gpureduce.sum(there[0]), "cuda:all": lambda: gpureduce.sum(there)}


def main() -> None:
    devices = len(gpureduce.devices())
    if not devices:
        sys.exit("there is no CUDA device")
    nbytes = int(float(sys.argv[1]) * GIB) if len(sys.argv) > 1 else 2 * GIB
    names = ["cpu", "cuda", "cuda:all", "all", "auto"]
    print(f"{devices} x {gpureduce.devices()[0]['name']}, {gpureduce.get_num_threads()} threads")
    print(f"{nbytes / GIB:g} GiB, float32, GB/s".ljust(34) + "".join(f"{n:>11}" for n in names))
    x = np.random.default_rng(1).random(nbytes // 4, np.float32)
    held = pinned(nbytes)
    arrays = {"pageable": x}
    if held is not None:
        arrays["pinned"] = held.view(np.float32)
        arrays["pinned"][:] = x
    for label, a in arrays.items():
        square = a.reshape(-1, 1 << 12)
        for what, call in {
            "sum": lambda device, a=a: gpureduce.sum(a, device=device),
            "max": lambda device, a=a: gpureduce.max(a, device=device),
            "sum, axis 1": lambda device, s=square: gpureduce.sum(s, axis=1, device=device),
            "sum, axis 0": lambda device, s=square: gpureduce.sum(s, axis=0, device=device),
        }.items():
            calls: dict[str, Callable[[], Any]] = {name: partial(call, name) for name in names}
            show(f"{label}: {what}", rates(calls, nbytes), names)
    there = resident(devices, 4 * GIB)
    if there is None:
        print("resident: no PyTorch")
        return
    alone = rates({"cuda": there["cuda"]}, 4 * GIB)
    together = rates({"cuda:all": there["cuda:all"]}, devices * 4 * GIB)
    show("resident: sum, 4 GiB each", alone | together, names)


if __name__ == "__main__":
    main()
