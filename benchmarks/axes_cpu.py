"""Reductions along one axis on the CPU beside NumPy, in turn, in one run: least times of both.

Every (2^k, 2^(22-k)) along either axis, and (10^7, 2) along its rows. Prints a table and the rows
that are slower than their bar; writes benchmarks/results/axes_cpu.md.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gpureduce

RESULT = Path(__file__).parent / "results" / "axes_cpu.md"
OPERATORS = ("sum", "max", "argmax", "var")
DTYPES = ("float32", "float64")
ELEMENTS = 22  # log2
TIMES = 5
ROWS_OF_TWO = 10**7


def seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measure(operator: str, array: NDArray[Any], axis: int) -> tuple[float, float]:
    """Least seconds of ours and of NumPy's, taken in turn."""
    ours, numpys = getattr(gpureduce, operator), getattr(np, operator)
    both = [
        (seconds(lambda: ours(array, axis=axis)), seconds(lambda: numpys(array, axis=axis)))
        for _ in range(TIMES)
    ]
    return min(one for one, _ in both), min(other for _, other in both)


def rows() -> list[tuple[str, str, tuple[int, int], int, float]]:
    """(operator, dtype, shape, axis, bar)."""
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


def main() -> None:
    lines = [
        f"NumPy {np.__version__}, {gpureduce.get_num_threads()} threads, {gpureduce.isa()}.",
        "",
        "| | dtype | shape | axis | ms | NumPy | times its speed | bar |",
        "|---|---|---|---|---|---|---|---|",
    ]
    below = 0
    for operator, dtype, shape, axis, bar in rows():
        array = np.random.default_rng(0).standard_normal(shape, np.dtype(dtype).type)
        ours, numpys = measure(operator, array, axis)
        mark = "" if numpys / ours >= bar else " below"
        below += bool(mark)
        lines.append(
            f"| {operator} | {dtype} | {shape} | {axis} | {ours * 1e3:.2f} | {numpys * 1e3:.2f} "
            f"| {numpys / ours:.2f} | {bar}{mark} |"
        )
        print(lines[-1], flush=True)
    lines.append(f"\n{below} of {len(rows())} rows are below their bar.")
    print(lines[-1])
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
