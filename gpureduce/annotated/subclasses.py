"""Subclasses of ndarray: results are of the class, as NumPy's are, by its own __array_wrap__."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpureduce.annotated import PROTOCOLS
from gpureduce.annotated.given import asked, each, function_of, refused
from gpureduce.functions import PUBLIC


def reduce(name: str, a: Any, given: Mapping[str, Any]) -> Any:
    for own in (*PROTOCOLS, *PUBLIC):
        if getattr(type(a), own, None) is not getattr(np.ndarray, own, None):
            refused(name, a, f"has {own} of its own", "numpy.asarray() of it")
    if getattr(a, "unit", None) is not None:
        refused(name, a, f"has the unit {a.unit}", "a Quantity of it, or numpy.asarray()")
    rest = asked(given)
    result = function_of(name)(a.view(np.ndarray), **rest)
    is_out = rest.get("out", ...) is not ...
    return result if is_out else each(lambda one: _wrapped(a, one), result)


def _wrapped(a: Any, result: Any) -> Any:
    array = np.asarray(result)
    try:
        return a.__array_wrap__(array, None, array.ndim == 0)
    except TypeError:  # as it was before NumPy 2
        return a.__array_wrap__(array)
