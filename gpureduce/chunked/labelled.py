"""xarray's arrays: reduced by xarray, which keeps names and coordinates, with our functions."""

from collections.abc import Mapping
from typing import Any

from gpureduce import functions
from gpureduce.annotated.given import asked
from gpureduce.lists import operators

WHY_NOT = "has names, which would be lost"


def reduce(name: str, a: Any, given: Mapping[str, Any]) -> Any:
    """A DataArray, lazy where the array's data are; of two results a tuple of them."""
    function = functions.PUBLIC[name]
    rest = asked(given)
    if rest.get("out") is not None:
        raise TypeError(f"gpureduce.{name}: xarray's arrays take no out")
    if isinstance(rest.get("where"), type(a)):
        rest["where"] = rest["where"].broadcast_like(a).transpose(*a.dims).data
    axis, keepdims = rest.pop("axis", None), bool(rest.pop("keepdims", False))
    if not any(op["name"] == name and op["results"] > 1 for op in operators()):
        return a.reduce(function, axis=axis, keepdims=keepdims, **rest)

    def named(result: Any) -> Any:
        return a.reduce(lambda *_, **__: result, axis=axis, keepdims=keepdims)

    return tuple(map(named, function(a.data, axis=axis, **rest)))
