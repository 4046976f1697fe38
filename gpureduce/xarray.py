"""xarray: ``import gpureduce.xarray`` brings the accessor ``exact`` to DataArray and Dataset.

``da.exact.sum("time")`` is ``da.reduce(gpureduce.sum, "time")``, which works without this module
too: dims, coords, attrs and names are xarray's own affair, and lazy arrays stay lazy. The accessor
has each function of the package that gives one result; ``skipna=True`` takes the one that skips
NaN.

Examples
--------
>>> import gpureduce.xarray
>>> import numpy as np, xarray as xr
>>> da = xr.DataArray(np.float32([[1e8, 1.0], [3.0, -1e8]]), dims=("time", "x"))
>>> da.exact.sum("time").values
array([ 1.e+08, -1.e+08], dtype=float32)
>>> float(da.exact.sum())
4.0
"""

import importlib
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from gpureduce import functions
from gpureduce.lists import operators

try:
    _xarray = importlib.import_module("xarray")
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "gpureduce.xarray is for xarray, which is not installed: pip install xarray"
    ) from None

_OPERATORS = {op["name"]: op for op in operators() if op["function"]}
_DOC = """\
{sentence}

Parameters
----------
dim : hashable or iterable of hashable, optional
    The dimensions to reduce. All.
skipna : bool, optional
    Whether NaN does not count: gpureduce.nan{name}. False.
keep_attrs : bool, optional
    As for xarray's own reductions.
**how
    As for gpureduce.{name}: ddof, dtype, device and others.

Returns
-------
DataArray or Dataset
    Lazy where the array is.

Raises
------
TypeError, ValueError
    As gpureduce.{name} does.
"""


def _method(name: str) -> Callable[..., Any]:
    def method(
        self: "Exact",
        dim: Hashable | Iterable[Hashable] | None = None,
        *,
        skipna: bool = False,
        keep_attrs: bool | None = None,
        **how: Any,
    ) -> Any:
        function = functions.PUBLIC[f"nan{name}" if skipna else name]
        if "where" in how:
            how["where"] = _aligned(self._of, how["where"], name)
        return self._of.reduce(function, dim, keep_attrs=keep_attrs, **how)

    method.__name__ = name
    method.__qualname__ = f"Exact.{name}"
    method.__doc__ = _DOC.format(name=name, sentence=_OPERATORS[name]["sentence"])
    return method


def _aligned(of: Any, where: Any, name: str) -> Any:
    """A mask with names goes by them."""
    if not hasattr(where, "dims"):
        return where
    if not hasattr(of, "dims") or isinstance(of, _xarray.Dataset):
        raise TypeError(f"gpureduce.{name}: where is of a DataArray, not of a Dataset")
    other = set(where.dims) - set(of.dims)
    if other:
        raise ValueError(
            f"gpureduce.{name}: where has the dimensions {sorted(other)}, and the array not"
        )
    full = _xarray.broadcast(of, where)[1] if set(where.dims) != set(of.dims) else where
    return full.transpose(*of.dims).data


class Exact:
    """The reductions of gpureduce on an xarray object: exact, and the same bits for any chunks."""

    def __init__(self, of: Any):
        self._of = of

    sum = _method("sum")
    prod = _method("prod")
    min = _method("min")
    max = _method("max")
    ptp = _method("ptp")
    argmin = _method("argmin")
    argmax = _method("argmax")
    mean = _method("mean")
    var = _method("var")
    std = _method("std")
    any = _method("any")
    all = _method("all")
    count_nonzero = _method("count_nonzero")


_xarray.register_dataarray_accessor("exact")(Exact)
_xarray.register_dataset_accessor("exact")(Exact)
