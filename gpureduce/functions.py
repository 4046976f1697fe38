"""The public functions, made from the extension's own list of operators."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeGuard

import numpy as np

from gpureduce import _core
from gpureduce.chunked import PLAIN, check_in_memory, way_of
from gpureduce.docstrings import document
from gpureduce.lists import Operator, name_given, operators
from gpureduce.progress import Progress, shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from gpureduce.custom.operator import Operator as CustomOperator


_NO = np._NoValue

# What a function may take, in NumPy's order, with its default in NumPy's signatures.
_DEFAULTS = {
    "axis": None,
    "dtype": None,
    "out": None,
    "ddof": 0,
    "keepdims": _NO,
    "initial": _NO,
    "where": _NO,
    "mean": _NO,
    "correction": _NO,
}


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


# Written out for each: **keywords would take longer than the sum of a small array.
_CODE = """\
def {name}(a, {parameters}, device="auto"{kernel_too}, progress=False):
    {correction}if type(a) not in _plain and (chunked := _way_of(a)):
        return chunked("{name}", a, dict({named}, device=device, progress=progress))
    if progress is not False:
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
    given = {name: name if name in names else "_NO" for name in _DEFAULTS}
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
    defaults = {f"_{name}": default for name, default in _DEFAULTS.items()}
    space: dict[str, Any] = {"_reduce": _core.reduce, "_shown": shown, "_NO": _NO, **defaults}
    space |= {"_plain": PLAIN, "_way_of": way_of, "__name__": "gpureduce"}
    file = f"<gpureduce.{op['name']}>"
    exec(compile(code, file, "exec"), space)
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)  # for tracebacks
    function: Callable[..., Any] = space[op["name"]]
    function.__doc__ = document(op, [name for name in parameters if name != "*"])
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
    index = _REDUCIBLE.get(name_given(op) or "")
    if index is None:
        known = sorted({*_REDUCIBLE, *(PUBLIC if function == "reduce" else ())})
        own = "; of a function of your own gpureduce.operator(f) makes one" if callable(op) else ""
        what = "is none of its operators" if name_given(op) in PUBLIC else "is not known"
        raise ValueError(
            f"gpureduce.{function}: op {op!r} {what}; give one of {', '.join(known)}, or "
            f"that NumPy ufunc{own}"
        )
    return index


def _is_custom(op: Any) -> TypeGuard[CustomOperator]:
    """Of a class that nobody has imported there is no object."""
    custom = sys.modules.get("gpureduce.custom.operator")
    return custom is not None and isinstance(op, custom.Operator)


def _by_name(name: str, a: Any, axis: Any, *options: Any) -> Any:
    """A function that is no ufunc's, with those options that are not the defaults of reduce()."""
    names = ("dtype", "out", "keepdims", "initial", "where", "device", "kernel", "progress")
    defaults = (None, None, False, _NO, True, "auto", None, False)
    every = zip(names, options, defaults, strict=True)
    return PUBLIC[name](
        a, axis, **{key: value for key, value, usual in every if value is not usual}
    )


def reduce(
    a: ArrayLike,
    op: str | np.ufunc | CustomOperator,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    dtype: DTypeLike | None = None,
    out: np.ndarray | None = None,
    keepdims: bool = False,
    initial: Any = _NO,
    where: ArrayLike = True,
    *,
    device: str | Sequence[str] = "auto",
    kernel: str | None = None,
    progress: Progress = False,
) -> Any:
    """Reduce with an operator given by name, as a NumPy ufunc, or of your own.

    Parameters
    ----------
    a : array_like
        Input of any shape, strides and byte order, in host or device memory.
    op : str, numpy.ufunc or Operator
        One of "add", "multiply", "minimum", "maximum", "fmin", "fmax", "logical_and",
        "logical_or", "logical_xor", "bitwise_and", "bitwise_or" and "bitwise_xor", or that NumPy
        ufunc; the name of one of the package's functions, such as "mean"; or "matmul2x2", the
        product of the 2 x 2 matrices of an array (n, 2, 2) of float64 or int64, left to right. An
        `Operator` of several inputs takes them as a tuple in place of `a`.
    axis : int or tuple of ints, optional
        What to reduce. The default is all axes, not the first as in NumPy's ``ufunc.reduce``.
    dtype : dtype, optional
        Convert each element to this dtype first.
    out : ndarray, optional
        Array to write the result to. It is returned.
    keepdims : bool, optional
        Keep the reduced axes in the result, with length 1.
    initial : scalar, optional
        Starting value of each output, in the result's dtype; for "matmul2x2" a (2, 2) matrix,
        which stands on the left.
    where : array_like of bool, optional
        Mask that broadcasts against `a`: only elements where it is True count.
    device : str or list of str, optional
        Where to compute, as for `sum`.
    kernel : str, optional
        Name of a textbook kernel, as for `sum`; for "matmul2x2", and an `Operator` unless it is
        commutative, one that keeps the order.
    progress : bool or callable, optional
        As for `sum`.

    Returns
    -------
    scalar or ndarray
        What ``op.reduce(a, axis)`` gives, with float sums exact and float products along one tree.
        For "matmul2x2" an array (2, 2).

    Raises
    ------
    ValueError
        If the operator or the kernel is not known; if there is nothing to reduce and the operator
        has no identity; or if "matmul2x2" is given an array of another shape than (n, 2, 2).
    TypeError
        If the operator does not take the dtype, as bitwise operators do not take floats, or has
        no such kernel or argument.
    gpureduce.DeviceError
        If the device asked for is missing or fails.

    See Also
    --------
    reduceat : The parts of an axis that start at given offsets.
    segments : Any parts of an axis, overlapping and empty ones too.
    Operator : Operators of your own.

    Examples
    --------
    >>> import numpy as np
    >>> import gpureduce
    >>> gpureduce.reduce(np.arange(10), np.bitwise_xor)
    np.int64(1)
    >>> gpureduce.reduce([[1.0, 5.0], [3.0, 2.0]], "maximum", axis=0)
    array([3., 5.])
    """
    if _is_custom(op):
        if not isinstance(device, str):
            raise TypeError(
                f"gpureduce.reduce: {op.name} is your own operator and works on one device"
            )
        if kernel is not None and kernel != "default":
            from gpureduce.custom import textbook

            others: dict[str, Any] = {"dtype": dtype, "out": out, "keepdims": keepdims or None}
            others["initial"] = None if initial is _NO else initial
            others["where"] = None if where is True else where
            others["progress"] = progress or None
            return textbook.reduce(op, kernel, op.several(a), device, axis, others)
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
    if isinstance(op, str) and op in PUBLIC and op not in _REDUCIBLE:
        return _by_name(op, a, axis, dtype, out, keepdims, initial, where, device, kernel, progress)
    index = _index(op, "reduce")
    if type(a) not in PLAIN and (chunked := way_of(a)):
        given: dict[str, Any] = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims}
        given |= {"initial": initial, "where": where, "device": device, "kernel": kernel}
        return chunked(operators()[index]["name"], a, {**given, "progress": progress})
    arguments = (index, a, axis, dtype, out, keepdims, initial, where, 0, None, device, kernel)
    return shown(progress, "reduce", _core.ufunc_reduce, *arguments)


def reduceat(
    a: ArrayLike,
    offsets: ArrayLike,
    op: str | np.ufunc | CustomOperator,
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
        Input of one dimension or more, in host or device memory.
    offsets : array_like of int
        One-dimensional. Part i is ``a[offsets[i]:offsets[i + 1]]``, and the last one goes to the
        end; where the next offset is not larger, it is the one element ``a[offsets[i]]``.
    op : str, numpy.ufunc or Operator
        As for `reduce`.
    axis : int, optional
        The axis that is cut.
    dtype : dtype, optional
        Convert each element to this dtype first.
    out : ndarray, optional
        Array to write the result to. It is returned.
    device : {"auto", "cpu", "cuda", "cuda:N"}, optional
        As for `sum`.
    progress : bool or callable, optional
        As for `sum`.

    Returns
    -------
    ndarray
        Of `a`'s shape, except that the axis is as long as `offsets`. Each element has the bits
        that reducing its part alone gives.

    Raises
    ------
    IndexError
        If an offset is negative or not below the length of the axis.
    TypeError
        If the offsets are no integers, or the operator does not take the dtype.
    ValueError
        If the operator is not known, or `axis` is not one axis.

    See Also
    --------
    segments : Parts that may overlap and be empty.

    Examples
    --------
    >>> import gpureduce
    >>> gpureduce.reduceat([1, 2, 3, 4, 5], [0, 2, 4], "add")
    array([3, 7, 5])
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
    op: str | np.ufunc | CustomOperator,
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
        Input of one dimension or more, in host or device memory.
    starts : array_like of int
        The first index of each segment, one-dimensional.
    stops : array_like of int
        One past the last index of each segment. A segment whose stop is not above its start is
        empty and gives the identity.
    op : str, numpy.ufunc or Operator
        As for `reduce`.
    axis : int, optional
        The axis that is cut.
    dtype : dtype, optional
        Convert each element to this dtype first.
    out : ndarray, optional
        Array to write the result to. It is returned.
    initial : scalar, optional
        Starting value of each segment, in the result's dtype.
    device : {"auto", "cpu", "cuda", "cuda:N"}, optional
        As for `sum`.
    progress : bool or callable, optional
        As for `sum`.

    Returns
    -------
    ndarray
        Of `a`'s shape, except that the axis is as long as `starts`.

    Raises
    ------
    IndexError
        If a segment is not within the axis.
    TypeError
        If the bounds are no integers, or the operator does not take the dtype.
    ValueError
        If the operator is not known; if `starts` and `stops` differ in length; or if a segment is
        empty, the operator has no identity (minimum and maximum) and `initial` is not given.

    See Also
    --------
    reduceat : Parts that start at given offsets, as NumPy's ``ufunc.reduceat``.

    Examples
    --------
    >>> import gpureduce
    >>> gpureduce.segments([1, 2, 3, 4, 5], [0, 1, 3], [2, 4, 3], "add")
    array([3, 9, 0])
    """
    if _is_custom(op):
        return op.segments(
            a, starts, stops, axis, dtype, out, initial, device=device, progress=progress
        )
    index = _index(op, "segments")
    check_in_memory("segments", a)
    arguments = (index, a, starts, stops, axis, dtype, out, initial, device)
    return shown(progress, "segments", _core.segments, *arguments)
