"""The CPU half beside NumPy, in turn, in one run: medians, on random data.

Prints a row as it is measured, and those that miss their bar: least times NumPy's speed. Writes
build/bench/cpu.md, with --record benchmarks/results/cpu.md.
"""

import argparse
import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gpureduce

ROOT = Path(__file__).parent.parent
HEADER = (
    f"{'function':9}{'dtype':9}{'elements':>10}{'threads':>10}{'gpureduce':>15}{'NumPy':>15}"
    f"{'gpureduce':>13}{'times NumPy':>13}"
)
OPERATORS = ("sum", "max", "argmax")
DTYPES = ("float32", "float64", "int32", "int8", "bool")
SIZES = [1, 10, 100, 1000, *(2**k for k in range(12, 28))]
SHARED = 2**16  # from here on a sum of int8 or bool owes its speed to its loop, not to its call
IN_CACHE = (256 << 10, 1 << 20)
BEYOND_CACHES = 1 << 30
SAMPLE_SECONDS, ROW_SECONDS = 200e-6, 0.15
FEWEST, MOST = 9, 301
TRIALS = 3


@dataclass
class Row:
    operator: str
    dtype: str
    n: int
    threads: int
    bar: float  # times NumPy's speed
    ours: float = 0.0  # seconds
    numpy: float = 0.0

    @property
    def ratio(self) -> float:
        return self.numpy / self.ours

    @property
    def rate(self) -> float:
        return self.n * np.dtype(self.dtype).itemsize / self.ours / 1e9

    def __str__(self) -> str:
        return (
            f"{self.operator:7}{self.dtype:9}{self.n:>12,}{self.threads:>3} threads"
            f"{self.ours * 1e6:12.2f} µs{self.numpy * 1e6:12.2f} µs{self.rate:8.1f} GB/s"
            f"{self.ratio:7.2f} x (bar {self.bar})"
        )


def random(dtype: str, n: int) -> NDArray[Any]:
    rng = np.random.default_rng(n)
    if dtype.startswith("float"):
        return rng.standard_normal(n, np.dtype(dtype).type)
    whole = np.frombuffer(
        rng.bytes(n * np.dtype(dtype).itemsize), "u1" if dtype == "bool" else dtype
    )
    return whole > 127 if dtype == "bool" else whole


def seconds(function: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def measure(row: Row, array: NDArray[Any]) -> Row:
    """Samples of both in turn; a row below its bar is measured again, and the last time counts."""
    ours = partial(getattr(gpureduce, row.operator), array)
    theirs = partial(getattr(np, row.operator), array)
    gpureduce.set_num_threads(row.threads)
    for _ in range(TRIALS):
        once = max(seconds(ours, 3), seconds(theirs, 3))
        calls = max(1, int(SAMPLE_SECONDS / once))
        samples = min(MOST, max(FEWEST, int(ROW_SECONDS / (2 * calls * once))))
        pairs = [(seconds(ours, calls), seconds(theirs, calls)) for _ in range(samples)]
        row.ours, row.numpy = (statistics.median(times) for times in zip(*pairs, strict=True))
        if row.ratio >= row.bar:
            break
    print(row, flush=True)
    return row


def every_size(threads: int) -> Iterable[Row]:
    for dtype in DTYPES:
        array = random(dtype, SIZES[-1])
        for operator in OPERATORS:
            for n in SIZES:
                counts = operator == "sum" and dtype in ("int8", "bool") and n >= SHARED
                yield measure(Row(operator, dtype, n, threads, 4.0 if counts else 1.0), array[:n])


def exact_sums(threads: int) -> Iterable[Row]:
    for dtype in ("float32", "float64"):
        itemsize = np.dtype(dtype).itemsize
        array = random(dtype, BEYOND_CACHES // itemsize)
        for size in IN_CACHE:
            n = size // itemsize
            yield measure(Row("sum", dtype, n, 1, 1.3), array[:n])
        yield measure(Row("sum", dtype, array.size, 1, 0.75), array)
        if threads > 1:
            yield measure(Row("sum", dtype, array.size, threads, 1.4), array)


def machine() -> str:
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    name = model[1] if model else platform.machine()
    return f"{name}, {os.cpu_count()} cores, {gpureduce.isa()}, NumPy {np.__version__}"


def table(rows: list[Row], operator: str) -> str:
    cells = {(row.dtype, row.n): f"{row.rate:.3g} GB/s, {row.ratio:.2f} x" for row in rows}
    lines = [["elements", *DTYPES], ["---"] * (len(DTYPES) + 1)]
    lines += [[f"{n:,}", *(cells[dtype, n] for dtype in DTYPES)] for n in SIZES]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"## {operator}\n\n{body}\n"


def report(sizes: list[Row], sums: list[Row], misses: list[Row]) -> str:
    parts = [
        "# The CPU half beside NumPy\n",
        f"{machine()}; {sizes[0].threads} threads; made by `benchmarks/cpu.py`. Speed of gpureduce,"
        " call included, and how many times NumPy's it is.\n",
        *(table([row for row in sizes if row.operator == op], op) for op in OPERATORS),
        "## Exact sums\n\n| dtype | MiB | threads | GB/s | x NumPy |\n|---|---|---|---|---|",
        *(
            f"| {row.dtype} | {row.n * np.dtype(row.dtype).itemsize / 2**20:g} | {row.threads}"
            f" | {row.rate:.1f} | {row.ratio:.2f} |"
            for row in sums
        ),
    ]
    if misses:
        parts += ["\n## Below their bar\n\n```", *map(str, misses), "```"]
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the table that is committed")
    results = ROOT / ("benchmarks/results" if parser.parse_args().record else "build/bench")
    threads = gpureduce.get_num_threads()
    rows_to_come = len(DTYPES) * len(OPERATORS) * len(SIZES) + 2 * (len(IN_CACHE) + 1)
    print(f"{machine()}: {rows_to_come} rows or two more, some five minutes\n{HEADER}", flush=True)
    sizes, sums = list(every_size(threads)), list(exact_sums(threads))
    rows = [*sizes, *sums]
    misses = [row for row in rows if row.ratio < row.bar]
    results.mkdir(parents=True, exist_ok=True)
    (results / "cpu.md").write_text(report(sizes, sums, misses))
    print(f"\n{len(misses)} of {len(rows)} rows below their bar", *misses, sep="\n")


if __name__ == "__main__":
    main()
