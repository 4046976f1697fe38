"""Arrays that come in chunks: lazy ones stay lazy, stores are read chunk by chunk."""

import importlib
from typing import Any

from gpureduce import annotated
from gpureduce.annotated import Reduce

_WAYS_MOST = 1000
_ways: dict[type, str | None] = {}
# By the first part of the array's module; a library that made an array is there already.
_KNOWN = {"dask": "dask_arrays", "zarr": "stores", "h5py": "stores", "xarray": "labelled"}


def way_of(a: Any) -> Reduce | None:
    """What reduces it, (function's name, array, arguments), by partials or as more than its
    numbers: None for other arrays."""
    of = type(a)
    if of not in _ways:
        if len(_ways) > _WAYS_MOST:
            _ways.clear()
        chunked = _KNOWN.get(of.__module__.partition(".")[0])
        _ways[of] = f"chunked.{chunked}" if chunked else annotated.module_of(of)
    module = _ways[of]
    if module is None:
        return None
    if module.startswith("chunked.") and not (hasattr(a, "chunks") and hasattr(a, "dtype")):
        return None
    way: Reduce = importlib.import_module(f"gpureduce.{module}").reduce
    return way


def check_in_memory(name: str, a: Any) -> None:
    """Of what takes nothing but numbers in memory."""
    if way_of(a):
        what = "comes in chunks" if hasattr(a, "chunks") else "is more than its numbers"
        raise TypeError(
            f"gpureduce.{name}: {type(a).__module__}.{type(a).__qualname__} {what}, and this takes "
            "arrays in memory: give numpy.asarray() of it"
        )
