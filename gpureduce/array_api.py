"""The reductions as the Python array API standard has them, for code that is written to it.

``from gpureduce import array_api as xp``, then ``xp.sum(x, axis=0)``: the standard's signatures,
dtypes and refusals (2024.12), gpureduce's values. x is an array of NumPy or of a device. Results
are always arrays: zero-dimensional where no axis is left, since the standard has no scalars. They
are of x's library, where x lies. For a library that gpureduce does not know they are
``gpureduce.DeviceArray`` on a device, and NumPy's on the host or where no axis is left.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpureduce.functions import PUBLIC
from gpureduce.lists import operators

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

Array = NDArray[Any] | Any  # or of x's library
Axes = int | tuple[int, ...] | None


class Reduction(Protocol):
    def __call__(self, x: Any, /, *, axis: Axes = None, keepdims: bool = False) -> Array: ...


class Position(Protocol):
    def __call__(self, x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Array: ...


class Accumulation(Protocol):
    def __call__(
        self,
        x: Any,
        /,
        *,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
    ) -> Array: ...


class Spread(Protocol):
    def __call__(
        self, x: Any, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
    ) -> Array: ...


# The standard's kinds of dtypes, by the names of dtypes without their bits.
_FLOATING = ("float", "bfloat")
_REAL = ("int", "uint", *_FLOATING)
_COMPLEX = "complex"
_NUMERIC = (*_REAL, _COMPLEX)
_EVERY = ("bool", *_NUMERIC)

_DOC = """\
{sentence}

Parameters
----------
x : array
    Input of dtype {kinds}.
axis : {axes}, optional
    What to reduce; negative numbers count from the last axis. The
    default, None, is all axes.
{own}keepdims : bool, optional
    Keep the reduced axes in the result, with length 1.

Returns
-------
array
    Array of {result}. Zero-dimensional if all axes are reduced.

Raises
------
TypeError
    If the standard does not define the function for the dtype.
numpy.exceptions.AxisError
    If an axis is out of bounds.
ValueError
    If an axis is given twice, or there is nothing to reduce and no identity.

See Also
--------
gpureduce.{name} : The same values, with NumPy's signature.

References
----------
.. [1] Python array API standard, version 2024.12, ``{name}``.

Examples
--------
>>> import numpy as np
>>> from gpureduce import array_api as xp
>>> xp.{name}(np.asarray({given}))
{shown}
"""
# One for each: what is given, and what comes out.
_EXAMPLES = {
    "sum": ("[1e16, 1.0, -1e16]", "array(1.)"),
    "prod": ("[1.5, 2.0, 4.0]", "array(12.)"),
    "min": ("[3.0, 1.0]", "array(1.)"),
    "max": ("[3.0, 1.0]", "array(3.)"),
    "mean": ("[1.0, 2.0]", "array(1.5)"),
    "var": ("[1.0, 3.0]", "array(1.)"),
    "std": ("[1.0, 3.0]", "array(1.)"),
    "any": ("[False, True]", "array(True)"),
    "all": ("[False, True]", "array(False)"),
    "count_nonzero": ("[0, 2, 3]", "array(2)"),
    "argmin": ("[3.0, 1.0]", "array(1)"),
    "argmax": ("[3.0, 1.0]", "array(0)"),
}
_DTYPE = """\
dtype : dtype, optional
    Convert each element to this dtype first; also the dtype of the result.
"""
_CORRECTION = """\
correction : int or float, optional
    The divisor is ``n - correction``.
"""


def _checked(x: Any, name: str, kinds: tuple[str, ...]) -> Any:
    """x, an array, where the standard has the function of its kind of dtype."""
    x = x if hasattr(x, "dtype") else np.asarray(x)
    dtype = getattr(x.dtype, "name", str(x.dtype).rpartition(".")[2])  # torch's have no name
    if dtype.rstrip("0123456789") in kinds:
        return x
    raise TypeError(
        f"array_api.{name}: x is of dtype {dtype}; the standard has it of {', '.join(kinds)}"
    )


def _is_of_a_library(x: Any) -> bool:
    """Another than NumPy, on a device or on the host."""
    is_array = hasattr(x, "__dlpack_device__") or hasattr(x, "__cuda_array_interface__")
    return is_array and not isinstance(x, np.ndarray | np.generic)


def _array(
    function: Callable[..., Any], x: Any, axis: Axes, keepdims: bool, **options: Any
) -> Array:
    """What function says, as an array of x's library."""
    shape = getattr(x, "shape", ())
    reduced = len(shape) if axis is None else len(axis) if isinstance(axis, tuple) else 1
    if not keepdims and reduced == len(shape) and _is_of_a_library(x):
        kept = function(x, axis=axis, keepdims=True, **options)
        if hasattr(kept, "reshape"):
            return kept.reshape(())
    result = function(x, axis=axis, keepdims=keepdims, **options)
    return np.asarray(result) if isinstance(result, np.generic) else result


def _named(
    function: Callable[..., Array],
    name: str,
    kinds: tuple[str, ...],
    result: str,
    own: str = "",
    axes: str = "int or tuple of ints",
) -> None:
    sentence = next(op["sentence"] for op in operators() if op["name"] == name)
    function.__name__ = function.__qualname__ = name
    given, shown = _EXAMPLES[name]
    function.__doc__ = _DOC.format(
        sentence=sentence,
        name=name,
        kinds=", ".join(kinds),
        result=result,
        own=own,
        axes=axes,
        given=given,
        shown=shown,
    )


def _reduction(name: str, kinds: tuple[str, ...], result: str) -> Reduction:
    function = PUBLIC[name]

    def reduced(x: Any, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
        return _array(function, _checked(x, name, kinds), axis, keepdims)

    _named(reduced, name, kinds, result)
    return reduced


def _position(name: str) -> Position:
    function = PUBLIC[name]

    def position(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
        return _array(function, _checked(x, name, _REAL), axis, keepdims)

    _named(position, name, _REAL, "int64, counted in C order", axes="int")
    return position


def _accumulation(name: str) -> Accumulation:
    function = PUBLIC[name]

    def accumulated(
        x: Any, /, *, axis: Axes = None, dtype: DTypeLike | None = None, keepdims: bool = False
    ) -> Array:
        return _array(function, _checked(x, name, _NUMERIC), axis, keepdims, dtype=dtype)

    _named(accumulated, name, _NUMERIC, "x's dtype; int64 or uint64 of integers", _DTYPE)
    return accumulated


def _spread(name: str) -> Spread:
    function = PUBLIC[name]

    def spread(
        x: Any, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
    ) -> Array:
        x = _checked(x, name, _FLOATING)
        return _array(function, x, axis, keepdims, correction=correction)

    _named(spread, name, _FLOATING, "x's dtype", _CORRECTION)
    return spread


sum = _accumulation("sum")
prod = _accumulation("prod")
min = _reduction("min", _REAL, "x's dtype")
max = _reduction("max", _REAL, "x's dtype")
mean = _reduction("mean", (*_FLOATING, _COMPLEX), "x's dtype")
var = _spread("var")
std = _spread("std")
any = _reduction("any", _EVERY, "bool")
all = _reduction("all", _EVERY, "bool")
count_nonzero = _reduction("count_nonzero", _EVERY, "int64")
argmin = _position("argmin")
argmax = _position("argmax")


def __dir__() -> list[str]:
    return __all__
