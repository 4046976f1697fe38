"""Arrays of PyArrow: nulls do not count, as by where=."""

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpureduce.annotated.given import asked, function_of, refused, row_of
from gpureduce.annotated.masked import of_valid


def reduce(name: str, a: Any, given: Mapping[str, Any]) -> Any:
    if not hasattr(a, "null_count") or not hasattr(a, "fill_null"):
        return function_of(name)(np.asarray(a), **asked(given))
    if not a.null_count:
        return function_of(name)(_numbers(name, a), **asked(given))
    pa = importlib.import_module("pyarrow")
    try:
        filled = a.fill_null(pa.scalar(0, pa.int8()).cast(a.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # of no numbers
        filled = a
    answer = of_valid(name, _numbers(name, filled), _numbers(name, a.is_valid()), given)
    if np.any(answer.empty) and row_of(name)["nonempty"]:
        raise ValueError(f"gpureduce.{name}: nothing but null, and {name} has no identity")
    return answer.result


def _numbers(name: str, a: Any) -> Any:
    found = a.to_numpy() if hasattr(a, "chunks") else a.to_numpy(zero_copy_only=False)
    if found.dtype.kind not in "biufcmM":
        refused(name, a, f"of type {a.type} is not of NumPy's numbers", "numbers")
    return found
