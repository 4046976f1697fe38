"""The one generator of nasty arrays. Every draw comes from one printed seed."""

import os
from itertools import chain

import numpy as np

SEED = int(os.environ.get("GPUREDUCE_TEST_SEED", "20240229"))

# Powers of two, the edges of vectors, batches, tree blocks and packing blocks.
SMALL = sorted({0, 1, 2, 3, 5, *(2**k + d for k in range(2, 13) for d in (-1, 0, 1))})
EDGES = [2**k + d for k in (15, 16) for d in (-1, 0, 1)]
MIDDLE = 3 * 1024 + 17  # several batches, and a tail
THREADED_BYTES = 1_200_000  # beyond the 512 KiB that are cut in parts, and no round number


def generator(*key):
    """A random generator of its own for each use, so that tests may run in any order."""
    return np.random.default_rng([SEED, *(ord(c) for c in "|".join(map(str, key)))])


def is_float(dtype):
    return dtype.kind == "f" or dtype.name == "bfloat16"


def real_of(dtype):
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def random_bits(rng, dtype, n):
    """Any bytes at all: every NaN, every exponent, wrapping integers, NaT, strange booleans."""
    return np.frombuffer(rng.bytes(n * dtype.itemsize), dtype).copy()


def finite_bits(rng, dtype, n):
    """Random bits with the whole range of exponents but no infinity or NaN; floats only."""
    real = real_of(dtype)
    words = random_bits(rng, np.dtype(f"u{real.itemsize}"), n * dtype.itemsize // real.itemsize)
    infinity = np.array(np.inf, real).view(words.dtype)
    words[(words & infinity) == infinity] &= ~(infinity & -infinity)
    return words.view(dtype)


def draw(rng, dtype, n):
    """Ordinary values."""
    if dtype.kind == "c":
        real = real_of(dtype)
        return np.stack([draw(rng, real, n), draw(rng, real, n)], axis=-1).view(dtype)[..., 0]
    if is_float(dtype):
        return rng.standard_normal(n).astype(dtype)
    if dtype.kind in "mM":
        return rng.integers(-(10**12), 10**12, n).view(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, n).astype(bool)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)


def near_one(rng, dtype, n):
    """Values whose product neither overflows nor vanishes."""
    return (1 + draw(rng, dtype, n) * dtype.type(0.01)).astype(dtype)


def matrices(rng, dtype, n):
    """2 x 2 matrices: of any int64, or of float64 whose products are exact in any order."""
    if dtype.kind == "i":
        return draw(rng, dtype, n * 4).reshape(n, 2, 2)
    swap, sheared = [[0, 1], [1, 0]], [[1, 1], [0, 1]]
    made = np.array([np.eye(2), swap])[rng.integers(0, 2, n)]
    made[rng.integers(0, max(n, 1), min(n, 30))] = sheared  # entries grow to 2^30 at most
    return made


def subnormals(rng, dtype, n):
    words = rng.integers(0, 8, n * (2 if dtype.kind == "c" else 1))
    real = real_of(dtype)
    unsigned = np.dtype(f"u{real.itemsize}")
    sign = unsigned.type(1 << (8 * real.itemsize - 1))
    words = words.astype(unsigned)
    return np.where(rng.integers(0, 2, len(words)) == 1, words | sign, words).view(dtype)


def float_values(rng, dtype):
    """(label, array) of what is hard for one floating-point dtype."""
    real = real_of(dtype)
    unsigned = np.dtype(f"u{real.itemsize}")
    parts = dtype.itemsize // real.itemsize

    def made(values):
        flat = np.asarray(values, np.float64).astype(real)
        return np.repeat(flat, parts).view(dtype) if parts > 1 else flat

    def nan(payload, negative):
        sign = negative << (8 * real.itemsize - 1)
        return int(np.array(np.inf, real).view(unsigned)) | payload | sign

    finite = np.abs(finite_bits(rng, real, 20_000).astype(np.float64))
    top, least = finite.max(), float(finite[finite > 0].min())
    precision = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[real.name]
    n = MIDDLE

    for where in (0, 1, 700, n - 1):
        a = draw(rng, dtype, n)
        a.view(unsigned)[where * parts] = nan(1, where % 2)  # signalling, smallest payload
        yield f"NaN with a payload at {where}", a
        a = draw(rng, dtype, n)
        a.view(real)[where * parts] = np.inf
        yield f"inf at {where}", a
        a = a.copy()  # what was yielded may be kept
        a.view(real)[(n - 1 - where) * parts] = -np.inf
        yield f"inf and -inf at {where}", a
    yield "inf then NaN", made([1, np.inf, np.nan, -np.inf])
    yield "-inf alone", made([-np.inf])
    yield "-inf and more", made([-np.inf, 1, 2])
    yield "random bits, NaN and all", random_bits(rng, dtype, n)
    yield "random bits, finite", finite_bits(rng, dtype, n)
    yield "random bits, finite, few", finite_bits(rng, dtype, 11)
    for count in (1, 2, 33, n):
        yield f"-0.0 {count} times", made([-0.0] * count)
    yield "mixed zeros", made(rng.choice([0.0, -0.0], n))
    yield "-0.0 and then 0.0", made([-0.0] * (n - 1) + [0.0])
    yield "0.0 and then -0.0", made([0.0] + [-0.0] * (n - 1))
    yield "a number among -0.0", made([-0.0] * 900 + [1.0] + [-0.0] * 900)
    yield "x and -x", made([1.5, -1.5])
    yield "subnormals", subnormals(rng, dtype, n)
    yield "smallest subnormal", made([least])
    yield "subnormals and ones", np.concatenate([subnormals(rng, dtype, n), made([1, -1] * 50)])
    yield "cancellation", made([min(top / 4, 1e30), 1, -min(top / 4, 1e30)] * 999)
    yield "huge pairs", made([top, top, -top])
    yield "huge pairs, many", made([top, top, -top, -top, 1] * 600)
    yield "overflow", made([top, top])
    yield "overflow by a tie", made([top, top * 2.0 ** -(precision + 1)])
    yield "huge, then inf", made([top] * 5000 + [np.inf])
    yield "huge, then -inf among zeros", made([top] * 5000 + [0.0] * 3000 + [-np.inf])
    yield "huge, then NaN", made([top] * 5000 + [np.nan] + [top] * 77)
    tie = 2.0**-precision
    for label, rest in (("", 0), (" and a bit", least), (" less a bit", -least)):
        yield f"a tie at 1{label}", made([1, tie, rest])
        yield f"a tie at 1 + ulp{label}", made([1, 2 * tie, tie, rest])
        yield f"a tie at -1{label}", made([-1, -tie, rest])
    yield "first much larger", made([top / 4, *rng.standard_normal(n)])
    yield "first much smaller", made([least, *rng.standard_normal(n)])
    scale = np.linspace(np.log2(least) + 2, np.log2(top) - 2, n)
    yield "growing", made(2.0**scale * rng.standard_normal(n) / 8)
    yield "shrinking", made(2.0 ** scale[::-1] * rng.standard_normal(n) / 8)
    yield (
        "in steps",
        made(np.repeat(2.0 ** scale[::40], 60) * rng.choice([-1, 1], 60 * len(scale[::40]))),
    )
    with np.errstate(over="ignore"):
        wide = np.clip(rng.lognormal(0, 40, n), least, top / n) * rng.choice([-1, 1], n)
    yield "lognormal", made(wide)
    yield "near one", near_one(rng, dtype, n)
    yield "near one, few", near_one(rng, dtype, 45)
    yield "constant", made([0.1] * n)
    if dtype == np.float64:
        tiny = np.finfo(dtype).tiny
        yield "near DBL_MIN", rng.standard_normal(n) * tiny * 4
        yield "near DBL_MAX", rng.uniform(0.5, 1, n) * top * rng.choice([-1, 1], n)


def complex_values(rng, dtype):
    """What only complex numbers can be: parts of different kinds."""
    n = MIDDLE
    signs = rng.choice([0.0, -0.0], (n, 2))
    some = rng.choice([0.0, -0.0, 1.0, -1.0], (n, 2))
    special = rng.choice([0.0, -0.0, 1.0, np.inf, -np.inf], (n, 2))
    imaginary = np.stack([signs[:, 0], rng.standard_normal(n)], axis=-1)
    yield "real parts zero", imaginary.astype(real_of(dtype)).view(dtype)[:, 0]
    for label, pairs in (("zeros of any sign", signs), ("ties", some), ("infinite parts", special)):
        yield label, pairs.astype(real_of(dtype)).view(dtype)[:, 0]
    for nan in (complex(np.nan, 1), complex(1, np.nan), complex(np.inf, np.nan)):
        a = draw(rng, dtype, n)
        a[n // 2] = nan
        yield f"{nan} in the middle", a


def integer_values(rng, dtype):
    info = np.iinfo(dtype)
    n = MIDDLE
    yield "all least", np.full(n, info.min, dtype)
    yield "all greatest", np.full(n, info.max, dtype)
    yield "least and greatest", rng.choice(np.array([info.min, info.max], dtype), n)
    yield "all zero", np.zeros(n, dtype)
    yield "a single one", np.eye(1, n, n // 2, dtype)[0]
    yield "odd, whose product never ends", draw(rng, dtype, n) | dtype.type(1)
    yield "ties", rng.integers(0, 3, n).astype(dtype)
    for where in (0, 2047, 2048, n - 1):
        a = np.ones(n, dtype)
        a[where] = info.max
        yield f"greatest at {where}", a
        a = a.copy()
        a[where] = info.min
        yield f"least at {where}", a


def bool_values(rng, dtype):
    n = MIDDLE
    yield "bytes other than 0 and 1", random_bits(rng, dtype, n)
    yield "all byte 2", np.full(n, 2, np.uint8).view(bool)
    yield "all false", np.zeros(n, bool)
    yield "all true", np.ones(n, bool)
    for where in (0, 2048, n - 1):
        yield f"one true at {where}", np.arange(n) == where
        yield f"one false at {where}", np.arange(n) != where


def time_values(rng, dtype):
    n = 5 * MIDDLE
    yield "any ticks", random_bits(rng, dtype, n)
    most = np.iinfo(np.int64).max
    for where in (0, 1, 4097, n - 1):
        a = draw(rng, dtype, n)
        a[where] = "NaT"
        yield f"NaT at {where}", a
        b = a.copy()
        b[n // 3] = np.int64(most).view(dtype)
        yield f"the greatest, and NaT at {where}", b
        b = b.copy()
        b[n // 3] = np.int64(-most).view(dtype)
        yield f"the least, and NaT at {where}", b
    yield "all NaT", np.full(9, "NaT", dtype)
    yield "zeros", np.zeros(n, np.int64).view(dtype)


def values(dtype):
    rng = generator("values", dtype)
    if dtype.kind == "c":
        return chain(float_values(rng, dtype), complex_values(rng, dtype))
    if is_float(dtype):
        return float_values(rng, dtype)
    if dtype.kind in "mM":
        return time_values(rng, dtype)
    return bool_values(rng, dtype) if dtype.kind == "b" else integer_values(rng, dtype)


def layouts(a):
    """(label, array) of the same kind of data, laid otherwise. `a` is one-dimensional."""
    n = len(a)
    raw = bytearray(a.nbytes + 1)
    unaligned = np.frombuffer(raw, np.uint8)[1:].view(a.dtype)
    unaligned[:] = a
    read_only = a.copy()
    read_only.flags.writeable = False
    cube = a[: n // 60 * 60].reshape(3, -1, 20)
    yield "contiguous", a
    yield "strided", a[::3]
    yield "reversed", a[::-1]
    yield "reversed and strided", a[::-7]
    yield "moved by one", a[1:]
    yield "unaligned", unaligned
    yield "unaligned and reversed", unaligned[::-2]
    yield "byte-swapped", a.astype(a.dtype.newbyteorder())
    yield "byte-swapped and strided", a.astype(a.dtype.newbyteorder())[::-3]
    yield "read-only", read_only
    yield "Fortran order", np.asfortranarray(cube)
    yield "transposed", cube.transpose(2, 0, 1)
    yield "part of a cube", cube[:, ::-2, 3:-4]
    yield "transposed part of a cube", cube[::-1, 1:, ::5].T
    yield "broadcast from one", np.broadcast_to(a[:1], (7, 300))
    yield "broadcast in the middle", np.broadcast_to(a[:33].reshape(3, 1, 11), (3, 5, 11))
    yield "broadcast at the end", np.broadcast_to(a[:100, None], (100, 3))
    yield "single element of many dimensions", a[:1].reshape((1,) * 32)
    yield "many dimensions", a[: 2**11].reshape((2,) * 11).transpose(range(10, -1, -1))
    yield "overlapping", np.lib.stride_tricks.sliding_window_view(a[:300], 7)
    yield "0-d", a[:1].reshape(())
    yield "empty (0, 3)", np.empty((0, 3), a.dtype)
    yield "empty (3, 0)", np.empty((3, 0), a.dtype)


def cases(dtype):
    """(label, array) of everything; empty arrays among them."""
    rng = generator("cases", dtype)
    pool = draw(rng, dtype, EDGES[-1])
    for n in SMALL:
        yield f"{n} elements", pool[:n]
    for n in EDGES:
        yield f"{n} elements", pool[:n]
    yield from values(dtype)
    for label, a in layouts(draw(rng, dtype, 4 * MIDDLE)):
        yield f"layout: {label}", a
    large = draw(rng, dtype, THREADED_BYTES // dtype.itemsize + 1)
    yield "large", large
    yield "large and strided", large[::-2]
    yield "large and transposed", large[: len(large) // 1000 * 1000].reshape(1000, -1).T
    if is_float(dtype) or dtype.kind == "c":
        yield "large, random bits", finite_bits(rng, dtype, len(large) // 2)
