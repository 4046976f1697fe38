"""Users' operators on a GPU, beside CuPy's ReductionKernel and our own matmul2x2.

    python benchmarks/operators.py [--mebibytes 1024] [--repeats 20]

Less than a minute. Each line is the median of calls that follow each other on the stream, by the
device's events, so that a call whose host takes longer shows that; the share is of what the device
reads in a bandwidth test of as many bytes. CuPy gives up the order and has no results of several
numbers: what it is asked is the nearest that it can."""

import argparse
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from statistics import median
from typing import Any

import numpy as np

import gpureduce
from gpureduce import _core

HYPOT = gpureduce.Operator(
    "f4", combine="sqrtf(a * a + b * b)", identity=0.0, commutative=True, name="hypot"
)
WELFORD = gpureduce.Operator(
    "n: f8, mean: f8, m2: f8",
    lift="n = 1; mean = x; m2 = 0",
    combine="""d = b.mean - a.mean; n = a.n + b.n
               mean = a.mean + d * (b.n / n); m2 = a.m2 + b.m2 + d * d * a.n * (b.n / n)""",
    finish={"mean": "mean", "var": "m2 / n"},
    name="welford",
)
COUNTED = gpureduce.Operator(
    "n: i8, mean: f8, m2: f8",
    lift="n = 1; mean = x; m2 = 0",
    combine="""d = b.mean - a.mean; n = a.n + b.n
               mean = a.mean + d * b.n / n; m2 = a.m2 + b.m2 + d * d * a.n * b.n / n""",
    finish={"mean": "mean", "var": "m2 / n"},
    name="welford, n: i8",
)
MATRICES = gpureduce.Operator(
    "m: f8[2][2]",
    inputs="x[2][2]",
    lift="for (int r = 0; r < 2; r++) for (int c = 0; c < 2; c++) m[r][c] = x[r][c]",
    combine="""for (int r = 0; r < 2; r++) for (int c = 0; c < 2; c++)
                 m[r][c] = a.m[r][0] * b.m[0][c] + a.m[r][1] * b.m[1][c]""",
    name="matrices",
)
EXACT = gpureduce.Operator("exact f4", combine="a + b", identity=0, name="exact f4")
SUM = gpureduce.Operator("f8", combine="a + b", identity=0.0, name="plus")


def milliseconds(cupy: Any, work: Callable[[], Any], repeats: int) -> float:
    """Of one call."""
    work()
    times = []
    for _ in range(3):
        first, last = cupy.cuda.Event(), cupy.cuda.Event()
        first.record()
        for _ in range(repeats):
            work()
        last.record()
        last.synchronize()
        times.append(cupy.cuda.get_elapsed_time(first, last) / repeats)
    return float(median(times))


def others(cupy: Any) -> tuple[str, Callable[[Any, Any], Any]]:
    """The product of whom there is: PyTorch, along axes that follow each other, or CuPy."""
    try:
        torch: Any = import_module("torch")
    except ImportError:
        return "CuPy prod", lambda a, axis: cupy.prod(a, axis=axis)

    def prod(a: Any, axis: Any) -> Any:
        for d in sorted(axis if isinstance(axis, tuple) else (axis,), reverse=True):
            a = torch.prod(torch.as_tensor(a, device="cuda"), d)
        return a

    return "torch prod", prod


def compiled_in(work: Callable[[], Any]) -> float:
    since = time.monotonic()
    work()
    return time.monotonic() - since


def show(name: str, size: int, time_: float, limit: float, first: float) -> None:
    rate = size / time_ / 1e6
    print(f"{name:44} {time_ * 1e3:9.1f} µs {rate:7.0f} GB/s {100 * rate / limit:5.1f} %"
          f"   first call {first:5.2f} s", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mebibytes", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=20)
    asked = parser.parse_args()
    cupy: Any = import_module("cupy")
    theirs, their_prod = others(cupy)
    size = asked.mebibytes << 20
    limit = _core.bandwidth(0, size)["read"] / 1e9
    print(f"{gpureduce.__name__} on {_core.devices()[0]['name']}: reads {limit:.0f} GB/s")
    x = cupy.random.default_rng(0).standard_normal(size // 4, dtype=np.float32)
    square = x[: 16384 * (len(x) // 16384)].reshape(16384, -1)
    odd = x[: 12345 * 6789].reshape(12345, 6789)
    m = cupy.random.default_rng(1).standard_normal(size // 8).reshape(-1, 2, 2)
    odd_m = m[: 4115 * 6789].reshape(4115, 6789, 2, 2)
    hypot = cupy.ReductionKernel(
        "float32 x", "float32 y", "x * x", "a + b", "y = sqrt(a)", "0", "length_of"
    )
    short, ours = x[: 101 * (len(x) // 101)].reshape(-1, 101), gpureduce.prod
    works: list[tuple[str, Any, Callable[[], Any]]] = []
    for op in (HYPOT, WELFORD, COUNTED, SUM):
        cases = [("whole", x, None), ("rows", square, 1), ("columns", square, 0)]
        cases += [("12345 x 6789, axis 0", odd, 0), ("12345 x 6789, axis 1", odd, 1)]
        for name, a, axis in cases if op is not SUM else cases[:1]:
            works.append((f"{op.name}, {name}", a, partial(op, a, axis=axis, keepdims=True)))
    for op in (HYPOT, WELFORD):
        works.append((f"{op.name}, whole from element 1 on", x[1:], partial(op, x[1:])))
        works.append((f"{op.name}, rows of 101", short, partial(op, short, axis=1)))
    positive = x > 0
    works.append(("hypot, where=", x, lambda: HYPOT(x, keepdims=True, where=positive)))
    works += [
        ("CuPy hypot, whole", x, lambda: hypot(x)),
        ("CuPy hypot, rows", square, lambda: hypot(square, axis=1)),
        ("CuPy hypot, columns", square, lambda: hypot(square, axis=0)),
        ("matrices, whole", m, lambda: MATRICES(m, keepdims=True)),
        ("our own matmul2x2, whole", m, lambda: gpureduce.reduce(m, "matmul2x2")),
        (
            "matrices, rows",
            m.reshape(512, -1, 2, 2),
            lambda: MATRICES(m.reshape(512, -1, 2, 2), axis=1),
        ),
        ("matrices, 4115 x 6789, axis 1", odd_m, lambda: MATRICES(odd_m, axis=1)),
        ("exact f4, whole", x, lambda: EXACT(x, keepdims=True)),
        ("a small one: hypot of 1000", x[:1000], lambda: HYPOT(x[:1000], keepdims=True)),
    ]
    cube = x[: 250 * 1001 * 1003].reshape(250, 1001, 1003)
    for name, a, along in (
        ("rows", square, 1), ("columns", square, 0), ("12345 x 6789, axis 0", odd, 0),
        ("12345 x 6789, axis 1", odd, 1), ("rows of 101", short, 1),
        ("every other row, axis 0", square[::2], 0), ("every other column, axis 1", odd[:, ::2], 1),
        ("250 x 1001 x 1003, axis 1", cube, 1), ("the same, axes 0 and 2", cube, (0, 2)),
        ("the same, axes 0 and 1", cube, (0, 1)), ("few long columns", x.reshape(-1, 8), 0),
    ):  # fmt: skip
        works.append((f"prod, {name}", a, partial(ours, a, axis=along)))
        works.append((f"{theirs}, {name}", a, partial(their_prod, a, along)))
    for name, a, work in works:
        first = compiled_in(work)
        show(name, a.nbytes, milliseconds(cupy, work, asked.repeats), limit, first)


if __name__ == "__main__":
    main()
