"""What finish() tells of its results: as csrc/python/warn.c does, as far as partials know it."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpureduce import _core
from gpureduce.caller import tell
from gpureduce.partial.kinds import HEADER, ROWS, Kind

_NONEMPTY = ("min", "max", "ptp", "minmax", "argmin", "argmax", "argminmax")
_ARITHMETIC = ("sum", "mean", "var", "std", "ptp")
# NumPy's NPY_FPE_DIVIDEBYZERO, NPY_FPE_OVERFLOW and NPY_FPE_INVALID.
_DIVIDE, _OVERFLOW, _INVALID = 1, 2, 8
# With np.errstate's names of them, and NumPy's words.
_ERRORS = {
    _DIVIDE: ("divide", "divide by zero"),
    _OVERFLOW: ("over", "overflow"),
    _INVALID: ("invalid", "invalid value"),
}

# Of each output, or each part of it: whether infinities, and NaN, were among the elements.
Met = tuple[NDArray[Any], NDArray[Any]]


def warn(
    asked: str,
    kind: Kind,
    found: NDArray[Any],
    least: int,
    ddof: float,
    met: Callable[[], Met],
    ndim: int,
) -> None:
    """As np.errstate says. found: a result for each output. ndim: of all of them."""
    skips = asked.startswith("nan") and kind.dtype.kind in "fcmMV"
    text = _of_few(asked, kind, least, ddof, skips)
    if text:
        tell(text)
    of = asked.removeprefix("nan")
    if of not in _ARITHMETIC or found.dtype.kind not in "fcV":
        return
    numbers = _parts(found)
    if np.isfinite(numbers).all():
        return
    infinite, none = np.isinf(numbers), np.isnan(numbers)
    if kind.dtype.kind in "fcV":
        reasons = (m if m.shape == none.shape else m.any(-1, keepdims=True) for m in met())
        infinite &= ~next(reasons)
        none &= not text if skips else ~next(reasons)
    name, is_scalar = ("reduce", False) if of != "ptp" else ("subtract", not ndim)
    if text:
        name, is_scalar = "divide", not ndim and numbers.itemsize == 8
        if of != "mean" and not skips and not least:
            _tell_of(name, _INVALID)
    flags = _INVALID * bool(none.any())
    if infinite.any():
        flags |= _DIVIDE if text else _OVERFLOW
    _tell_of(f"scalar {name}" if is_scalar else name, flags)


def _tell_of(name: str, flags: int) -> None:
    modes: Mapping[str, object] = np.geterr()
    for flag, (mode, what) in _ERRORS.items():
        if flags & flag and modes[mode] == "warn":
            tell(f"{what} encountered in {name}")
            flags -= flag
    _core.float_errors(name, flags)


def _of_few(asked: str, kind: Kind, least: int, ddof: float, skips: bool) -> str | None:
    """Where too few elements counted, in NumPy's words."""
    if asked.removeprefix("nan") in _NONEMPTY and not least:
        if skips and "arg" not in asked:
            return "All-NaN slice encountered"
        if skips:
            raise ValueError("All-NaN slice encountered")
        raise ValueError(
            f"gpureduce.finish: there is no element to take the {asked} of, which has no identity"
        )
    if asked.endswith("mean") and not least and kind.dtype.kind not in "mM":
        return "Mean of empty slice"
    if asked.endswith(("var", "std")) and least - ddof <= 0:
        return "Degrees of freedom <= 0 for slice" + "." * skips
    return None


def _parts(found: NDArray[Any]) -> NDArray[Any]:
    """An axis more: of complex numbers both parts."""
    if found.dtype.kind != "c":
        return found[:, np.newaxis]
    return found.view(found.real.dtype).reshape(len(found), 2)


def met_in_words(kind: Kind, words: NDArray[np.int64]) -> Met:
    """Canonical ones have infinities of both signs as NaN."""
    values = words[:, HEADER:]
    if kind.op == "ptp":
        ends = np.ascontiguousarray(values).view(kind.dtype).reshape(len(words), 2, -1)[..., 0]
        return np.isinf(ends).any(-1, keepdims=True), np.isnan(ends).any(-1, keepdims=True)
    parts = 1 + (kind.dtype.kind == "c")
    each = (ROWS["sum", kind.dtype.name][1] - HEADER) // parts
    special = values[:, : parts * each].reshape(len(words), parts, each)
    infinite, none = special[..., :2] != 0, special[..., 2] != 0
    return infinite.any(-1), none
