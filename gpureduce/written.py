"""Results as text and as files: whole, in as many digits as tell each number from all others."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMATS = ("lines", "csv", "json", "npy")
_BY_SUFFIX = {".npy": "npy", ".csv": "csv", ".json": "json", ".txt": "lines"}


def chosen(out: str | None, form: str | None) -> str:
    """The format that was asked for, or that the file's name ends in."""
    if out and not Path(out).parent.is_dir():
        raise ValueError(f"--out {out}: there is no such directory")
    if form or not out:
        if form == "npy" and not out:
            raise ValueError("--format npy takes --out FILE")
        return form or "lines"
    suffix = Path(out).suffix.lower()
    if suffix not in _BY_SUFFIX:
        raise ValueError(
            f"--out {out}: end it in {', '.join(_BY_SUFFIX)}, or say which with --format"
        )
    return _BY_SUFFIX[suffix]


def write(result: Any, form: str, out: str | None) -> None:
    """Of two results, as of minmax, one array: the least first."""
    array = np.asarray(result)
    if form == "npy" and out:
        with open(out, "wb") as file:
            np.save(file, array)
        return
    text = {"lines": _lines, "csv": _csv, "json": _json}[form](array)
    if out:
        Path(out).write_text(text)
    else:
        sys.stdout.write(text)


def _lines(array: NDArray[Any]) -> str:
    return "".join(f"{one!s}\n" for one in array.flat)


def _csv(array: NDArray[Any]) -> str:
    if not array.size:
        return ""
    rows = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


def _json(array: NDArray[Any]) -> str:
    """NaN and Infinity as Python's json reads and writes them; times as text, complex numbers as
    pairs."""
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], -1)
    if array.dtype.kind in "mM":
        return json.dumps(array.astype(str).tolist()) + "\n"
    if array.dtype.kind in "biu" or array.dtype == np.float64:
        return json.dumps(array.tolist()) + "\n"
    return json.dumps(_short(array)) + "\n"  # digits of the dtype, not of the double that it is


def _short(array: NDArray[Any]) -> Any:
    return float(str(array[()])) if not array.ndim else [_short(one) for one in array]
