"""Axes, variances, strides and segments of device arrays beside PyTorch, CuPy and JAX, in one run.

Medians: the kernel by events between launches that follow each other without waiting, and beside
the libraries such calls (JAX's by the clock). GB/s are of the array's bytes, as the peers' are; a
percentage is of all bytes that are moved, those of the results too, over the read limit of as many
bytes, measured in the run in the same way on bytes that no cache holds. It is the array's
alone but for the shapes with few elements an output: of (2^26, 1) as much is written as read, and
half would be its most. Kernels that take an array of 256 MiB again and again are as fast as over
four such arrays in turn.
Prints what misses its bar; writes benchmarks/results/gpu_axes.md.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from gpu import (
    GIB,
    ROUNDS,
    Row,
    Toolkit,
    cupy,
    jax,
    machine,
    need_a_gpu,
    normal,
    shown,
    torch,
    write,
)

import gpureduce
from gpureduce import _core

BATCHES, CALLS, WARM, LAUNCHES = 5, 8, 2, 15
# (shape, axis, bar of sums and of extremes)
SHAPES: list[tuple[tuple[int, ...], int, float]] = [
    ((8192, 8192), 0, 0.85),
    ((8192, 8192), 1, 0.85),
    ((1 << 20, 64), 1, 0.85),
    ((1 << 20, 64), 0, 0.85),
    ((64, 1 << 20), 1, 0.85),
    ((64, 1 << 20), 0, 0.85),
    ((16, 4096, 4096), 1, 0.88),
    ((4, 1 << 26), 1, 0.88),
    ((1 << 26, 4), 0, 0.88),
    ((1 << 26, 4), 1, 0.80),
    ((1 << 24, 7), 1, 0.80),
]
BARS = {"argmax": 0.75}
SWEEP, SWEEP_BAR = 26, 0.70  # log2 of the elements
SEGMENTS, LONGEST = 10**6, 4_000_000


def milliseconds(work: Callable[[], Any]) -> float:
    """Of one call, by events on the default stream: a median of batches."""
    times = []
    for _ in range(BATCHES):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        for call in range(WARM + CALLS):
            if call == WARM:
                begin.record()
            work()
        end.record()
        end.synchronize()
        times.append(float(cupy.cuda.get_elapsed_time(begin, end)) / CALLS)
    return statistics.median(times)


def seconds_of_jax(work: Callable[[], Any], dtype: str | None) -> float:
    made = str(work().block_until_ready().dtype)
    if dtype not in (None, made):
        raise TypeError(f"JAX has no {dtype} here")
    times = []
    for _ in range(BATCHES):
        start = time.perf_counter()
        for _ in range(CALLS):
            result = work()
        result.block_until_ready()
        times.append((time.perf_counter() - start) / CALLS)
    return statistics.median(times)


# --- the others -----------------------------------------------------------------------------------

TORCHS = {"sum": "sum", "max": "amax", "argmax": "argmax", "var": "var"}


def peers(op: str, array: Any, axis: int | None) -> dict[str, float]:
    """GB/s of the same call; none where it fails, as for want of memory."""
    found: dict[str, float] = {}
    calls: dict[str, Callable[[], float]] = {
        "CuPy": lambda: milliseconds(lambda: getattr(cupy, op)(array, axis=axis)) / 1e3
    }
    if torch:
        of_torch = torch.from_dlpack(array)
        where: dict[str, Any] = {} if axis is None else {"dim": axis}
        if op == "var":
            where["correction"] = 0
        calls["torch"] = lambda: (
            milliseconds(lambda: getattr(torch, TORCHS[op])(of_torch, **where)) / 1e3
        )
    if jax:
        of_jax = jax.dlpack.from_dlpack(array)
        compiled = jax.jit(lambda x: getattr(jax.numpy, op)(x, axis=axis))
        dtype = None if op == "argmax" else str(array.dtype)
        calls["JAX"] = lambda: seconds_of_jax(lambda: compiled(of_jax), dtype)
    for name, call in calls.items():
        try:
            found[name] = array.nbytes / call() / 1e9
        except Exception as error:
            print(f"{name} {op} {array.shape} axis {axis}: {error}", flush=True)
    return found


# --- ours -----------------------------------------------------------------------------------------


Case = tuple[str, Any, int | None]  # operator, array, axis


def kernels(cases: list[Case], starts: Any = None, stops: Any = None) -> list[float]:
    """Of each case GB/s of the kernel."""
    times: list[list[float]] = [[] for _ in cases]
    for _ in range(ROUNDS):
        for (op, array, axis), taken in zip(cases, times, strict=True):
            taken += _core.axes_time(op, array, axis, starts, stops, LAUNCHES)
    return [
        array.nbytes / statistics.median(taken) / 1e6
        for (_, array, _), taken in zip(cases, times, strict=True)
    ]


def calls(op: str, array: Any, axis: int | None) -> float:
    """GB/s of calls whose results stay on the device."""
    function = getattr(gpureduce, op)
    keep = {"keepdims": True} if axis is None else {}
    return float(array.nbytes / milliseconds(lambda: function(array, axis=axis, **keep)) / 1e6)


def most(limit: Callable[[int], float], op: str, array: Any, axis: int | None) -> float:
    """GB/s of the array's bytes if all that is moved were read at the limit."""
    outputs = 1 if axis is None else array.size // array.shape[axis]
    moved = array.nbytes + outputs * (8 if op == "argmax" else array.itemsize)
    return float(limit(moved) * array.nbytes / moved)


def shaped(data: Any, shape: tuple[int, ...]) -> Any:
    return data[: int(np.prod(shape, dtype=np.int64))].reshape(shape)


def along_axes(limit: Callable[[int], float], data: Any) -> Iterator[Row]:
    bars = [
        (op, shape, axis, BARS.get(op, bar))
        for op in ("sum", "max", "argmax")
        for shape, axis, bar in SHAPES
    ]
    cases: list[Case] = [(op, shaped(data, shape), axis) for op, shape, axis, _ in bars]
    for (op, shape, axis, bar), (_, array, _), value in zip(
        bars, cases, kernels(cases), strict=True
    ):
        yield Row(
            "Along an axis, float32",
            f"{op} {shape} axis {axis}",
            value,
            "GB/s",
            bar,
            most(limit, op, array, axis),
            calls(op, array, axis),
            peers=peers(op, array, axis),
        )


def variances(limit: Callable[[int], float]) -> Iterator[Row]:
    side = 1 << 14
    for dtype in ("float32", "float64"):
        data = normal(dtype, 4 * GIB)
        cases: list[Case] = [("var", data, None)]
        if dtype == "float32":
            cases += [("var", shaped(data, (side, side)), axis) for axis in (0, 1)]
        for (op, array, axis), value in zip(cases, kernels(cases), strict=True):
            what = "all of 4 GiB" if axis is None else f"{array.shape} axis {axis}"
            yield Row(
                "Variances, exact and in one pass",
                f"{op} {dtype} {what}",
                value,
                "GB/s",
                0.75 if axis is None else 0.65,
                most(limit, op, array, axis),
                calls(op, array, axis),
                peers=peers(op, array, axis),
            )
        del data, cases, array
        cupy.get_default_memory_pool().free_all_blocks()


def strides(limit: Callable[[int], float], data: Any) -> Iterator[Row]:
    """Half of the time that as many bytes take in a row; of a line in memory all are touched."""
    flat, square = shaped(data, (1 << 28,)), shaped(data, (1 << 14, 1 << 14))
    views = {"x[::2]": flat[::2], "x[:, ::2]": square[:, ::2], "x.T": square.T}
    for op in ("sum", "var"):
        cases: list[Case] = [(op, view, None) for view in (flat, *views.values())]
        whole, *values = kernels(cases)
        for (name, view), value in zip(views.items(), values, strict=True):
            yield Row(
                "Strides, 1 GiB touched",
                f"{op} {name}",
                value * GIB / view.nbytes,
                "GB/s",
                limit=limit(GIB),
                peers={"contiguous": whole},
                peer_bar=0.5,
            )


def skewed() -> Any:
    """Lengths from 1 on, of which few are most: 1 GiB of float32 in all."""
    rng = np.random.default_rng(5)
    wanted = GIB // 4
    lengths = np.minimum(1 + rng.pareto(0.8, SEGMENTS) * 20, LONGEST)
    for _ in range(20):
        lengths = np.clip(lengths * wanted / lengths.sum(), 1, LONGEST)
    return np.maximum(lengths.astype(np.int64), 1)


def ragged(limit: Callable[[int], float], data: Any) -> Iterator[Row]:
    lengths = skewed()
    stops = np.cumsum(lengths)
    starts = stops - lengths
    array = data[: int(stops[-1])]
    cases: list[Case] = [(op, array, 0) for op in ("sum", "max")]
    for (op, _, _), value in zip(cases, kernels(cases, starts, stops), strict=True):
        yield Row(
            "Segments, float32",
            f"{op} of {SEGMENTS:,} of {lengths.min()} to {lengths.max():,}",
            value,
            "GB/s",
            0.60,
            limit(array.nbytes),
        )


def sweep(limit: Callable[[int], float], data: Any) -> Iterator[Row]:
    shapes = [(op, axis, k) for op in ("sum", "max") for axis in (0, 1) for k in range(SWEEP + 1)]
    cases: list[Case] = [
        (op, shaped(data, (1 << k, 1 << (SWEEP - k))), axis) for op, axis, k in shapes
    ]
    for (op, axis, k), (_, array, _), value in zip(shapes, cases, kernels(cases), strict=True):
        yield Row(
            "Every shape of 256 MiB, float32",
            f"{op} (2^{k}, 2^{SWEEP - k}) axis {axis}",
            value,
            "GB/s",
            SWEEP_BAR,
            most(limit, op, array, axis),
        )


def limits(toolkit: Toolkit, data: Any) -> Callable[[int], float]:
    known: dict[int, float] = {}

    def limit(size: int) -> float:
        size = min(size, data.nbytes)
        if size not in known:
            known[size] = toolkit.limit(data, size)
        return known[size]

    return limit


def main() -> None:
    need_a_gpu()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        data = normal("float32", GIB)
        limit = limits(Toolkit(folder), data)
        for section in (along_axes(limit, data), strides(limit, data), ragged(limit, data)):
            rows += shown(section)
        rows += shown(sweep(limit, data))
        rows += shown(variances(limit))
    about = f"{machine()} Made by `benchmarks/gpu_axes.py`.\n\n{__doc__ or ''}"
    title = "The GPU half: axes, variances, strides and segments"
    write("gpu_axes", title, about, rows)


if __name__ == "__main__":
    main()
