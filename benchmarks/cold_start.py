"""What the first call of a process takes on a device, and what the build leaves on disk.

Each line of the first table is a median of processes: making the CUDA context alone, and the first
call beyond that, with a pack, with a warm cache, and with neither (NVRTC compiles). Writes
benchmarks/results/cold_start.md. Needs a device, a pack of its architecture and NVRTC.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import gpureduce
from gpureduce import _core, pack

HERE = Path(__file__).parent
RUNS, COLD_RUNS = 5, 2

# Milliseconds of the context and of the first call, on an array that lies on the device.
CHILD = """
import ctypes, json, sys, time
import numpy as np
import gpureduce
from gpureduce import pack
op, dtype, axis, packed = json.loads(sys.argv[1])
if not packed:
    pack.find = lambda arch, key: None
start = time.perf_counter()
cuda = ctypes.CDLL("libcuda.so.1")
context, device, address = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_uint64()
cuda.cuInit(0)
assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
assert cuda.cuCtxSetCurrent(context) == 0
a = np.ones((1024, 1024), dtype)
assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(a.nbytes)) == 0
assert cuda.cuMemcpyHtoD_v2(address, ctypes.c_void_p(a.ctypes.data), ctypes.c_size_t(a.nbytes)) == 0
made = time.perf_counter()
class There:
    __cuda_array_interface__ = {
        "shape": a.shape, "typestr": a.dtype.str, "data": (address.value, False), "version": 3,
    }
result = getattr(gpureduce, op)(There(), axis=axis)
done = time.perf_counter()
again = getattr(gpureduce, op)(There(), axis=axis)
print(json.dumps([(made - start) * 1e3, (done - made) * 1e3, (time.perf_counter() - done) * 1e3]))
"""

CASES = [
    ("sum", "float32", None),
    ("sum", "complex64", None),
    ("max", "float32", None),
    ("sum", "float32", 0),
    ("sum", "float32", 1),
    ("var", "float32", 0),
    ("argmax", "int8", 0),
]


def first_call(
    case: tuple[str, str, int | None], packed: bool, cache: str, nvrtc: str
) -> list[float]:
    environment = {**os.environ, "XDG_CACHE_HOME": cache, "GPUREDUCE_NVRTC": nvrtc}
    command = [sys.executable, "-c", CHILD, json.dumps([*case, packed])]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return list(map(float, json.loads(done.stdout)))


def medians(runs: list[list[float]]) -> list[float]:
    return [statistics.median(column) for column in zip(*runs, strict=True)]


def row(case: tuple[str, str, int | None]) -> str:
    with tempfile.TemporaryDirectory() as cache:
        cold = []
        for _ in range(COLD_RUNS):
            with tempfile.TemporaryDirectory() as empty:
                cold.append(first_call(case, False, empty, ""))
        first_call(case, False, cache, "")
        warm = medians([first_call(case, False, cache, "none") for _ in range(RUNS)])
    packed = medians([first_call(case, True, "/nonexistent", "none") for _ in range(RUNS)])
    op, dtype, axis = case
    what = f"{op} {dtype}" + ("" if axis is None else f" axis {axis}")
    cells = [what, f"{packed[0]:.0f} ms", f"{packed[1]:.1f} ms", f"{warm[1]:.1f} ms"]
    return "| " + " | ".join([*cells, f"{medians(cold)[1] / 1e3:.2f} s"]) + " |"


def main() -> None:
    devices = gpureduce.devices()
    if not devices:
        sys.exit(f"no GPU: {_core.device_count()[1]}")
    arch = "sm_{}{}".format(*devices[0]["compute_capability"])
    there = Path(pack.FOLDER) / f"{arch}.pack"
    if not there.exists():
        sys.exit(f"{there} is missing: python -m gpureduce cache pack")
    os.environ.pop("GPUREDUCE_NVRTC", None)
    compiler = _core.compiler(arch)[1].partition(",")[0]
    module = Path(_core.__file__)
    lines = [
        "# The first call",
        "",
        f"{devices[0]['name']}, {compiler}. Made by `benchmarks/cold_start.py`: medians of {RUNS}",
        f"processes ({COLD_RUNS} of those that compile), an array of 1024 x 1024 on the device.",
        "",
        "| first call | context alone | beyond it, with a pack | with a cache | with neither |",
        "| --- | --- | --- | --- | --- |",
    ]
    for case in CASES:
        lines.append(row(case))
        print(lines[-1], flush=True)
    sizes = {"the module": module, f"the pack of {arch}": there}
    lines += ["", "| on disk | MB |", "| --- | --- |"]
    lines += [f"| {name} | {path.stat().st_size / 1e6:.2f} |" for name, path in sizes.items()]
    (HERE / "results/cold_start.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
