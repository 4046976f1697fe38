"""Arrays that mean more than their numbers: units, masks, labels. They are kept, or refused."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Reduce = Callable[[str, Any, Mapping[str, Any]], Any]

# By the first part of the type's module.
_KNOWN = {"astropy": "quantities", "pandas": "frames", "pint": "quantities", "pyarrow": "arrow"}
PROTOCOLS = ("__array_function__", "__array_ufunc__")
# Of arrays of devices and their like, which are reduced where they lie.
_ON_DEVICES = ("__cuda_array_interface__", "__dlpack__")


def module_of(of: type) -> str | None:
    """Whose reduce() takes arrays of this type; None for those that are their numbers alone."""
    if of is np.ndarray or of is np.memmap or issubclass(of, (np.generic, list, tuple)):
        return None
    if issubclass(of, np.ma.MaskedArray):
        return "annotated.masked"
    root = of.__module__.partition(".")[0]
    if root in _KNOWN:
        return f"annotated.{_KNOWN[root]}"
    if issubclass(of, np.ndarray):
        return "annotated.subclasses"
    has_more = any(hasattr(of, name) for name in PROTOCOLS)
    is_more = has_more and not any(hasattr(of, name) for name in _ON_DEVICES)
    return "annotated.refused" if is_more else None
