"""Series and DataFrames of pandas: labels stay, and what is missing does not count."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpureduce.annotated import refused as unknown
from gpureduce.annotated.given import asked, each, refused, row_of, without
from gpureduce.annotated.masked import Answer, of_valid

Array = NDArray[Any]


def reduce(name: str, a: Any, given: Mapping[str, Any]) -> Any:
    without(name, a, asked(given), "out", "mean", "keepdims")
    if hasattr(a, "columns"):
        return _of_frame(name, a, given)
    if hasattr(a, "to_numpy") and hasattr(a, "isna"):
        if given.get("axis") in ("index", "rows"):
            given = {**given, "axis": 0}
        return _scalar(name, a, of_valid(name, *_numbers(name, a), given))
    return unknown.reduce(name, a, given)


def _numbers(name: str, a: Any) -> tuple[Array, Array | None]:
    """The numbers of what has one dtype, and which are there; None: all are."""
    dtype = getattr(a.dtype, "numpy_dtype", a.dtype)
    if not isinstance(dtype, np.dtype):
        refused(name, a, f"of dtype {a.dtype} is not of NumPy's numbers", "numbers")
    missing = np.asarray(a.isna())
    if not missing.any():
        return a.to_numpy(dtype), None
    if dtype is a.dtype:
        return a.to_numpy(), ~missing
    return a.to_numpy(dtype, na_value=dtype.type(0)), ~missing


def _scalar(name: str, a: Any, answer: Answer) -> Any:
    def one(result: Any) -> Any:
        dtype = getattr(result, "dtype", np.dtype(bool))
        if not answer.empty or not row_of(name)["nonempty"]:
            return result
        missing = getattr(a.dtype, "na_value", None)
        no_time = np.array("NaT", dtype)[()] if dtype.kind in "mM" else None
        return missing if missing is not None else np.nan if no_time is None else no_time

    if answer.empty and row_of(name)["position"]:
        raise ValueError(f"gpureduce.{name}: all of it is missing")
    return each(one, answer.result)


_AXES = {None: None, 0: 0, -2: 0, "index": 0, "rows": 0, 1: 1, -1: 1, "columns": 1}


def _axis(axis: Any) -> int | None:
    try:
        return _AXES[axis]
    except (KeyError, TypeError):
        raise ValueError(f"gpureduce: axis {axis!r} of a DataFrame, which has 0 and 1") from None


def _of_frame(name: str, a: Any, given: Mapping[str, Any]) -> Any:
    axis = _axis(given.get("axis"))
    if axis == 0 and len({*a.dtypes}) > 1:
        return _by_columns(name, a, given)
    data, valid = _together(name, a)
    answer = of_valid(name, data, valid, {**given, "axis": axis})
    if axis is None:
        return _scalar(name, a.iloc[:, 0], answer)
    if np.any(answer.empty) and row_of(name)["position"]:
        raise ValueError(f"gpureduce.{name}: all of a row or a column is missing")
    index = a.index if axis else a.columns

    def labelled(result: Any) -> Any:
        series = a._constructor_sliced(result, index=index)
        no_number = np.any(answer.empty) and row_of(name)["nonempty"]
        return series.mask(answer.empty) if no_number else series

    return each(labelled, answer.result)


def _by_columns(name: str, a: Any, given: Mapping[str, Any]) -> Any:
    """Each of a dtype of its own."""
    where, found = asked(given).get("where"), []
    for number in range(a.shape[1]):
        mine = {**given, "axis": None}
        if where is not None:
            mine["where"] = np.broadcast_to(where, a.shape)[:, number]
        found.append(reduce(name, a.iloc[:, number], mine))
    results = zip(*found, strict=True) if row_of(name)["results"] > 1 else [found]
    series = tuple(a._constructor_sliced(list(one), index=a.columns) for one in results)
    return series if len(series) > 1 else series[0]


def _together(name: str, a: Any) -> tuple[Array, Array | None]:
    """All columns as one array, and what of it is there."""
    missing = np.asarray(a.isna())
    if len({*a.dtypes}) == 1 and isinstance(a.dtypes.iloc[0], np.dtype):
        data = a.to_numpy()
    else:
        columns = [_numbers(name, a.iloc[:, number])[0] for number in range(a.shape[1])]
        data = np.stack(columns, axis=1)
    return data, ~missing if missing.any() else None
