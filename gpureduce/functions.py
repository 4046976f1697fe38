"""The public functions, made from the extension's own list of operators."""

from collections.abc import Callable
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from gpureduce import _core


class Operator(TypedDict):
    """One row of kernels/ops.h."""

    name: str
    ufunc: str
    alias: str
    sentence: str
    function: bool
    takes_dtype: bool
    takes_initial: bool
    nonempty: bool
    position: bool
    takes_kernel: bool
    matrices: bool


class Kernel(TypedDict):
    """One row of kernels/ladder.h; limit is the most elements that it takes, or 0."""

    name: str
    sentence: str
    section: str
    limit: int
    in_order: bool
    in_place: bool
    second_launch: bool
    threads: tuple[int, int]
    unroll: int
    grid: str


class Device(TypedDict):
    """One CUDA device; sizes in bytes, clocks in hertz, versions as (major, minor)."""

    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    threads_per_multiprocessor: int
    bus_bits: int
    clock_hertz: int
    memory_clock_hertz: int
    memory_total: int
    memory_free: int
    l2_bytes: int
    shared_bytes: int
    driver: tuple[int, int]
    runtime: tuple[int, int]


_DTYPE = """\
dtype : dtype, optional
    Each element is converted to it first, and the result has it.
"""
_INITIAL = """\
initial : scalar, optional
    Takes part in the reduction; of the result's dtype.
"""
_KERNEL = """\
kernel : str, optional
    One of the textbook kernels that ``gpureduce.kernels()`` lists, on a GPU; "default" is the
    library's own. The others are made for {dtypes}; their
    floating-point results may differ from the exact or the tree's in the last bits.
"""
_EMPTY = {
    "nonempty": "    ValueError: the array is empty{unless}.\n",
    "kernel": "    ValueError: the kernel is not known, or cannot take so many elements.\n",
    "device": "    gpureduce.DeviceError: the device asked for is missing or failed.\n",
    "type": "    TypeError: the dtype is not supported, or not by this function.\n",
}
_DOC = """\
{sentence}

Parameters
----------
a : array_like
    Any shape, strides, alignment and byte order. It is never written or copied whole.
{dtype}{initial}device : {{"auto", "cpu", "cuda", "cuda:N"}}, optional
    Where to work. "auto" is where the array lies: its device, or the CPU for arrays of the host,
    whose threads were faster than the way to the device wherever it was measured. The
    result is the same in every bit.
{kernel}
Returns
-------
scalar
    A NumPy scalar over all elements{result}, of the dtype that ``numpy.{name}`` gives.

Raises
------
{raises}
Sources
-------
{source}
"""
_SOURCES = {
    "exact": "Exact sums: Rump, Ogita, Oishi, Accurate floating-point summation (2008), into a\n"
    "long accumulator (Kulisch and Miranker, 1986).",
    "tree": "One perfect binary tree over the index, neighbours first; the picture that texts on\n"
    "parallel reduction open with.",
    "free": "Any order gives the same bits.",
}
_LAWS = {name: law for name, dtype, _, law in _core.rows() if dtype == "float64"}


def operators() -> list[Operator]:
    """The operators as a list of dicts: name, ufunc, alias, sentence and what they take."""
    return _core.operators()


def devices() -> list[Device]:
    """The CUDA devices as a list of dicts: name, compute capability, memory, clocks and limits.

    Empty where there is none that can be used; ``python -m gpureduce info`` says why.
    """
    return _core.devices()


def kernels() -> list[Kernel]:
    """The textbook kernels in their order, as a list of dicts: the ladder from the first to ours.

    name is for ``kernel=``; sentence says what it teaches, section the texts' chapter; limit is the
    most elements that it takes, or 0; in_order says whether it keeps the order of the operands.
    threads are the least and the most of a block, and each takes unroll elements at a time; grid is
    "one" block, one for all "tiles" of so many, or as many as fill the "device"; second_launch says
    whether another launch folds the blocks' results. Kernels that are in_place work on a copy: no
    array is ever written.
    """
    return _core.kernels()


def _document(op: Operator) -> str:
    unless = ", and initial is not given" if op["takes_initial"] else ""
    raises = _EMPTY["type"] + _EMPTY["device"]
    if op["nonempty"]:
        raises = _EMPTY["nonempty"].format(unless=unless) + raises
    if op["takes_kernel"]:
        raises = _EMPTY["kernel"] + raises
    return _DOC.format(
        name=op["name"],
        sentence=op["sentence"],
        dtype=_DTYPE if op["takes_dtype"] else "",
        initial=_INITIAL if op["takes_initial"] else "",
        kernel=_KERNEL.format(dtypes=", ".join(_core.kernel_dtypes()))
        if op["takes_kernel"]
        else "",
        result=", counted in C order" if op["position"] else "",
        raises=raises,
        source=_SOURCES[_LAWS.get(op["name"], "free")],
    )


def _make(index: int, op: Operator) -> Callable[..., Any]:
    """One function of the package; those that take dtype, initial or kernel have the keyword."""
    run = _core.reduce

    # Written out: **keywords would take longer than the sum of a small array.
    def with_all(
        a: ArrayLike,
        *,
        dtype: DTypeLike | None = None,
        initial: Any = None,
        device: str = "auto",
        kernel: str | None = None,
    ) -> Any:
        return run(index, a, dtype, initial, device, kernel)

    def with_dtype(a: ArrayLike, *, dtype: DTypeLike | None = None, device: str = "auto") -> Any:
        return run(index, a, dtype, None, device, None)

    def with_initial(
        a: ArrayLike, *, initial: Any = None, device: str = "auto", kernel: str | None = None
    ) -> Any:
        return run(index, a, None, initial, device, kernel)

    def with_neither(a: ArrayLike, *, device: str = "auto") -> Any:
        return run(index, a, None, None, device, None)

    forms: dict[tuple[bool, bool, bool], Callable[..., Any]] = {
        (True, True, True): with_all,
        (True, False, False): with_dtype,
        (False, True, True): with_initial,
        (False, False, False): with_neither,
    }
    function = forms[op["takes_dtype"], op["takes_initial"], op["takes_kernel"]]
    function.__name__ = function.__qualname__ = op["name"]
    function.__module__ = "gpureduce"
    function.__doc__ = _document(op)
    return function


def _public() -> dict[str, Callable[..., Any]]:
    functions = {}
    for index, op in enumerate(operators()):
        if op["function"]:
            functions[op["name"]] = _make(index, op)
            if op["alias"]:
                functions[op["alias"]] = functions[op["name"]]
    return functions


PUBLIC = _public()
_REDUCIBLE = {
    name: index
    for index, op in enumerate(operators())
    if op["ufunc"] or not op["function"]
    for name in {op["ufunc"], op["name"]} - {""}
}


def reduce(
    a: ArrayLike,
    op: str | np.ufunc,
    *,
    dtype: DTypeLike | None = None,
    initial: Any = None,
    device: str = "auto",
    kernel: str | None = None,
) -> Any:
    """Reduce all elements with an operator given by name or as the NumPy ufunc of its meaning.

    Parameters
    ----------
    a : array_like
        As for the functions of the package.
    op : str or numpy.ufunc
        "add" or numpy.add, "multiply", "minimum", "maximum", "logical_and", "logical_or",
        "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"; the functions' names too.
        "matmul2x2" multiplies the 2 x 2 matrices of an array (n, 2, 2), float64 or int64 (modulo
        2^64), from left to right along the tree of prod; of none it gives the identity matrix.
    dtype : dtype, optional
        Each element is converted to it first.
    initial : scalar, optional
        Takes part in the reduction; of the result's dtype. For "matmul2x2" a (2, 2) matrix, which
        stands to the left of all others.
    device : {"auto", "cpu", "cuda", "cuda:N"}, optional
        As for the functions of the package.
    kernel : str, optional
        As for ``gpureduce.sum``; for sums, products, minima and maxima, and for "matmul2x2" those
        that keep the order.

    Returns
    -------
    scalar
        What ``op.reduce(a, axis=None)`` gives, sums exact and products along one tree. For
        "matmul2x2" an array (2, 2) of its own, in C order.

    Raises
    ------
    ValueError
        The operator is not known; or the array is empty and the operator has no identity; or
        "matmul2x2" is given an array of another shape than (n, 2, 2); or the kernel is not known or
        cannot take so many elements.
    TypeError
        The operator does not take the dtype, as bitwise operators do not take floats, or has no
        such kernel.
    gpureduce.DeviceError
        The device asked for is missing or failed.
    """
    name = op if isinstance(op, str) else getattr(op, "__name__", None)
    index = _REDUCIBLE.get(name) if isinstance(name, str) else None
    if index is None:
        known = ", ".join(sorted(_REDUCIBLE))
        raise ValueError(f"reduce: op {op!r} is not known; one of {known}, or that NumPy ufunc, is")
    return _core.reduce(index, a, dtype, initial, device, kernel)


def set_num_threads(n: int) -> None:
    """Let one call use n threads of the CPU; 0 for the default.

    The default is GPUREDUCE_NUM_THREADS, or what the affinity mask and the cgroup's quota allow.
    """
    _core.set_num_threads(n)


def get_num_threads() -> int:
    """How many threads of the CPU one call may use."""
    return _core.get_num_threads()


def isa() -> str:
    """The instruction set that the CPU half runs on: "v4", "v3" or "plain"."""
    return _core.isa()
