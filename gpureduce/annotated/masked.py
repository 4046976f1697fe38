"""Masked arrays of NumPy: what is masked does not count, and a result of nothing is masked."""

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpureduce.annotated.given import asked, each, function_of, refused, row_of, without

Array = NDArray[Any]


class Answer(NamedTuple):
    """result: two of them of minmax and its like. empty: where nothing counted."""

    result: Any
    empty: Any


def reduce(name: str, a: Any, given: Mapping[str, Any]) -> Any:
    if getattr(a, "unit", None) is not None:
        refused(name, a, f"has the unit {a.unit}", "numpy.ma.array() of it")
    without(name, a, asked(given), "out")
    valid = None if a.mask is np.ma.nomask else ~np.ma.getmaskarray(a)
    return _wrapped(of_valid(name, np.ma.getdata(a), valid, given))


def _wrapped(answer: Answer) -> Any:
    def one(result: Any) -> Any:
        if np.ndim(result):
            return np.ma.array(result, mask=answer.empty)
        return np.ma.masked if answer.empty else result

    return each(one, answer.result)


def of_valid(name: str, data: Array, valid: Array | None, given: Mapping[str, Any]) -> Answer:
    """The reduction of what is valid; None is all."""
    row, rest = row_of(name), asked(given)
    data = np.asarray(data)
    if valid is None:
        return Answer(function_of(name)(data, **rest), False)
    valid = np.logical_and(valid, rest.pop("where", True))
    axes = {key: rest[key] for key in ("axis", "keepdims") if key in rest}
    least = rest.get("ddof", 0) if row["spread"] else 0
    counted = valid
    if row["skips_nan"] and row["nonempty"] and data.dtype.kind in "fcmM":
        counted, name = valid & ~np.isnan(data), name.removeprefix("nan")
        row = row_of(name)
    counts = np.count_nonzero(counted, **axes)
    empty = counts <= least if row["name"] != "count_nonzero" else counts < 0
    return Answer(_reduced(name, data, counted, rest), empty)


def _reduced(name: str, data: Array, valid: Array, rest: dict[str, Any]) -> Any:
    row = row_of(name)
    if row["results"] > 1:
        names = [name.replace("max", ""), name.replace("min", "")]
        return tuple(_reduced(one, data, valid, dict(rest)) for one in names)
    if row["position"]:
        return _position(name, data, valid, rest)
    if name == "ptp":
        low, high = _reduced("minmax", data, valid, rest)
        return high - low
    if name == "count_nonzero":
        return function_of(name)((data != 0) & valid, **rest)
    if row["nonempty"]:
        rest.setdefault("initial", _neutral(name, data.dtype))
    with warnings.catch_warnings():  # of slices where nothing counts: the mask tells it
        warnings.filterwarnings("ignore", r"(Mean of|Degrees of|All-NaN)|.*divide", RuntimeWarning)
        return function_of(name)(data, where=valid, **rest)


def _neutral(name: str, dtype: np.dtype[Any]) -> Any:
    """What no element is beyond."""
    least = not name.endswith("min")
    if dtype.kind in "fc":
        return dtype.type(-np.inf if least else np.inf)
    if dtype.kind == "b":
        return not least
    limits = np.iinfo(dtype if dtype.kind in "iu" else np.int64)
    number = limits.min + (dtype.kind in "mM") if least else limits.max
    return number if dtype.kind in "iu" else np.array(number).view(dtype)[()]


def _position(name: str, data: Array, valid: Array, rest: dict[str, Any]) -> Any:
    """The first of those that are valid and equal to the extreme, or no number as it is."""
    how = {"axis": rest.get("axis"), "keepdims": True, "device": rest.get("device", "auto")}
    extreme = _reduced(name.removeprefix("arg"), data, valid, how)
    with np.errstate(invalid="ignore"):
        found = (data == extreme) | ((data != data) & (extreme != extreme))
    return function_of("argmax")(found & valid, **rest)
