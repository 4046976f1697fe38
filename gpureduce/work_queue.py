"""Sums of ragged segments by the global work queue, and by fixed assignments beside it.

A textbook's way to share out items of very different cost (kernels/textbook/work_queue.cuh): the
blocks fetch them one by one from one counter.
"""

import operator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpureduce import _core

KERNELS = ("fixed_segments", "dealt_segments", "work_queue")
_DTYPES = ("int32", "int64")


def segment_sums(
    a: ArrayLike, offsets: ArrayLike, *, kernel: str = "work_queue"
) -> NDArray[np.int64]:
    """Sum the segments that begin at the offsets: ``np.add.reduceat(a, offsets, dtype="i8")``.

    Segment i is ``a[offsets[i]:offsets[i + 1]]``, the last one ends with a; where that is empty, it
    is the element at offsets[i] alone, as in NumPy.

    Parameters
    ----------
    a : array_like
        One dimension of int32 or int64.
    offsets : array_like
        One dimension of integers, each 0 to len(a) - 1, in any order.
    kernel : {"work_queue", "fixed_segments", "dealt_segments"}, optional
        Who sums which: each block fetches the next segment from a queue when it is done with its
        last; has a section of them; is dealt them in turn, as cards are.

    Returns
    -------
    numpy.ndarray
        One int64 for each offset, modulo 2^64.

    Raises
    ------
    ValueError
        The kernel is not known, or an array has another number of dimensions than one.
    IndexError
        An offset lies outside a.
    TypeError
        The dtype is another.
    gpureduce.DeviceError
        There is no CUDA device that can be used; the message says why.
    """
    return _run(a, offsets, kernel, 1)[0]


def segment_times(
    a: ArrayLike, offsets: ArrayLike, *, kernel: str = "work_queue", repeats: int = 10
) -> list[float]:
    """Milliseconds that each of so many launches takes, by events, without copies.

    Parameters and errors are those of segment_sums().
    """
    if operator.index(repeats) < 1:
        raise ValueError(f"segment_times: {repeats} repeats; 1 and up would do")
    return _run(a, offsets, kernel, repeats)[1]


def _run(
    a: ArrayLike, offsets: ArrayLike, kernel: str, repeats: int
) -> tuple[NDArray[np.int64], list[float]]:
    if kernel not in KERNELS:
        raise ValueError(f"segments: kernel {kernel!r} is none of {', '.join(KERNELS)}")
    values, starts = np.asarray(a), np.asarray(offsets)
    if values.ndim != 1 or starts.ndim != 1:
        raise ValueError(
            f"segments: a and offsets have the shapes {values.shape} and {starts.shape}; "
            "one dimension each would do"
        )
    if values.dtype.name not in _DTYPES:
        raise TypeError(f"segments: dtype {values.dtype} is none of {', '.join(_DTYPES)}")
    if starts.size and starts.dtype.kind not in "iu":
        raise TypeError(f"segments: offsets of dtype {starts.dtype}; integers would do")
    if starts.size and not (starts.min() >= 0 and starts.max() < len(values)):
        raise IndexError(
            f"segments: offsets are {starts.min()} to {starts.max()}; "
            f"0 to {len(values) - 1} are elements"
        )
    native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    sums = np.empty(len(starts), np.int64)
    times = _core.segment_sums(
        kernel, native, np.ascontiguousarray(starts, np.int64), sums, repeats
    )
    return sums, times
