"""Integers and masks as they were given: what is wrong with one names the function and itself."""

import operator
from contextlib import suppress
from typing import Any

import numpy as np


def _index(given: Any) -> int:
    if isinstance(given, bool):
        raise TypeError("NumPy takes no bool for an index")
    return operator.index(given)


def integer(given: Any, what: str) -> int:
    """what: "function: argument"."""
    with suppress(TypeError):
        return _index(given)
    raise TypeError(f"{what} must be an integer, not {given!r}")


def integers(given: Any, what: str) -> tuple[int, ...]:
    """One, or several."""
    is_several = isinstance(given, tuple | list | range) or getattr(given, "ndim", 0) > 0
    with suppress(TypeError):
        return tuple(map(_index, given if is_several else (given,)))
    raise TypeError(f"{what} must be an integer, or several in a tuple, not {given!r}")


def lengths(given: Any, what: str) -> tuple[int, ...]:
    shape = integers(given, what)
    if min(shape, default=0) < 0:
        raise ValueError(f"{what} {given!r} has a negative length: 0 is the least")
    return shape


def check_mask(mask: Any, shape: tuple[int, ...], what: str) -> None:
    if mask.dtype != bool:
        raise TypeError(f"{what} must be of bool, not {mask.dtype}: numbers compare, as in x > 0")
    try:
        np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(
            f"{what} of shape {mask.shape} could not be broadcast to the array's shape {shape}"
        ) from None
