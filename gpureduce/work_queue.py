"""Sums of ragged segments by the global work queue, and by fixed assignments beside it.

A textbook's way to share out items of very different cost (kernels/textbook/work_queue.cuh): the
blocks fetch them one by one from one counter.
"""

import operator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpureduce import _core

__all__ = ["segment_sums", "segment_times"]
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
        If the kernel is not known, or an array is not one-dimensional.
    IndexError
        If an offset lies outside `a`.
    TypeError
        If `a` is of another dtype, or the offsets are no integers.
    gpureduce.DeviceError
        If there is no CUDA device that can be used; the message says why.

    Examples
    --------
    >>> import numpy as np
    >>> import gpureduce
    >>> gpureduce.work_queue.segment_sums(np.arange(6), [0, 2, 5])
    array([1, 9, 5])
    """
    return _run(a, offsets, kernel, 1)[0]


def segment_times(
    a: ArrayLike, offsets: ArrayLike, *, kernel: str = "work_queue", repeats: int = 10
) -> list[float]:
    """Return the milliseconds that each of so many launches takes, without copies.

    Parameters
    ----------
    a, offsets, kernel
        As for `segment_sums`.
    repeats : int, optional
        The number of launches, 1 or more.

    Returns
    -------
    list of float
        Milliseconds, measured by events on the device.

    Raises
    ------
    ValueError
        If `repeats` is below 1, and as for `segment_sums`.

    Examples
    --------
    >>> import numpy as np
    >>> import gpureduce
    >>> len(gpureduce.work_queue.segment_times(np.arange(6), [0, 2, 5], repeats=3))
    3
    """
    if operator.index(repeats) < 1:
        raise ValueError(f"segment_times: {repeats} repeats; 1 and up would do")
    return _run(a, offsets, kernel, repeats)[1]


def _run(
    a: ArrayLike, offsets: ArrayLike, kernel: str, repeats: int
) -> tuple[NDArray[np.int64], list[float]]:
    if kernel not in KERNELS:
        raise ValueError(
            f"gpureduce.work_queue.segment_sums: kernel {kernel!r} is none of {', '.join(KERNELS)}"
        )
    values, starts = np.asarray(a), np.asarray(offsets)
    if values.ndim != 1 or starts.ndim != 1:
        raise ValueError(
            f"gpureduce.work_queue.segment_sums: a and offsets have the shapes {values.shape} and "
            f"{starts.shape}; one dimension each would do"
        )
    if values.dtype.name not in _DTYPES:
        raise TypeError(
            f"gpureduce.work_queue.segment_sums: dtype {values.dtype} is none of "
            f"{', '.join(_DTYPES)}"
        )
    if starts.size and starts.dtype.kind not in "iu":
        raise TypeError(
            f"gpureduce.work_queue.segment_sums: offsets of dtype {starts.dtype}; integers would do"
        )
    if starts.size and not (starts.min() >= 0 and starts.max() < len(values)):
        raise IndexError(
            f"gpureduce.work_queue.segment_sums: offsets go from {starts.min()} to {starts.max()}; "
            f"0 to {len(values) - 1} are elements, and the last segment ends with a by itself"
        )
    native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    sums = np.empty(len(starts), np.int64)
    times = _core.segment_sums(
        kernel, native, np.ascontiguousarray(starts, np.int64), sums, repeats
    )
    return sums, times


def __dir__() -> list[str]:
    return __all__
