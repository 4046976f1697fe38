"""Makes accuracy_table.md and orders.png: what libraries give for the same numbers.

python docs/accuracy.py, where NumPy, JAX, PyArrow and matplotlib are installed.
"""

import importlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import gpureduce

HERE = Path(__file__).parent
Array = NDArray[Any]


def jax(function: str) -> Callable[[Array], float]:
    """jax.numpy's function in the array's own precision."""
    import jax as library

    library.config.update("jax_enable_x64", True)
    return lambda a: float(getattr(library.numpy, function)(library.numpy.asarray(a)))


def arrow(function: str) -> Callable[[Array], float]:
    return lambda a: float(getattr(pc, function)(pa.array(a)).as_py())


NUMPY = "https://github.com/numpy/numpy/issues/"
# What is asked, the numbers, the function, the exact answer, where it is reported.
CASES = [
    ("sum of [1e16, 1, -1e16]", np.array([1e16, 1, -1e16]), "sum", 1.0, f"{NUMPY}7368"),
    ("sum of 2^25 times 0.1 in float32", np.full(2**25, 0.1, "f4"), "sum",
     float(np.float32(2**25 * Fraction(float(np.float32(0.1))))), f"{NUMPY}13734"),
    ("mean of [1e308, 1e308]", np.array([1e308, 1e308]), "mean", 1e308, ""),
    ("variance of [0.1, 0.1, 0.1]", np.full(3, 0.1), "var", 0.0, f"{NUMPY}9631"),
]  # fmt: skip
ARROW = {"sum": "sum", "mean": "mean", "var": "variance"}


def table() -> str:
    names = ["gpureduce", "numpy", "jax", "pyarrow"]
    versions = [f"{name} {importlib.import_module(name).__version__}" for name in names]
    lines = [
        f"| | exact, rounded | {' | '.join(versions)} | reported |",
        "|---" * (len(names) + 3) + "|",
    ]
    for asked, a, function, exact, issue in CASES:
        functions = [
            getattr(gpureduce, function),
            getattr(np, function),
            jax(function),
            arrow(ARROW[function]),
        ]
        with np.errstate(over="ignore"):
            shown = [f"{a.dtype.type(f(a)) if a.dtype == 'f4' else f(a):.9g}" for f in functions]
        number = issue.rpartition("/")[2]
        link = f"[numpy {number}]({issue})" if issue else ""
        lines.append(f"| {asked} | {exact:.9g} | {' | '.join(shown)} | {link} |")
    return "\n".join(lines) + "\n"


def orders() -> dict[str, Array]:
    """The same million numbers in seven orders."""
    x = np.random.default_rng(0).standard_normal(10**6, np.float32)
    return {
        "as drawn": x,
        "reversed": x[::-1].copy(),
        "sorted": np.sort(x),
        "sorted\ndown": np.sort(x)[::-1].copy(),
        "by size": x[np.argsort(np.abs(x))],
        "transposed": x.reshape(1000, 1000).T.copy().ravel(),
        "shuffled": np.random.default_rng(1).permutation(x),
    }


def chart(path: Path) -> None:
    libraries = {
        "gpureduce": lambda a: float(gpureduce.sum(a)),
        "NumPy": lambda a: float(np.sum(a)),
        "JAX": jax("sum"),
        "PyArrow": lambda a: float(np.float32(arrow("sum")(a))),
    }
    arrays = orders()
    exact = sum(map(Fraction, arrays["as drawn"].astype(float).tolist()), Fraction())
    unit = float(np.spacing(np.float32(exact)))
    figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
    for (name, total), marker in zip(libraries.items(), "osD^", strict=True):
        errors = [float(Fraction(total(a)) - exact) / unit for a in arrays.values()]
        axes.plot(errors, marker, label=name, alpha=0.8, markersize=8, clip_on=False)
    axes.set_xticks(range(len(arrays)), list(arrays))
    axes.set_ylabel("error in units of the last place")
    axes.set_yscale("symlog", linthresh=1)
    axes.set_title("Sum of the same 1,000,000 float32 numbers in seven orders")
    axes.axhline(0, color="0.7", linewidth=0.8, zorder=0)
    figure.legend(ncols=4, loc="outside lower center", frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    (HERE / "accuracy_table.md").write_text(table())
    chart(HERE / "orders.png")
