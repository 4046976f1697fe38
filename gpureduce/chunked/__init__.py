"""Arrays that come in chunks: lazy ones stay lazy, stores are read chunk by chunk."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

Reduce = Callable[[str, Any, Mapping[str, Any]], Any]

_WAYS_MOST = 1000
_ways: dict[type, str | None] = {}
# By the first part of the array's module; a library that made an array is there already.
_KNOWN = {
    "cubed": "cubed_arrays",
    "dask": "dask_arrays",
    "h5py": "stores",
    "xarray": "labelled",
    "zarr": "stores",
}


def module_of(a: Any) -> Any:
    """What reduces it by partials; None for other arrays."""
    of = type(a)
    if of not in _ways:
        if len(_ways) > _WAYS_MOST:
            _ways.clear()
        _ways[of] = _KNOWN.get(of.__module__.partition(".")[0])
    module = _ways[of]
    if module is None or not (hasattr(a, "chunks") and hasattr(a, "dtype")):
        return None
    return importlib.import_module(f"gpureduce.chunked.{module}")


def way_of(a: Any) -> Reduce | None:
    """Its function of (function's name, array, arguments)."""
    module = module_of(a)
    way: Reduce | None = module and module.reduce
    return way


def takes_operators(a: Any) -> bool:
    """Of users: not where the array has names that would be lost."""
    return hasattr(module_of(a), "reduce_by")


def check_in_memory(name: str, a: Any) -> None:
    """Of what has no way by partials."""
    if module := module_of(a):
        why = getattr(module, "WHY_NOT", "comes in chunks, and this takes arrays in memory")
        raise TypeError(
            f"{name}: {type(a).__module__}.{type(a).__qualname__} {why}: give numpy.asarray() of it"
        )
