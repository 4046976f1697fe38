"""Reductions along one axis on the CPU beside NumPy, in turn, in one run: least times of both, of
four rounds over all rows. In each round a row takes 0.15 s or more: a virtual machine's second
processor may be slow for a while after it was idle.

Every (2^k, 2^(22-k)) along either axis, and (10^7, 2) along its rows. Prints a table and the rows
that are slower than their bar; writes it to benchmarks/results, a file for each instruction set.
"""

import functools
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gpureduce

RESULT = Path(__file__).parent / "results" / f"axes_cpu_{gpureduce.isa()}.md"
OPERATORS = ("sum", "max", "argmax", "var")
DTYPES = ("float32", "float64")
ELEMENTS = 22  # log2
ROUNDS, TIMES, SECONDS = 4, 5, 0.15  # at least so many and so long
ROWS_OF_TWO = 10**7


Row = tuple[str, str, tuple[int, int], int, float]  # operator, dtype, shape, axis, bar


def seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


@functools.cache
def data(dtype: str, size: int) -> NDArray[Any]:
    return np.random.default_rng(0).standard_normal(size, np.dtype(dtype).type)


def measure(row: Row) -> Iterator[tuple[float, float]]:
    """Seconds of ours and of NumPy's, taken in turn."""
    operator, dtype, shape, axis, _ = row
    array = data(dtype, shape[0] * shape[1]).reshape(shape)
    ours, numpys = getattr(gpureduce, operator), getattr(np, operator)
    start, times = time.perf_counter(), 0
    while times < TIMES or time.perf_counter() < start + SECONDS:
        yield seconds(lambda: ours(array, axis=axis)), seconds(lambda: numpys(array, axis=axis))
        times += 1


def measure_all(rows: list[Row]) -> list[tuple[float, float]]:
    """The least of each row."""
    taken: list[list[tuple[float, float]]] = [[] for _ in rows]
    for number in range(ROUNDS):
        for row, times in zip(rows, taken, strict=True):
            times += measure(row)
        print(f"round {number + 1} of {ROUNDS}", flush=True)
    return [(min(one for one, _ in times), min(other for _, other in times)) for times in taken]


def rows() -> list[Row]:
    shapes = [(1 << k, 1 << (ELEMENTS - k)) for k in range(ELEMENTS + 1)]
    sweep = [
        (operator, dtype, shape, axis, 1.0)
        for operator in OPERATORS
        for dtype in DTYPES
        for axis in (0, 1)
        for shape in shapes
    ]
    pairs = [(operator, "float32", (ROWS_OF_TWO, 2), 1, 5.0) for operator in OPERATORS]
    return sweep + pairs


def processor() -> str:
    """Its name, and the numbers that tell more of it where a virtual machine hides that."""
    text = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    known = dict(re.findall(r"^(.*?)\s*: (.*)$", text, re.M))
    return f"{known['model name']} (family {known['cpu family']}, model {known['model']})"


def main() -> None:
    lines = [
        f"{processor()}, {gpureduce.isa()}, {gpureduce.get_num_threads()} threads, "
        f"NumPy {np.__version__}.",
        "",
        "| | dtype | shape | axis | ms | NumPy | times its speed | bar |",
        "|---|---|---|---|---|---|---|---|",
    ]
    below = 0
    for row, (ours, numpys) in zip(rows(), measure_all(rows()), strict=True):
        operator, dtype, shape, axis, bar = row
        mark = "" if numpys / ours >= bar else " below"
        below += bool(mark)
        lines.append(
            f"| {operator} | {dtype} | {shape} | {axis} | {ours * 1e3:.2f} | {numpys * 1e3:.2f} "
            f"| {numpys / ours:.2f} | {bar}{mark} |"
        )
        print(lines[-1])
    lines.append(f"\n{below} of {len(rows())} rows are below their bar.")
    print(lines[-1])
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
