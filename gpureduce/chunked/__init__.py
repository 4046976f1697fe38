"""Arrays that come in chunks: lazy ones stay lazy, stores are read chunk by chunk."""

import importlib
from typing import Any

import numpy as np

from gpureduce import annotated

_WAYS_MOST = 1000
_ways: dict[type, str | None] = {}
# Types of arrays that are their numbers alone and never come in chunks, as far as they were met.
PLAIN: set[type] = {np.ndarray}
# By the first part of the array's module; a library that made an array is there already.
_KNOWN = {
    "cubed": "cubed_arrays",
    "dask": "dask_arrays",
    "h5py": "stores",
    "xarray": "labelled",
    "zarr": "stores",
}
# Whose arrays may lie on several devices, or are several: lists and tuples.
_OF_DEVICES = ("jaxlib", "builtins")


def module_of(a: Any) -> Any:
    """What reduces it by partials, or as more than its numbers; None for other arrays."""
    of = type(a)
    if of in PLAIN:
        return None
    if _lies_on_devices(a, of):
        return _module("chunked.parts")
    if of not in _ways:
        if len(_ways) > _WAYS_MOST:
            _ways.clear()
            PLAIN.intersection_update({np.ndarray})
        library = of.__module__.partition(".")[0]
        chunked = _KNOWN.get(library)
        _ways[of] = f"chunked.{chunked}" if chunked else annotated.module_of(of)
        if _ways[of] is None and library not in _OF_DEVICES:
            PLAIN.add(of)
    module = _ways[of]
    if module is None:
        return None
    if module.startswith("chunked.") and not (hasattr(a, "chunks") and hasattr(a, "dtype")):
        return None
    return _module(module)


def _module(name: str) -> Any:
    return importlib.import_module(f"gpureduce.{name}")


def way_of(a: Any) -> annotated.Reduce | None:
    """Its function of (function's name, array, arguments)."""
    module = module_of(a)
    way: annotated.Reduce | None = module and module.reduce
    return way


def takes_operators(a: Any) -> bool:
    """Of users: not where the array has names that would be lost."""
    return hasattr(module_of(a), "reduce_by")


def _lies_on_devices(a: Any, of: type) -> bool:
    """A list of devices' arrays, or JAX's of several."""
    if of is list or of is tuple:
        return bool(a) and _is_on_device(a[0])
    if of.__module__.partition(".")[0] != "jaxlib":
        return False
    return len(getattr(getattr(a, "sharding", None), "device_set", ())) > 1


def _is_on_device(a: Any) -> bool:
    where = getattr(type(a), "__dlpack_device__", None)
    return hasattr(a, "__cuda_array_interface__") or (where is not None and where(a)[0] == 2)


def check_in_memory(name: str, a: Any) -> None:
    """Of what takes nothing but numbers in memory."""
    if module := module_of(a):
        what = "comes in chunks" if hasattr(a, "chunks") else "is more than its numbers"
        why = getattr(module, "WHY_NOT", f"{what}, and this takes arrays in memory")
        raise TypeError(
            f"gpureduce.{name}: {type(a).__module__}.{type(a).__qualname__} {why}: give "
            "numpy.asarray() of it"
        )
