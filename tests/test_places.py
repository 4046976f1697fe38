"""argmin and argmax on the CPU, whose vectors remember the first row of them that had their best:
the first of what ties, in whatever lane and row it lies, is NumPy's, on every instruction set."""

import numpy as np
import pytest
from arrays import generator
from isa import ISAS, run_on

import gpureduce

NUMBERS = [np.dtype(code) for code in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")]
DTYPES = [np.dtype("?"), *NUMBERS]
VECTORS = (16, 32, 64)  # bytes, on the three instruction sets
CACHE_LINE = 64
ROW = 8  # vectors
BLOCK = 32768  # bytes


def lengths(dtype):
    """About the edges of vectors, of rows of them and of blocks."""
    widths = [vector // dtype.itemsize for vector in VECTORS]
    rows = [width * ROW * k for width in widths for k in (1, 2, 4, 5)]
    edges = [*widths, *rows, BLOCK // dtype.itemsize, BLOCK // dtype.itemsize + rows[-1]]
    return sorted({1, 2, 3, 33, *(edge + d for edge in edges for d in (-1, 0, 1))} - {0})


def places(rng, n):
    """All, or those of some lanes and rows."""
    if n <= 300:
        return np.arange(n)
    return np.unique([*range(40), *rng.integers(0, n, 80), *range(n - 40, n)])


def check(name, a, what):
    """The rows of a matrix, and some by themselves."""
    function, want = getattr(gpureduce, name), getattr(np, name)(a, axis=1)
    wrong = np.flatnonzero(function(a, axis=1, device="cpu") != want)
    assert not len(wrong), f"{name}, {a.dtype}, {what}, {a.shape}: rows {wrong[:5]}"
    for row in range(0, len(a), 1 if a.shape[1] < 64 else 7):
        assert function(a[row], device="cpu") == want[row], f"{name}, {a.dtype}, {what}, {row}"


def truths(rng, shape, at):
    """Of booleans; what is not zero is true."""
    alone, each = np.zeros(shape, np.uint8), np.arange(len(at))
    alone[each, at] = (1, 2, 128, 255)[shape[1] % 4]
    again = alone.copy()
    again[each, rng.integers(at, shape[1])] = alone.max()
    for what, a in (("the only one", alone), ("the first one", again), ("none", 0 * alone)):
        yield f"{what} that is true", a.view(bool)
        yield f"{what} that is false", ~a.astype(bool)
    yield "rare ones", rng.random(shape) < 3 / shape[1]


def matrices(dtype, n):
    """(what it is, matrix of rows of n)."""
    rng = generator("places", dtype, n)
    at = places(rng, n)
    shape, each = (len(at), n), np.arange(len(at))
    if dtype.kind == "b":
        yield from truths(rng, shape, at)
        return
    alone = np.ones(shape, dtype)
    alone[each, at] = 2
    yield "the greatest at each place", alone
    alone[each, at] = 0
    yield "the least at each place", alone
    later = alone.copy()
    later[each, rng.integers(at, n)] = 0
    yield "again at a later place", later
    yield "few values", rng.integers(0, 3, shape).astype(dtype)
    yield "rare ones", (rng.random(shape) < 3 / n).astype(dtype)
    if dtype.kind == "f":
        yield "zeros", rng.choice(np.array([0.0, -0.0], dtype), shape)
        infinite = rng.choice(np.array([np.inf, -np.inf, 1, 0], dtype), shape)
        yield "infinities", infinite
        infinite[each, at] = np.nan
        infinite[each, rng.integers(at, n)] = np.nan
        yield "the first NaN at each place", infinite
        yield "no value is better", np.full(shape, rng.choice([np.inf, -np.inf, np.nan]), dtype)
    else:
        info = np.iinfo(dtype)
        yield "the ends of the range", rng.choice(np.array([info.min, info.max], dtype), shape)
        yield "the least everywhere", np.full(shape, info.min, dtype)


def check_all():
    for dtype in DTYPES:
        for n in lengths(dtype):
            for what, a in matrices(dtype, n):
                check("argmax", a, what)
                check("argmin", a, what)


@pytest.mark.parametrize("isa", ISAS)
def test_the_first_place(isa):
    used, _ = run_on(isa, "import test_places; test_places.check_all()")
    if used != isa:
        pytest.skip(f"this processor has no {isa}: {used} was used, which has a test of its own")


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_every_alignment(dtype):
    rng = generator("alignment", dtype)
    room = np.zeros(BLOCK // dtype.itemsize + 4 * CACHE_LINE, dtype)
    aligned = -room.ctypes.data % CACHE_LINE // dtype.itemsize
    for n in (n for n in lengths(dtype) if n > 30):
        for offset in range(CACHE_LINE // dtype.itemsize):
            a = room[aligned + offset :][:n]
            room[:] = 3  # beside it, what would be better
            a[:] = rng.integers(1, 3, len(a))
            assert gpureduce.argmax(a, device="cpu") == np.argmax(a), (n, offset)
            room[:] = 0
            a[:] = rng.random(len(a)) > 2 / n
            a += 1
            assert gpureduce.argmin(a, device="cpu") == np.argmin(a), (n, offset)


def test_booleans_of_every_alignment():
    room = np.zeros(700, bool)
    for n in (7, 8, 9, 255, 256, 257, 600):
        for offset in range(CACHE_LINE):
            a = room[offset:][:n]
            for at in (0, 1, n // 2, n - 1):
                room[:] = True  # beside it, what would be better
                a[:] = np.arange(n) == at
                assert gpureduce.argmax(a, device="cpu") == at, (n, offset)
                room[:] = ~room
                assert gpureduce.argmin(a, device="cpu") == at, (n, offset)
