"""Sixty thousand calls of each function and of each error path leave memory and counts flat."""

import gc
import sys
import warnings

import numpy as np
import pytest
from table import OPS, SANITIZED, call, numpy_dtype

import gpureduce
from gpureduce import _core

CALLS = 60_000
PAGE = 4096
# A leak of 16 bytes a call would be 234 pages; the allocators' own drift stays below this.
SLACK_PAGES = 200

A = np.ones(5)
MATRICES = np.ones((3, 2, 2))
EMPTY = np.ones(0)
TIMES = np.zeros(3, "M8[ms]")
OBJECTS = np.array([None])
MASKED = np.ma.array([1.0])
COMPLEX = np.ones(3, complex)
OUT, TEXT = np.zeros(()), np.zeros((), "S8")
MASK = np.ones(5, bool)
PARTIALS = gpureduce.partials(A, "var")


def progress(done, total):
    return done, total


LAID = {
    "strided": np.ones(9)[::-2],
    "byte-swapped": np.ones(5, ">f8"),
    "list": [1.0, 2.0],
    "bfloat16": np.ones(5, np.float32).astype(numpy_dtype("bfloat16")),
}


def raising(error, function, *arguments, **named):
    def once():
        try:
            function(*arguments, **named)
        except error:
            return
        raise AssertionError(f"no {error}")

    return once


class Resizes:
    """An axis that makes the array another one."""

    def __init__(self):
        self.a = A.copy()  # NumPy's ones() leaves a reference to the dtype behind

    def __index__(self):
        self.a.resize(9, refcheck=False)
        return 0


def resized():
    axis = Resizes()
    gpureduce.sum(axis.a, axis=axis, where=MASK)


PATHS = {name: lambda name=name: call(name, np.int64(3) if "bit" in name else A) for name in OPS}
PATHS |= {f"sum of {label}": lambda a=a: gpureduce.sum(a) for label, a in LAID.items()}
PATHS |= {
    "dtype": lambda: gpureduce.sum(A, dtype="f4"),
    "dtype bfloat16": lambda: gpureduce.sum(A, dtype=LAID["bfloat16"].dtype),
    "initial": lambda: gpureduce.sum(A, initial=2.0),
    "matrices": lambda: gpureduce.reduce(MATRICES, "matmul2x2", initial=np.eye(2)),
    "other shapes": raising(ValueError, gpureduce.reduce, A, "matmul2x2"),
    "other initial": raising(ValueError, gpureduce.reduce, MATRICES, "matmul2x2", initial=[[1]]),
    "initial and dtype": lambda: gpureduce.sum(A, dtype="i1", initial=2),
    "unit of time": lambda: gpureduce.max(TIMES),
    "difference of times": lambda: gpureduce.ptp(TIMES),
    "the lists": lambda: (_core.dtypes(), _core.device_count(), gpureduce.isa()),
    "threads": lambda: gpureduce.set_num_threads(gpureduce.get_num_threads()),
    "object": raising(TypeError, gpureduce.sum, OBJECTS),
    "string": raising(TypeError, gpureduce.max, "abc"),
    "masked": raising(TypeError, gpureduce.reduceat, MASKED, [0], "add"),
    "ragged": raising(ValueError, gpureduce.sum, [[1], [1, 2]]),
    "empty max": raising(ValueError, gpureduce.max, EMPTY),
    "empty argmax": raising(ValueError, gpureduce.argmax, EMPTY),
    "empty mean": raising(RuntimeWarning, gpureduce.mean, EMPTY),
    "unknown op": raising(ValueError, gpureduce.reduce, A, "nonsense"),
    "bitwise float": raising(TypeError, gpureduce.reduce, A, "bitwise_or"),
    "device": raising(ValueError, gpureduce.sum, A, device="gpu"),
    "device type": raising(ValueError, gpureduce.sum, A, device=3),
    "no device": raising(gpureduce.DeviceError, gpureduce.sum, A, device="cuda:9999"),
    "dtype object": raising(TypeError, gpureduce.sum, A, dtype=OBJECTS.dtype),
    "dtype nonsense": raising(TypeError, gpureduce.sum, A, dtype="nonsense"),
    "dtype time": raising(TypeError, gpureduce.sum, A, dtype=np.dtype("m8[s]")),
    "another unit": raising(TypeError, gpureduce.sum, TIMES - TIMES, dtype="m8[s]"),
    "initial overflow": raising(OverflowError, gpureduce.min, np.ones(2, "i1"), initial=300),
    "initial list": raising(ValueError, gpureduce.sum, A, initial=[1, 2]),
    "complex warning": raising(np.exceptions.ComplexWarning, gpureduce.sum, COMPLEX, dtype="f8"),
    "progress": lambda: gpureduce.sum(A, progress=progress),
    "progress and axis": lambda: gpureduce.minmax(MATRICES, axis=0, progress=progress),
    "progress that fails": raising(TypeError, gpureduce.sum, A, progress=len),
    "no progress": raising(TypeError, gpureduce.sum, A, progress=3),
    "out": lambda: gpureduce.sum(A, out=OUT),
    "text for out": raising(TypeError, gpureduce.sum, A, out=TEXT),
    "mean": lambda: gpureduce.var(A, mean=[1]),
    "text for mean": raising(TypeError, gpureduce.var, A, mean=TEXT),
    "where": lambda: gpureduce.sum(A, where=MASK),
    "a mask that does not fit": raising(ValueError, gpureduce.sum, COMPLEX, where=MASK),
    "resized": raising(RuntimeError, resized),
    "segments": lambda: gpureduce.segments(A, [0], MASK[:1], "add"),
    "no segments": raising(TypeError, gpureduce.segments, A, [0], [0.5], "add"),
    "two axes of segments": raising(ValueError, gpureduce.reduceat, MATRICES, [0], "add", (0, 1)),
    "axis too large": raising(ValueError, gpureduce.sum, A, axis=1 << 40),
    "NaN for initial": lambda: gpureduce.nanmin(A, initial=np.nan),
    "partials": lambda: gpureduce.partials(MATRICES, "mean", axis=0),
    "partials of a mask": lambda: gpureduce.partials(A, "sum", where=MASK),
    "no partials": raising(TypeError, gpureduce.partials, OBJECTS, "sum"),
    "partials on no device": raising(
        (ValueError, gpureduce.DeviceError), gpureduce.partials, A, "sum", device="cuda"
    ),
    "merge": lambda: gpureduce.merge([PARTIALS, PARTIALS]),
    "finish": lambda: gpureduce.finish(PARTIALS, "std"),
    "finish into": lambda: gpureduce.finish(PARTIALS, "mean", dtype="f4"),
    "finish wrongly": raising(ValueError, gpureduce.finish, PARTIALS, "max"),
    "words wrongly": raising(ValueError, gpureduce.from_words, PARTIALS.raw, "sum", "f8"),
    "threads out of range": raising(ValueError, gpureduce.set_num_threads, -1),
}

COUNTED = [A, EMPTY, TIMES, OBJECTS, MASKED, COMPLEX, OUT, TEXT, MASK, *LAID.values()]
COUNTED += [a.dtype for a in COUNTED if isinstance(a, np.ndarray)]
COUNTED += [np.dtype(code) for code in ("f4", "f8", "i8", "?", "m8", "M8", "m8[ms]")]
COUNTED += [None, True, progress, gpureduce.DeviceError]


def resident_pages():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])


@pytest.mark.parametrize("path", PATHS)
def test_flat(path):
    once = PATHS[path]
    for _ in range(2000):
        once()
    gc.collect()
    pages, counts = resident_pages(), [sys.getrefcount(x) for x in COUNTED]
    for _ in range(CALLS):
        once()
    gc.collect()
    grown = [sys.getrefcount(x) - before for x, before in zip(COUNTED, counts, strict=True)]
    for thing, by in zip(COUNTED, grown, strict=True):
        assert abs(by) < 100, f"{by} references to {thing!r} after {CALLS} calls of {path}"
    grew = resident_pages() - pages
    assert SANITIZED or grew < SLACK_PAGES, (
        f"{grew * PAGE} bytes more after {CALLS} calls of {path}"
    )


def test_calls_on_several_threads_leave_memory_flat():
    a = np.ones(1 << 17)
    gpureduce.set_num_threads(7)
    for name in ("sum", "prod", "argmax"):
        for _ in range(50):
            call(name, a)
    pages = resident_pages()
    for _ in range(1000):
        for name in ("sum", "prod", "argmax"):
            call(name, a)
    assert SANITIZED or resident_pages() - pages < SLACK_PAGES


def test_warnings_are_no_leak():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(1000):
            gpureduce.mean(EMPTY)
        before = sys.getrefcount(EMPTY), sys.getrefcount(EMPTY.dtype)
        for _ in range(1000):
            gpureduce.mean(EMPTY)
        assert (sys.getrefcount(EMPTY), sys.getrefcount(EMPTY.dtype)) == before
