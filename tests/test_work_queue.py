"""Sums of ragged segments: every way to share them out gives what NumPy's reduceat gives."""

import numpy as np
import pytest
from arrays import draw, generator
from table import assert_bits

import gpureduce
from gpureduce import _core, work_queue

COUNT, WHY = _core.device_count()
gpu = pytest.mark.gpu
needs_gpu = pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
each_kernel = pytest.mark.parametrize("kernel", work_queue.KERNELS)
each_dtype = pytest.mark.parametrize("dtype", ["int32", "int64"])


def ragged(rng, n):
    """(label, offsets) into n elements."""
    yield "none", np.empty(0, int)
    yield "one", np.zeros(1, int)
    yield "the last element", np.array([n - 1])
    yield "every element", np.arange(n)
    yield "increasing", np.sort(rng.integers(0, n, 500))
    yield "any order", rng.integers(0, n, 500)
    yield "backwards", np.arange(n - 1, -1, -7)
    yield "all the same", np.full(300, n // 2)
    yield "few", np.array([0, n // 3, n // 3, min(5, n - 1), n - 1, 0])
    lengths = np.minimum(rng.zipf(1.3, 5000), n)
    starts = np.cumsum(np.sort(lengths)[::-1]) - lengths.max()
    yield "long ones together", starts[(starts >= 0) & (starts < n)]


def compare(a, offsets, kernel, label):
    want = np.add.reduceat(a, offsets, dtype=np.int64) if len(offsets) else np.empty(0, np.int64)
    assert_bits(work_queue.segment_sums(a, offsets, kernel=kernel), want, f"{label}, {kernel}")


@gpu
@needs_gpu
@each_kernel
@each_dtype
def test_segments_are_reduceats(dtype, kernel):
    rng = generator("segments", dtype)
    for n in (1, 2, 255, 256, 257, 1000, 70_001, 3_000_001):
        a = draw(rng, np.dtype(dtype), n)
        for label, offsets in ragged(rng, n):
            if label != "every element" or n < 10**6:
                compare(a, offsets, kernel, f"{n} elements, {label}")


@gpu
@needs_gpu
@each_kernel
def test_any_layout(kernel):
    a = draw(generator("laid"), np.dtype("i4"), 10_001)
    offsets = np.sort(generator("laid").integers(0, 3000, 100))
    for label, given in (
        ("strided", a[::3]),
        ("reversed", a[::-1]),
        ("byte-swapped", a.astype(">i4")),
    ):
        compare(given, offsets, kernel, label)
    compare(a, offsets.astype("u2"), kernel, "short offsets")
    compare(a, offsets[::-1], kernel, "reversed offsets")
    kept = a.copy()
    compare(a.tolist(), offsets.tolist(), kernel, "lists")
    assert (a == kept).all()


@pytest.mark.sanitized
@gpu
@needs_gpu
@each_kernel
@each_dtype
def test_the_kernels_under_the_sanitizers(dtype, kernel):
    rng = generator("sanitized segments")
    a = draw(rng, np.dtype(dtype), 20_011)
    for label, offsets in ragged(rng, len(a)):
        if label != "every element":
            compare(a, offsets, kernel, label)


@gpu
@needs_gpu
@each_kernel
def test_times_are_positive(kernel):
    times = work_queue.segment_times(np.arange(100_000), [0, 5, 70], kernel=kernel, repeats=3)
    assert len(times) == 3 and min(times) > 0


# --- without a device -----------------------------------------------------------------------------

A = np.arange(10)


@pytest.mark.parametrize("run", [work_queue.segment_sums, work_queue.segment_times])
def test_wrong_arguments_are_refused(run):
    for offsets in ([-1], [0, 10], [3, 2**62]):
        with pytest.raises(IndexError, match="0 to 9 are elements"):
            run(A, offsets)
    with pytest.raises(ValueError, match=r"kernel 'queue' is none of .*work_queue"):
        run(A, [0], kernel="queue")
    with pytest.raises(ValueError, match="one dimension"):
        run(A.reshape(2, 5), [0])
    with pytest.raises(ValueError, match="one dimension"):
        run(A, 0)
    for dtype in ("f8", "u4", "i2", "?"):
        with pytest.raises(TypeError, match="int32, int64"):
            run(A.astype(dtype), [0])
    with pytest.raises(TypeError, match="integers"):
        run(A, [0.5])


def test_repeats_are_counted_from_one():
    with pytest.raises(ValueError, match="1 and up"):
        work_queue.segment_times(A, [0], repeats=0)


@pytest.mark.skipif(COUNT > 0, reason="there is a GPU")
@each_kernel
def test_without_a_device_it_says_what_is_missing(kernel):
    with pytest.raises(gpureduce.DeviceError, match="driver") as caught:
        work_queue.segment_sums(A, [0, 5], kernel=kernel)
    assert str(caught.value) == WHY and "device=" not in WHY, "there is none of the CPU"
