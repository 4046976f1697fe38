"""The public functions, made from the extension's own list of operators."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, SupportsIndex, TypedDict, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from gpureduce import _core
from gpureduce.chunked import check_in_memory, way_of
from gpureduce.progress import Progress, shown

if TYPE_CHECKING:
    from gpureduce.custom.operator import Operator as CustomOperator


class Operator(TypedDict):
    """One row of kernels/abi/ops.h."""

    name: str
    ufunc: str
    alias: str
    sentence: str
    function: bool
    results: int
    takes_dtype: bool
    takes_initial: bool
    takes_where: bool
    takes_out: bool
    nonempty: bool
    position: bool
    spread: bool
    skips_nan: bool
    takes_kernel: bool
    matrices: bool


class Kernel(TypedDict):
    """One row of kernels/abi/ladder.h; limit is the most elements that it takes, or 0."""

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


_NO = np._NoValue

# What a function may take, in NumPy's order: its default in NumPy's signatures, and its help.
_PARAMETERS = {
    "axis": (None, "{axes}, optional\n    The axes to reduce, negative ones from the last. All."),
    "dtype": (None, "dtype, optional\n    Each element is converted to it first."),
    "out": (None, "{outs}, optional\n    Takes the result, cast as it has to be; is returned."),
    "ddof": (0, "int or float, optional\n    The sum of squares is divided by n - ddof."),
    "keepdims": (_NO, "bool, optional\n    Whether reduced axes stay, with length 1."),
    "initial": (_NO, "scalar, optional\n    Takes part in each output; of the result's dtype."),
    "where": (_NO, "array_like of bool, optional\n    Which elements count; is broadcast."),
    "mean": (_NO, "array_like, optional\n    Taken for the means; reduced axes have length 1."),
    "correction": (_NO, "int or float, optional\n    Another name of ddof."),
}
_KERNEL = """\
kernel : str, optional
    One of the textbook kernels that ``gpureduce.kernels()`` lists, on a GPU; "default" is the
    library's own. The others are made for {dtypes}; their
    floating-point results may differ from the exact or the tree's in the last bits.
"""
_DEVICE = """\
{"auto", "cpu", "cuda", "cuda:N"}, optional
    Where to work. "auto" is where the array lies: its device, or the CPU for arrays of the host,
    whose threads were faster than the way to the device wherever it was measured. The
    result is the same in every bit."""
_PROGRESS = """\
progress : bool or callable, optional
    True shows tqdm's bar of what takes long. A function is called with ``(done, total)``, in
    elements, ten times a second at most, and once at the end. Of arrays of the host.
"""
_EMPTY = {
    "kernel": "    ValueError: the kernel is not known, or cannot take so many elements.\n",
    "nonempty": "    ValueError: there is nothing to reduce{unless}.\n",
    "position": "    ValueError: a slice is all NaN.\n",
    "axis": "    numpy.exceptions.AxisError: an axis is out of bounds.\n",
    "shape": "    ValueError: an axis is given twice, or out{where} has another shape.\n",
    "device": "    gpureduce.DeviceError: the device asked for is missing or failed.\n",
    "type": "    TypeError: the dtype is not supported, or not by this function.\n",
}
_DOC = """\
{sentence}

Parameters
----------
a : array_like
    Any shape, strides, alignment and byte order. It is never written or copied whole.
{parameters}
Returns
-------
{returns}

Raises
------
{raises}
Sources
-------
{source}
"""
_RETURNS = {
    1: "scalar or ndarray\n    One value for each place of the axes that are left{result}, of the "
    "dtype that\n    ``numpy.{name}`` gives; a NumPy scalar where no axis is.",
    2: "tuple of two scalars or ndarrays\n    The least and the greatest{result}, each as "
    "``numpy.{low}`` and\n    ``numpy.{high}`` give it.",
}
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


def signature(op: Operator) -> list[str]:
    """The parameters in NumPy's order, with "*" before those that are given by keyword only."""
    names = ["axis"]
    names += ["dtype"] * op["takes_dtype"] + ["out"] * op["takes_out"] + ["ddof"] * op["spread"]
    by_keyword = ["*"] * (op["position"] or not op["takes_out"])
    names += [*by_keyword, "keepdims"]
    names += ["initial"] * op["takes_initial"]
    if not by_keyword and not op["takes_initial"]:
        names.append("*")
    names += ["where"] * op["takes_where"] + ["mean", "correction"] * op["spread"]
    return names if "*" in names else [*names, "*"]


def _document(op: Operator) -> str:
    names = [name for name in signature(op) if name != "*"]
    many = "int" if op["position"] else "int or tuple of ints"
    kernel = ""
    if op["takes_kernel"]:
        kernel = _KERNEL.format(dtypes=", ".join(_core.kernel_dtypes()))
    parameters = "".join(f"{name} : {_PARAMETERS[name][1]}\n" for name in names)
    outs = "ndarray" if op["results"] == 1 else "tuple of two ndarrays"
    raises = [_EMPTY[key] for key in ("type", "axis", "shape", "device")]
    if op["nonempty"]:
        raises.insert(0, _EMPTY["nonempty"])
    if op["takes_kernel"]:
        raises.insert(0, _EMPTY["kernel"])
    if op["position"] and op["skips_nan"]:
        raises.insert(0, _EMPTY["position"])
    return _DOC.format(
        sentence=op["sentence"],
        parameters=parameters.format(axes=many, outs=outs)
        + f"device : {_DEVICE}\n{kernel}{_PROGRESS}",
        returns=_RETURNS[op["results"]].format(
            name=op["name"],
            low=op["name"].replace("max", ""),
            high=op["name"].replace("min", ""),
            result=", counted in C order" if op["position"] else "",
        ),
        raises="".join(raises).format(
            unless=", and initial is not given" if op["takes_initial"] else "",
            where=" or where" if op["takes_where"] else "",
        ),
        source=_SOURCES[_LAWS.get(op["name"], "free")],
    )


# Written out for each: **keywords would take longer than the sum of a small array.
_CODE = """\
def {name}(a, {parameters}, device="auto"{kernel_too}, progress=False):
    {correction}if type(a) is not _array and (chunked := _way_of(a)):
        return chunked("{name}", a, dict({named}, device=device, progress=progress))
    if progress:
        return _shown(progress, "{name}", _reduce, {arguments})
    return _reduce({arguments}, None)
"""
_ARGUMENTS = """\
{index}, a, axis, {dtype}, {out}, keepdims, {initial}, {where}, {ddof}, {mean}, device, {kernel}"""
_CORRECTION = """\
if correction is not _NO:
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    """


def _make(index: int, op: Operator) -> Callable[..., Any]:
    """One function of the package, made as dataclasses make theirs."""
    parameters = signature(op)
    names = [name for name in parameters if name not in ("*", "correction")]
    given = {name: name if name in names else "_NO" for name in _PARAMETERS}
    given["kernel"] = "kernel" if op["takes_kernel"] else "None"
    given["ddof"] = "ddof" if op["spread"] else "0"
    given["correction"] = _CORRECTION if op["spread"] else ""
    given["kernel_too"] = ", kernel=None" if op["takes_kernel"] else ""
    code = _CODE.format(
        **given,
        name=op["name"],
        arguments=_ARGUMENTS.format(index=index, **given),
        named=", ".join(f"{n}={n}" for n in [*names, "kernel"][: len(names) + op["takes_kernel"]]),
        parameters=", ".join(n if n == "*" else f"{n}=_{n}" for n in parameters),
    )
    defaults = {f"_{name}": default for name, (default, _) in _PARAMETERS.items()}
    space: dict[str, Any] = {"_reduce": _core.reduce, "_shown": shown, "_NO": _NO, **defaults}
    space |= {"_array": np.ndarray, "_way_of": way_of}
    exec(compile(code, f"<gpureduce.{op['name']}>", "exec"), space)
    function: Callable[..., Any] = space[op["name"]]
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


def _index(op: Any, function: str) -> int:
    name = op if isinstance(op, str) else getattr(op, "__name__", None)
    index = _REDUCIBLE.get(name) if isinstance(name, str) else None
    if index is None:
        known = ", ".join(sorted(_REDUCIBLE))
        raise ValueError(
            f"{function}: op {op!r} is not known; one of {known}, or that NumPy ufunc, is"
        )
    return index


def _is_custom(op: Any) -> "TypeGuard[CustomOperator]":
    """Of a class that nobody has imported there is no object."""
    custom = sys.modules.get("gpureduce.custom.operator")
    return custom is not None and isinstance(op, custom.Operator)


def reduce(
    a: ArrayLike,
    op: "str | np.ufunc | CustomOperator",
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    dtype: DTypeLike | None = None,
    out: np.ndarray | None = None,
    keepdims: bool = False,
    initial: Any = _NO,
    where: ArrayLike = True,
    *,
    device: str = "auto",
    kernel: str | None = None,
    progress: Progress = False,
) -> Any:
    """Reduce with an operator given by name or as the NumPy ufunc of its meaning.

    Parameters
    ----------
    a : array_like
        As for the functions of the package.
    op : str, numpy.ufunc or Operator
        "add" or numpy.add, "multiply", "minimum", "maximum", "logical_and", "logical_or",
        "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "fmin", "fmax"; the functions'
        names too. "matmul2x2" multiplies the 2 x 2 matrices of an array (n, 2, 2), float64 or
        int64 (modulo 2^64), from left to right along the tree of prod, with neither axis nor mask;
        of none it gives the identity matrix. An `Operator` of your own is called with a; one that
        takes several inputs has them as a tuple in place of a.
    axis : int or tuple of ints, optional
        The axes to reduce. All of them by default, not the first as in NumPy's ``ufunc.reduce``.
    dtype : dtype, optional
        Each element is converted to it first.
    out : ndarray, optional
        Takes the result, and is returned.
    keepdims : bool, optional
        Whether the reduced axes stay in the result, with length 1.
    initial : scalar, optional
        Takes part in the reduction of each output; of the result's dtype. For
        "matmul2x2" a (2, 2) matrix, which stands to the left of all others.
    where : array_like of bool, optional
        Only elements where it is true count. Broadcast to the shape of a.
    device : {"auto", "cpu", "cuda", "cuda:N"}, optional
        As for the functions of the package.
    kernel : str, optional
        As for ``gpureduce.sum``; for sums, products, minima and maxima, and for "matmul2x2" those
        that keep the order.
    progress : bool or callable, optional
        As for the functions of the package.

    Returns
    -------
    scalar or ndarray
        What ``op.reduce(a, axis)`` gives, sums exact and products along one tree. For
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
    if _is_custom(op):
        if kernel is not None:
            raise TypeError(f"reduce: {op.name} is your own operator and has no kernel {kernel!r}")
        return op(
            *op.several(a),
            axis=axis,
            dtype=dtype,
            out=out,
            keepdims=keepdims,
            initial=initial,
            where=where,
            device=device,
            progress=progress,
        )
    index = _index(op, "reduce")
    if type(a) is not np.ndarray and (chunked := way_of(a)):
        given: dict[str, Any] = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims}
        given |= {"initial": initial, "where": where, "device": device, "kernel": kernel}
        return chunked(operators()[index]["name"], a, {**given, "progress": progress})
    arguments = (index, a, axis, dtype, out, keepdims, initial, where, 0, None, device, kernel)
    return shown(progress, "reduce", _core.ufunc_reduce, *arguments)


def reduceat(
    a: ArrayLike,
    offsets: ArrayLike,
    op: "str | np.ufunc | CustomOperator",
    axis: SupportsIndex = 0,
    dtype: DTypeLike | None = None,
    out: np.ndarray | None = None,
    *,
    device: str = "auto",
    progress: Progress = False,
) -> Any:
    """Reduce the parts of one axis that start at these offsets, as NumPy's ``ufunc.reduceat``.

    Parameters
    ----------
    a : array_like
        As for the functions of the package, of one dimension at least.
    offsets : array_like of int, one-dimensional
        Part i is ``a[offsets[i]:offsets[i + 1]]``, the last one goes to the end; where the next
        offset is not larger, it is the one element ``a[offsets[i]]``.
    op : str, numpy.ufunc or Operator
        As for `reduce`.
    axis : int, optional
        The axis that is cut.
    dtype : dtype, optional
        Each element is converted to it first.
    out : ndarray, optional
        Takes the result, and is returned.
    device : {"auto", "cpu", "cuda", "cuda:N"}, optional
        As for the functions of the package.
    progress : bool or callable, optional
        As for the functions of the package.

    Returns
    -------
    ndarray
        Of a's shape, but for the axis, which is as long as offsets. Each element is what reducing
        its part alone gives.

    Raises
    ------
    IndexError
        An offset is negative or not below the length of the axis.
    TypeError
        The offsets are an array of no integers, or the operator does not take the dtype.
    ValueError
        The operator is not known; axis is not one axis.
    """
    if _is_custom(op):
        return op.reduceat(a, offsets, axis, dtype, out, device=device, progress=progress)
    index = _index(op, "reduceat")
    check_in_memory("reduceat", a)
    arguments = (index, a, offsets, None, axis, dtype, out, _NO, device)
    return shown(progress, "reduceat", _core.segments, *arguments)


def segments(
    a: ArrayLike,
    starts: ArrayLike,
    stops: ArrayLike,
    op: "str | np.ufunc | CustomOperator",
    axis: SupportsIndex = 0,
    dtype: DTypeLike | None = None,
    out: np.ndarray | None = None,
    initial: Any = _NO,
    *,
    device: str = "auto",
    progress: Progress = False,
) -> Any:
    """Reduce the segments ``a[starts[i]:stops[i]]`` of one axis, which may overlap and be empty.

    Parameters
    ----------
    a : array_like
        As for the functions of the package, of one dimension at least.
    starts : array_like of int, one-dimensional
        The first elements.
    stops : array_like of int, one-dimensional
        One past each segment's last element; one that is not above its start is empty
        and gives the identity.
    op : str, numpy.ufunc or Operator
        As for `reduce`.
    axis : int, optional
        The axis that is cut.
    dtype : dtype, optional
        Each element is converted to it first.
    out : ndarray, optional
        Takes the result, and is returned.
    initial : scalar, optional
        Takes part in the reduction of each segment; of the result's dtype.
    device : {"auto", "cpu", "cuda", "cuda:N"}, optional
        As for the functions of the package.
    progress : bool or callable, optional
        As for the functions of the package.

    Returns
    -------
    ndarray
        Of a's shape, but for the axis, which is as long as starts.

    Raises
    ------
    IndexError
        A segment is not within the axis.
    TypeError
        The bounds are no integers, or the operator does not take the dtype.
    ValueError
        The operator is not known; starts and stops differ in length; or a segment is empty, the
        operator has no identity, as minimum and maximum have none, and initial is not given.
    """
    if _is_custom(op):
        return op.segments(
            a, starts, stops, axis, dtype, out, initial, device=device, progress=progress
        )
    index = _index(op, "segments")
    check_in_memory("segments", a)
    arguments = (index, a, starts, stops, axis, dtype, out, initial, device)
    return shown(progress, "segments", _core.segments, *arguments)


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
