"""Arrays that come in chunks: lazy ones stay lazy, stores are read chunk by chunk."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

Reduce = Callable[[str, Any, Mapping[str, Any]], Any]

# By the first part of the array's module; a library that made an array is there already.
_KNOWN = {"dask": "dask_arrays", "zarr": "stores", "h5py": "stores", "xarray": "labelled"}


def way_of(a: Any) -> Reduce | None:
    """What reduces it by partials, (function's name, array, arguments): None for other arrays."""
    module = _KNOWN.get(type(a).__module__.partition(".")[0])
    if module is None or not (hasattr(a, "chunks") and hasattr(a, "dtype")):
        return None
    way: Reduce = importlib.import_module(f"gpureduce.chunked.{module}").reduce
    return way
