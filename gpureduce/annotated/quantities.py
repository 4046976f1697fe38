"""Numbers with a unit, of Astropy and of Pint: the unit stays, or is squared."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpureduce.annotated import refused as unknown
from gpureduce.annotated import subclasses
from gpureduce.annotated.given import asked, each, function_of, kind, refused, row_of, without


def reduce(name: str, a: Any, given: Mapping[str, Any]) -> Any:
    if hasattr(type(a), "unmasked"):
        refused(name, a, "has a mask", "a.unmasked, with where=~a.mask")
    if hasattr(type(a), "magnitude"):
        return _reduce(name, a, a.magnitude, a.units, given)
    if hasattr(type(a), "to_value") and hasattr(type(a), "si"):
        if hasattr(a, "physical"):
            refused(name, a, "has a unit that is not linear", "a.physical, or a.value")
        return _reduce(name, a, a.value, a.unit, given)
    way = subclasses if isinstance(a, np.ndarray) else unknown
    return way.reduce(name, a, given)


def _reduce(name: str, a: Any, numbers: Any, unit: Any, given: Mapping[str, Any]) -> Any:
    row, rest = row_of(name), asked(given)
    if name.removeprefix("nan") in ("sum", "ptp", "var", "std") and not _is_linear(a):
        refused(name, a, f"has the unit {unit}, which is not linear", "a.to_base_units()")
    if row["spread"] and "var" in name:
        unit = unit**2
    elif row["position"] or name == "count_nonzero":
        unit = None
    elif not (row["spread"] or name.removeprefix("nan") in ("sum", "mean", "min", "max", "ptp")
              or row["results"] > 1):  # fmt: skip
        refused(name, a, f"of unit {unit} has no such reduction", "the numbers alone")
    without(name, a, rest, "out")
    for argument in {"initial", "mean"} & {*rest}:
        rest[argument] = _in_unit(name, argument, rest[argument], a)
    result = function_of(name)(numbers, **rest)
    return result if unit is None else each(lambda one: _with_unit(a, one, unit), result)


def _is_linear(a: Any) -> bool:
    """Whether zero stays zero in other units: not of degrees and decibels of Pint."""
    return not hasattr(a, "to_base_units") or not type(a)(0, a.units).to_base_units().magnitude


def _in_unit(name: str, argument: str, value: Any, a: Any) -> Any:
    if hasattr(value, "to_value"):
        return value.to_value(a.unit)
    if hasattr(value, "magnitude"):
        return value.to(a.units).magnitude
    raise TypeError(f"gpureduce.{name}: {argument} has no unit, and {kind(a)} has one")


def _with_unit(a: Any, result: Any, unit: Any) -> Any:
    """A plain Quantity: an angle that is kept within bounds would bend a sum."""
    return type(a)(result, unit) if hasattr(type(a), "magnitude") else result << unit
