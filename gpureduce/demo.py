"""The main job: how much of the Earth is land, and every reduction of a real file, beside NumPy's
and the exact answer."""

import importlib.metadata
import importlib.resources
import statistics
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gpureduce
from gpureduce import files, land, tables
from gpureduce.functions import PUBLIC

_PACKAGE, _FILE = "astropy-iers-data", "eopc04.1962-now"
_REPEATS = 25
_MOST = 1e19  # the square is within float32

Array = NDArray[Any]


def run(path: str | None, picture: str | None = None, key: str | None = None) -> None:
    if picture and path is not None:
        raise ValueError("the picture is of the Earth's land, which the demo shows without a file")
    if path is None:
        land.run(picture)
        print()
    if key and not (path or "").lower().endswith(".npz"):
        raise ValueError(f"--key is of .npz files, and {path or 'the demo without a file'} is none")
    table = _read(path, key) if path is not None else _earth()
    missing = int(np.isnan(table).sum())
    values = table[~np.isnan(table)] if missing else table
    left_out = f"{missing:,} NaN left out" if missing else "no NaN"
    print(f"{table.shape} {table.dtype}: {values.size:,} values, {left_out}\n")
    floats = values.dtype.kind == "f"
    for dtype in (np.float64, np.float32) if floats else (values.dtype,):
        _compare(values.astype(dtype))
    if floats:
        _arrange(values.astype(np.float32))


def _earth() -> Array:
    """The Earth's orientation, day by day since 1962: the day's number, pole, clock, nutation, …"""
    try:
        package = importlib.resources.files(_PACKAGE.replace("-", "_"))
    except ModuleNotFoundError:
        sys.exit(
            f"gpureduce: demo: its second file comes with {_PACKAGE}: pip install {_PACKAGE}, or "
            "install gpureduce as '.[demo]'"
        )
    print(f"{_FILE} of {_PACKAGE} {importlib.metadata.version(_PACKAGE)}")
    with importlib.resources.as_file(package / "data" / _FILE) as path:
        return np.loadtxt(path, usecols=range(4, 21))  # after the date


def _read(path: str, key: str | None) -> Array:
    header = ""
    if path.lower().endswith(".npz"):
        table = files.npz(path, key)
    elif path.lower().endswith(".npy"):
        table = files.load(path)
    else:
        numbers, header = tables.read(path)
        table = numbers.astype(np.float64)
    if table.dtype.kind not in "biuf":
        raise ValueError(f"{path} is of {table.dtype}; the demo compares real numbers")
    if np.isnan(table).all():
        raise ValueError(f"{path}: there are no numbers in it")
    if np.nanmax(np.abs(table.astype(np.float64))) > _MOST:
        raise ValueError(f"{path}: the demo takes numbers up to {_MOST:g}, not beyond")
    print(f"{path}{f', below the header {header}' if header else ''}")
    return table


# --- the exact answers, by Python's own integers and fractions ------------------------------------


def _nearest(exact: Fraction, dtype: np.dtype[Any]) -> Any:
    """Rounded once, to nearest even: float() alone would round a float32 twice."""
    if dtype.kind != "f":
        return float(exact)
    near = dtype.type(float(exact))
    around = [near, np.nextafter(near, dtype.type(-np.inf)), np.nextafter(near, dtype.type(np.inf))]
    bits = f"u{dtype.itemsize}"
    return min(around, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(bits)) & 1))


def _exact(values: Array) -> dict[str, Any]:
    numbers = values.ravel().tolist()
    is_float, scalar = values.dtype.kind == "f", values.dtype.type
    total = sum(map(Fraction, numbers), Fraction())
    squares = sum((Fraction(x) ** 2 for x in numbers), Fraction())
    n = len(numbers)
    least, most = min(numbers), max(numbers)
    found = {
        "sum": _nearest(total, values.dtype) if is_float else int(total),
        "min": scalar(least),
        "max": scalar(most),
        "argmin": numbers.index(least),
        "argmax": numbers.index(most),
        "mean": _nearest(total / n, values.dtype),
        "var": _nearest(squares / n - (total / n) ** 2, values.dtype),
        "any": any(numbers),
        "all": all(numbers),
        "count_nonzero": sum(x != 0 for x in numbers),
    }
    if is_float:
        found["ptp"] = _nearest(Fraction(most) - Fraction(least), values.dtype)
    return found


# --- tables ---------------------------------------------------------------------------------------


def _microseconds(*functions: Callable[[], Any]) -> list[float]:
    """Medians, taken in turn."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(_REPEATS):
        for function, taken in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) * 1e6 for taken in times]


def _distance(answer: Any, exact: Any) -> str:
    if answer == exact:
        return "0"
    return f"{abs(float(answer) - float(exact)) / float(np.spacing(np.abs(exact))):.3g}"


def _compare(values: Array) -> None:
    """One row for each reduction; distances from the exact answer are in units of last place."""
    exact = _exact(values)
    print("off by: in units of the last place")
    print(
        f"{values.dtype!s:14}{'exact':>20}{'gpureduce':>22}{'off by':>7}"
        f"{'NumPy':>22}{'off by':>7}{'µs':>8}{'NumPy µs':>10}"
    )
    for name, reference in exact.items():
        ours, theirs = PUBLIC[name], getattr(np, name)
        mine, others = ours(values), theirs(values)
        here, there = _microseconds(partial(ours, values), partial(theirs, values))
        print(
            f"{name:14}{reference!s:>20}{mine!s:>22}{_distance(mine, reference):>7}"
            f"{others!s:>22}{_distance(others, reference):>7}{here:8.1f}{there:10.1f}"
        )
    print()


def _arrange(values: Array) -> None:
    """The same numbers laid out in other ways: the same sum, but for NumPy."""
    flat = values.ravel()
    shuffled = np.random.default_rng(1).permutation(flat)
    spaced = np.zeros(flat.size * 2, flat.dtype)
    spaced[::2] = flat
    layouts = {
        "as in the file": values,
        "transposed": np.ascontiguousarray(values.T),
        "reversed": flat[::-1].copy(),
        "every other of twice as many": spaced[::2],
        "sorted": np.sort(flat),
        "shuffled": shuffled,
        "a zero in front": np.concatenate([[0], flat]).astype(flat.dtype),
    }
    print(f"{values.dtype} sum of the same numbers {'gpureduce':>20}{'NumPy':>16}")
    for name, array in layouts.items():
        print(f"{name:32}{gpureduce.sum(array)!s:>20}{np.sum(array)!s:>16}")
