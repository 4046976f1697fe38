"""The shuffles of a warp: how the lanes of a GPU read each other's registers, value by value.

Each function cuts the values into segments of ``width`` lanes, runs one small kernel
(kernels/textbook/shuffles.cuh) on the first CUDA device and gives back what each lane got::

    >>> gpureduce.warp.shift_up(np.arange(16), 2, width=16)
    array([ 0,  1,  0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13])

A lane whose source is not there, be it beyond the segment or beyond the end of the values, keeps
its own value, and so any number of values will do: the last segment may be shorter.
"""

import inspect
import operator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpureduce import _core

__all__ = [
    "broadcast",
    "butterfly",
    "butterfly_array",
    "shift_down",
    "shift_up",
    "swap",
    "wrap",
]
_WIDTHS = (2, 4, 8, 16, 32)
_DTYPES = ("int32", "int64", "float32", "float64")
_HELD = 4  # values of a lane, where it holds more than one

_COMMON = """\
x : array_like
    Any number of values, one-dimensional, of int32, int64, float32 or float64."""
_REST = """\
width : {2, 4, 8, 16, 32}, optional
    Lanes of a segment.

Returns
-------
numpy.ndarray
    A new array of `x`'s shape and dtype: what each lane has afterwards.

Raises
------
ValueError
    If `x` is not one-dimensional, or an argument is out of its range.
TypeError
    If `x` is of another dtype.
gpureduce.DeviceError
    If there is no CUDA device that can be used; the message says why.

Examples
--------
>>> import numpy as np
>>> import gpureduce
>>> gpureduce.warp.{example}"""
# Of 8 lanes: the arguments beside x, and what comes out.
_EXAMPLES = {
    "broadcast": ("2", "array([2, 2, 2, 2, 2, 2, 2, 2])"),
    "shift_up": ("2", "array([0, 1, 0, 1, 2, 3, 4, 5])"),
    "shift_down": ("2", "array([2, 3, 4, 5, 6, 7, 6, 7])"),
    "wrap": ("2", "array([2, 3, 4, 5, 6, 7, 0, 1])"),
    "butterfly": ("1", "array([1, 0, 3, 2, 5, 4, 7, 6])"),
    "butterfly_array": ("1", "array([4, 5, 6, 7, 0, 1, 2, 3])"),
    "swap": ("mask=1, i=0, j=3", "array([7, 1, 2, 3, 4, 5, 6, 0])"),
}


def broadcast(x: ArrayLike, lane: int, width: int = 32) -> NDArray[np.generic]:
    """Give every lane of a segment the value of one: ``x[lane]``.

    Parameters
    ----------
    {common}
    lane : int
        Whose value it is: 0 to width - 1.
    {rest}"""
    return _shuffle("broadcast", x, width, lane=(lane, 0))


def shift_up(x: ArrayLike, d: int, width: int = 32) -> NDArray[np.generic]:
    """Give every lane the value of the lane d below it: ``x[l - d]``; the lowest d keep theirs.

    Parameters
    ----------
    {common}
    d : int
        How far: 0 to width - 1.
    {rest}"""
    return _shuffle("shift_up", x, width, d=(d, 0))


def shift_down(x: ArrayLike, d: int, width: int = 32) -> NDArray[np.generic]:
    """Give every lane the value of the lane d above it: ``x[l + d]``; the highest d keep theirs.

    Parameters
    ----------
    {common}
    d : int
        How far: 0 to width - 1.
    {rest}"""
    return _shuffle("shift_down", x, width, d=(d, 0))


def wrap(x: ArrayLike, d: int, width: int = 32) -> NDArray[np.generic]:
    """Give every lane the value of the lane d above it, round and round: ``x[(l + d) % width]``.

    Parameters
    ----------
    {common}
    d : int
        How far; negative turns the other way.
    {rest}"""
    return _shuffle("wrap", x, width, d=(operator.index(d) % _checked_width("wrap", width), 0))


def butterfly(x: ArrayLike, mask: int, width: int = 32) -> NDArray[np.generic]:
    """Let lanes change places in pairs: ``x[l ^ mask]``.

    Parameters
    ----------
    {common}
    mask : int
        Which bits of its number tell a lane from its partner: 0 to width - 1.
    {rest}"""
    return _shuffle("butterfly", x, width, mask=(mask, 0))


def butterfly_array(x: ArrayLike, mask: int, width: int = 32) -> NDArray[np.generic]:
    """Let lanes of four consecutive values each change places in pairs: ``x[4 * (l ^ mask) + k]``.

    Parameters
    ----------
    {common}
    mask : int
        Which bits of its number tell a lane from its partner: 0 to width - 1.
    {rest}"""
    return _shuffle("butterfly_array", x, width, mask=(mask, 0))


def swap(x: ArrayLike, mask: int, i: int, j: int, width: int = 32) -> NDArray[np.generic]:
    """Let value i of one lane and value j of its partner change places.

    A lane holds four consecutive values; its partner is lane ``l ^ mask``. Of the two, value i is
    that of the even one, counted in steps of the mask's lowest bit, which is lane 0 of lanes 0 and
    1 for mask 1.

    Parameters
    ----------
    {common}
    mask : int
        Which bits of its number tell a lane from its partner: 1 to width - 1.
    i, j : int
        Which value of the even lane, and which of the odd: 0 to 3.
    {rest}"""
    for name, which in (("i", i), ("j", j)):
        _check("swap", name, operator.index(which), 0, _HELD - 1)
    return _shuffle("swap", x, width, i, j, mask=(mask, 1))


for _name in __all__:
    _text = globals()[_name]
    if _text.__doc__:  # not with python -OO
        _given, _out = _EXAMPLES[_name]
        _shown = f"{_name}(np.arange(8), {_given}, width=8)\n{_out}"
        _text.__doc__ = (
            inspect.cleandoc(_text.__doc__)
            .replace("{common}", _COMMON)
            .replace("{rest}", _REST)
            .replace("{example}", _shown)
        )


def __dir__() -> list[str]:
    return __all__


def _check(function: str, name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise ValueError(
            f"gpureduce.warp.{function}: {name} is {value}; {least} to {most} would do"
        )


def _checked_width(function: str, width: int) -> int:
    width = operator.index(width)
    if width not in _WIDTHS:
        raise ValueError(f"gpureduce.warp.{function}: width is {width}; 2, 4, 8, 16 or 32 would do")
    return width


def _shuffle(
    function: str, x: ArrayLike, width: int, i: int = 0, j: int = 0, **by: tuple[int, int]
) -> NDArray[np.generic]:
    """by: the argument's name with its value and the least that it may be."""
    width = _checked_width(function, width)
    ((name, (given, least)),) = by.items()
    value = operator.index(given)
    _check(function, name, value, least, width - 1)
    values = np.asarray(x)
    if values.ndim != 1:
        raise ValueError(
            f"gpureduce.warp.{function}: x has the shape {values.shape}; one dimension would do"
        )
    if values.dtype.name not in _DTYPES:
        raise TypeError(
            f"gpureduce.warp.{function}: dtype {values.dtype} is none of {', '.join(_DTYPES)}"
        )
    native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    out = np.empty_like(native, subok=False)
    _core.shuffle(function, native, out, width, value, i, j)
    return out
