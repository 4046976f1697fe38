"""Warnings, told of the line that called the package: Python shows a line's warning once."""

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np


def tell(text: str) -> None:
    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "gpureduce":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, RuntimeWarning, stacklevel=level)


@contextlib.contextmanager
def told_of(name: str) -> Iterator[None]:
    """What NumPy would warn of at a line of ours. A function of np.seterrcall stays as it is."""
    if np.geterrcall() is not None:
        yield
        return
    modes: Any = {kind: "call" for kind, mode in np.geterr().items() if mode == "warn"}
    with np.errstate(call=lambda what, _: tell(f"{what} encountered in {name}"), **modes):
        yield
