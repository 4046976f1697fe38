"""axis, keepdims, out, initial, where, ddof, mean, segments: NumPy's shapes, types, warnings and
errors; and every element of a result is what the same numbers give alone, in every bit. On the CPU
and, where there is one, on a device."""

import ctypes
import functools
import inspect
import itertools
import mmap
import warnings

import numpy as np
import pytest
from arrays import draw, finite_bits, generator, is_float, near_one, random_bits, real_of
from reference import REFERENCE, nan_prod, prod_of, std_of, var_of
from table import (
    OPS,
    ROWS,
    assert_bits,
    bits,
    call,
    dtype_names,
    numpy_dtype,
    numpys,
    rows,
    show,
)

import gpureduce
from gpureduce import _core

COUNT, WHY = _core.device_count()
ON_DEVICE = [pytest.mark.gpu, pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")]

FUNCTIONS = [name for name, op in OPS.items() if op["function"]]
KERNELS = {op["name"] for op in gpureduce.operators() if op["takes_kernel"]}
NUMPYS = [name for name in FUNCTIONS if hasattr(np, name)]
SPREADS = [name for name in FUNCTIONS if OPS[name]["spread"]]
TAKE_WHERE = [name for name in FUNCTIONS if OPS[name]["takes_where"]]
POSITIONS = [name for name in FUNCTIONS if OPS[name]["position"]]
PLAIN = [name for name in dtype_names() if name != "bfloat16"]  # NumPy's own
SHAPE = (3, 5, 4)
AXES = [None, 0, 1, -1, (0,), (0, 2), (-1, 1), (0, 1, 2), ()]


def axes_of(op):
    return [axis for axis in AXES if not (OPS[op]["position"] and isinstance(axis, tuple))]


@pytest.fixture(autouse=True, params=["cpu", pytest.param("cuda", marks=ON_DEVICE)])
def device(request, monkeypatch):
    """Every function of the package works there, unless it is told otherwise."""
    for name in (*FUNCTIONS, "reduce", "reduceat", "segments"):
        function = getattr(gpureduce, name)
        there = functools.partial(function, device=request.param)
        monkeypatch.setattr(gpureduce, name, functools.update_wrapper(there, function))
    return request.param


# --- what is alone and what is not ----------------------------------------------------------------


def alone(a, axis):
    """(index of the result, the elements of this output in C order)."""
    axes = range(a.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = sorted(d % a.ndim for d in axes)
    kept = [d for d in range(a.ndim) if d not in axes]
    for index in np.ndindex(*(a.shape[d] for d in kept)):
        place = [slice(None)] * a.ndim
        for d, i in zip(kept, index, strict=True):
            place[d] = i
        yield index, np.array(a[tuple(place)], a.dtype.newbyteorder("="), order="C")


def at(result, index):
    """One output of a result: two results of one are compared as one array."""
    if isinstance(result, tuple):
        return np.array([np.asarray(part)[index] for part in result])
    return np.asarray(result)[index]


def layouts(a):
    """(label, array of three dimensions) of the same elements, or some of them."""
    flat = a.reshape(-1)
    raw = bytearray(a.nbytes + 1)
    unaligned = np.frombuffer(raw, np.uint8)[1:].view(a.dtype).reshape(a.shape)
    unaligned[:] = a
    room = np.empty((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
    room[..., ::2] = a
    yield "C", a
    yield "F", np.asfortranarray(a)
    yield "transposed", a.transpose(2, 0, 1)
    yield "transposed otherwise", a.transpose(1, 0, 2)
    yield "strided", room[..., ::2]
    yield "sliced", a[1:, ::2, 1:]
    yield "reversed", a[::-1, ::-1, ::-1]
    yield "reversed in the middle", a[:, ::-1]
    yield "byte-swapped", a.astype(a.dtype.newbyteorder())
    yield "unaligned", unaligned
    yield "broadcast", np.broadcast_to(flat[:4], SHAPE)
    yield "broadcast at the end", np.broadcast_to(flat[:5, None], SHAPE)
    yield "broadcast from one", np.broadcast_to(flat[0], SHAPE)
    yield "overlapping", np.lib.stride_tricks.sliding_window_view(flat[:12], (7,)).reshape(2, 3, 7)


def elements(dtype, *key):
    """Some of everything: ordinary numbers, any bits, NaN, zeros of both signs."""
    rng = generator("axes", dtype, *key)
    n = int(np.prod(SHAPE))
    a = draw(rng, dtype, n)
    odd = rng.integers(0, 12, n)
    a[odd == 0] = random_bits(rng, dtype, n)[odd == 0]
    a[odd < 3] = np.zeros((), dtype)
    if is_float(dtype) or dtype.kind == "c":
        a[odd == 1] = -a[odd == 1]
        a[odd == 3] = np.nan
        a[odd == 4] = finite_bits(rng, dtype, n)[odd == 4]
    return a.reshape(SHAPE)


@pytest.mark.parametrize(("op", "dtype", "result", "law"), ROWS, ids=lambda x: x)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_each_output_is_what_it_is_alone(op, dtype, result, law):
    dtype, result = numpy_dtype(dtype), numpy_dtype(result)
    rng = generator("which", op, dtype)
    wrong = []
    for label, a in layouts(elements(dtype)):
        choices = axes_of(op)
        for choice in rng.integers(0, len(choices), 3):
            axis = choices[choice]
            try:
                got = call(op, a, axis=axis)
            except ValueError as error:
                assert "All-NaN slice" in str(error)  # it may be, and NumPy says so too
                continue
            outputs = list(alone(a, axis))
            for which in rng.integers(0, len(outputs), 5):
                index, x = outputs[which]
                want = REFERENCE[op](x, result)
                if bits(at(got, index)) != bits(want):
                    wrong.append(
                        f"{label}, axis {axis}, {index}: got {show(at(got, index))}, "
                        f"want {show(want)} of {x!r}"
                    )
    assert not wrong, "\n".join(wrong)


LONG = [(1, 3000), (3000, 1), (2, 5000), (5000, 2), (7, 1111), (1111, 7), (64, 64), (300, 301)]
LONG += [(3, 40_000), (40_000, 3), (5, 33, 65), (1, 7, 900)]
DEPTH = [row for row in ROWS if row[1] in ("float32", "float64", "complex64", "int8", "bfloat16")]


def hard_matrix(op, dtype, shape):
    rng = generator("long", op, dtype, shape)
    n = int(np.prod(shape))
    if op in ("prod", "nanprod") and (is_float(dtype) or dtype.kind == "c"):
        return near_one(rng, dtype, n).reshape(shape)
    a = draw(rng, dtype, n)
    if is_float(dtype) or dtype.kind == "c":
        some = rng.integers(0, n, 40)
        a[some] = finite_bits(rng, dtype, 40)
        a[rng.integers(0, n, 3)] = np.nan
        a[rng.integers(0, n, 2)] = np.inf
        a[: n // 5] = a[0]
        a[n // 2 : n // 2 + shape[-1] + 1] = -0.0
    return a.reshape(shape)


@pytest.mark.parametrize("shape", LONG, ids=str)
@pytest.mark.parametrize(("op", "dtype", "result", "law"), DEPTH, ids=lambda x: x)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_long_rows_and_columns(op, dtype, result, law, shape):
    """Against whole arrays of the same numbers, whose bits test_bits.py knows."""
    a = hard_matrix(op, numpy_dtype(dtype), shape)
    rng = generator("outputs", op, dtype, shape)
    for label, b in (("C", a), ("F", np.asfortranarray(a)), ("strided", a[..., ::-2])):
        for axis in range(a.ndim):
            if op.startswith("nanarg") and np.isnan(b.astype("D")).all(axis).any():
                with pytest.raises(ValueError, match="All-NaN slice"):
                    call(op, b, axis=axis)
                continue
            got = call(op, b, axis=axis)
            outputs = int(np.prod(b.shape)) // b.shape[axis]
            first = np.arange(outputs).reshape([n for d, n in enumerate(b.shape) if d != axis])
            for which in {0, outputs - 1, *rng.integers(0, outputs, 12).tolist()}:
                index = tuple(np.argwhere(first == which)[0])
                x = np.moveaxis(b, axis, -1)[index]
                want = at(call(op, x), ())
                assert_bits(at(got, index), want, f"{label}, axis {axis}, {index}")


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float32"])
def test_what_no_cache_holds(dtype):
    """Tall columns, in wider strips of small numbers, and every second number of all."""
    width = (20 << 20) // 4500 // np.dtype(dtype).itemsize
    a = generator("far", dtype).integers(0, 100, (4500, width)).astype(dtype)
    a[:, 7] = 0
    turned = np.ascontiguousarray(a.T)
    every, second = a.reshape(-1)[1::2], a.reshape(-1)[1::2].copy()
    for function in ("sum", "mean", "var", "max", "argmax", "any", "count_nonzero"):
        got, want = call(function, a, axis=0), call(function, turned, axis=1)
        assert bits(got) == bits(want), function
        assert bits(call(function, every)) == bits(call(function, second)), function
    if dtype != "float32":
        assert bits(call("prod", a, axis=0)) == bits(call("prod", turned, axis=1))


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(40, 2050), (40, 5000), (700, 8300), (90, 1031)])
def test_lines_that_a_mask_leaves_out(dtype, shape):
    """Whole lines, parts of some, and all of an output: each as what counts of it by itself."""
    rng = generator("left out", dtype, *shape)
    a = (rng.standard_normal(shape) * 40).astype(dtype)
    where = np.repeat(rng.random((shape[0], 1)) < 0.5, shape[1], axis=1)
    where[5] = rng.random(shape[1]) < 0.5
    where[6, :100] ^= True
    where[:, 9] = False
    wide = np.broadcast_to(where[:, :1], shape)
    for threads, mask, axis in itertools.product((1, 2), (where, wide), (0, 1)):
        gpureduce.set_num_threads(threads)
        for op in ("sum", "mean", "var", "any"):
            got = call(op, a, axis=axis, where=mask)
            for o in {0, 5, 6, 9, *rng.integers(0, shape[1 - axis], 8).tolist()}:
                o = min(o, shape[1 - axis] - 1)
                x = np.take(a, o, 1 - axis)[np.take(mask, o, 1 - axis)]
                assert_bits(
                    at(got, (o,)), at(call(op, x), ()), f"{op}, axis {axis}, {o}, {threads}"
                )


@pytest.mark.parametrize("shape", [(150, 1600), (1600, 150), (6, 1008), (70, 70)])
def test_signalling_nan_stays_in_its_output(shape):
    quiet = generator("signalling", "float64").standard_normal(shape)
    quiet[-1, 5::16] *= 1e30  # far above the others, which makes sums begin again
    quiet[:, -1] *= 1e20
    quiet[0] *= 1e25
    words = quiet.copy().view(np.uint64)
    words[-1, 2:512:16] = words[0, -1] = 0x7FF0000000000001
    quiet[-1, 2:512:16] = quiet[0, -1] = np.nan
    gpureduce.set_num_threads(1)  # outputs that follow each other are one's
    for axis, op in itertools.product((0, 1), ("sum", "mean", "var", "max")):
        want = call(op, quiet, axis=axis)
        assert_bits(call(op, words.view(np.float64), axis=axis), want, f"{op}, axis {axis}")
        for o in np.flatnonzero(~np.isnan(want)):
            assert_bits(want[o], call(op, np.take(quiet, o, 1 - axis).copy()), (op, axis, o))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_one_element_that_may_be_nan(dtype):
    a = draw(generator("single", dtype), numpy_dtype(dtype), 1003)
    a[::7], a[1::7], a[2::7] = np.nan, -0.0, np.inf
    for b in (a, a[1:], a[::2], a[:5]):  # whole packets and not, of other places in them
        want = np.where(np.isnan(b), b.dtype.type(0), b)
        assert_bits(gpureduce.nansum(b[:, None], axis=1), want, b.shape)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "int32", "bool"])
@pytest.mark.parametrize("op", ["sum", "mean", "var", "prod", "max", "argmax", "any"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_elements_that_lie_apart(op, dtype):
    """As those that lie one after the other, forwards and backwards, converted or not."""
    a = hard_matrix(op, numpy_dtype(dtype), (310, 301))
    options = [{}, {"dtype": "f8"}] if op in ("sum", "mean") and dtype != "complex64" else [{}]
    steps = [(1, 2), (1, 3), (1, -1), (2, -2), (-1, -1), (-3, 1), (1, 1)]
    for (down, right), axis, extra in itertools.product(steps, (0, 1, None), options):
        b = a[::down, ::right]
        near = np.ascontiguousarray(b).astype(extra.get("dtype", b.dtype))
        got, want = call(op, b, axis=axis, **extra), call(op, near, axis=axis)
        assert_bits(got, want, f"steps {down} and {right}, axis {axis}, {extra}")


def at_the_end(size, dtype):
    """So many elements, behind which nothing may be read."""
    page, each = mmap.PAGESIZE, np.dtype(dtype).itemsize
    room = -(-size * each // page) * page
    memory = mmap.mmap(-1, room + page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert not ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + room), page, 0)
    return np.frombuffer(memory, dtype, size, room - size * each)


@pytest.mark.parametrize("op, dtype", [("max", "float64"), ("argmax", "int32"), ("sum", "int32")])
def test_the_last_of_many_columns(op, dtype):
    """A block of columns may leave one alone, whose elements lie a row apart."""
    rows, columns = 4097, 512 * 512 + 1
    item = np.dtype(dtype).itemsize
    base = np.zeros(2 * rows + columns, dtype)
    a = np.lib.stride_tricks.as_strided(base, (rows, columns), (2 * item, item))
    base[columns + 10 : columns + 12] = 9, 5  # of which the last column has the 5 alone
    got, want = (getattr(gpureduce, op)(x, axis=0) for x in (a, a[:, -3:].copy()))
    assert got[-3:].tobytes() == want.tobytes()


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int16", "float16", "float32", "float64", "complex64", "complex128"]
)
@pytest.mark.parametrize(
    "op", ["sum", "mean", "var", "prod", "max", "nanmin", "argmax", "any", "minmax"]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_lies_between_does_not_count(op, dtype):
    """Nor is anything read behind the last element."""
    worst = np.iinfo(dtype).max if dtype.startswith("int") else True if dtype == "bool" else np.nan
    for (down, across), step in itertools.product(
        ((2, 130), (8, 70), (40, 33), (70, 257), (300, 40)), (2, 3, 4, 5, 6, 7, 9)
    ):
        a = hard_matrix(op, numpy_dtype(dtype), (down, across))
        all = at_the_end((a.size - 1) * step + 1, dtype)
        all[:] = worst
        each = step * a.itemsize
        view = np.lib.stride_tricks.as_strided(all, a.shape, (across * each, each))
        view[...] = a
        for axis, back in itertools.product((0, 1), (1, -1)):
            got, want = (call(op, b[:, ::back], axis=axis, device="cpu") for b in (view, a))
            assert_bits(got, want, f"{down} rows of {across}, step {back * step}, axis {axis}")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "int32"])
@pytest.mark.parametrize("op", ["sum", "mean", "nansum", "var", "std", "max"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_runs_of_rows_with_gaps(op, dtype):
    """As if they lay one after the other, whichever number of rows is added up at a time."""
    rng = generator("runs", op, dtype)
    options = {"dtype": "f8"} if op == "mean" and dtype == "float32" else {}
    for run, columns in itertools.product((2, 3, 5, 15, 17, 20, 90, 257), (33, 300, 1031)):
        for runs in (2, 130 // run + 1, 2 + (5000 if columns == 33 else 1000) // run):
            a = hard_matrix(op, numpy_dtype(dtype), (runs * (run + 1), columns))
            b = a.reshape(runs, run + 1, columns)[:, :run]
            gpureduce.set_num_threads(int(rng.integers(1, 3)))
            want = call(op, b.copy(), axis=(0, 1), **options)
            for c, axis in ((b, (0, 1)), (b[::-1], (0, 1)), (b.transpose(2, 0, 1), (1, 2))):
                got = call(op, c, axis=axis, **options)
                assert_bits(got, want, f"{runs} runs of {run}, {columns} columns")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int32"])
def test_windows_that_overlap(dtype):
    """Rows of rows whose steps are few elements, and columns that lie apart."""
    rng = generator("windows", dtype)
    x = draw(rng, np.dtype(dtype), 20_000)
    # In the first two a run of rows is as long as so many elements that lie side by side.
    cases = [((8, 10, 40), (10, 3, 2)), ((2, 60, 40), (60, 3, 2))]
    for _ in range(60):
        shape = int(rng.integers(2, 12)), int(rng.integers(4, 70)), int(rng.integers(30, 90))
        cases.append((shape, tuple(int(step) for step in rng.integers(1, (60, 6, 4)))))
    for shape, elements in cases:
        steps = tuple(step * x.itemsize for step in elements)
        view = np.lib.stride_tricks.as_strided(x, shape, steps)
        for op in ("sum", "max", "prod"):
            got, want = (call(op, a, axis=(0, 1), device="cpu") for a in (view, view.copy()))
            assert_bits(got, want, f"{op} {dtype} {shape} {steps}")


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_fields_of_records(dtype):
    """Steps are multiples of a part, and not of an element."""
    rng = generator("fields", dtype)
    part = np.dtype(dtype).type(0).real.dtype
    record = np.zeros((60, 9), [("z", dtype, (3,)), ("f", part)])
    z = record["z"]
    z[...] = draw(rng, np.dtype(dtype), z.size).reshape(z.shape)
    for op in ("sum", "max", "argmax", "prod", "var", "any"):
        for axis in range(3):
            got, want = (call(op, a, axis=axis, device="cpu") for a in (z, z.copy()))
            assert_bits(np.asarray(got), np.asarray(want), f"{op} {dtype} {axis}")


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("op", ["sum", "argmax", "count_nonzero"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_narrow_rows_that_lie_apart(op, dtype):
    """Of any number of bytes, which are brought together by words."""
    a = hard_matrix(op, numpy_dtype(dtype), (600, 71)).reshape(3, 200, 71)
    for columns in (*range(1, 18), 31, 32, 33, 64, 65):
        b = a[:, :, 3 : 3 + columns]
        for axis in (0, 1, (0, 1), None) if op != "argmax" else (0, 1, None):
            got, want = call(op, b, axis=axis), call(op, b.copy(), axis=axis)
            assert_bits(got, want, f"{columns} columns, axis {axis}")


FEW = ("sum", "mean", "min", "max", "argmin", "argmax", "var", "std")
NASTY = (0.0, -0.0, 1, -1, 1.5, 0.1, -3, 1e-30, 1e30, np.nan, -np.nan, np.inf, -np.inf)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 65, 257])
@pytest.mark.parametrize(
    ("op", "dtype", "result"),
    [row[:3] for row in ROWS if row[0] in FEW and row[1] in ("float32", "float64", "int16")],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_few_elements_of_many_outputs(op, dtype, result, n):
    """Some columns of zeros, NaN and infinities, of ties, of close numbers, of any range."""
    dtype, result = numpy_dtype(dtype), numpy_dtype(result)
    rng = generator("few", op, dtype, n)
    a = rng.integers(-3, 4, (n, 150)).astype(dtype)
    if is_float(dtype):
        a[:, :10] = rng.choice(NASTY, (n, 10))
        a[:, 10:20] = rng.choice(NASTY[:2], (n, 10))
        a[:, 40:120] = rng.standard_normal((n, 80))
        a[:, 120:140] = finite_bits(rng, dtype, n * 20).reshape(n, 20)
        a[:, 140:145] *= np.finfo(dtype).max / 2
        a[:, 145:] *= np.finfo(dtype).smallest_subnormal
    for got in (call(op, a, axis=0), call(op, a.T.copy(), axis=1)):
        for j in range(0, 150, 3 if n > 33 else 1):
            want = REFERENCE[op](a[:, j].copy(), result)
            assert_bits(at(got, j), want, f"column {j}: {a[:, j]!r}")


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7, 8, 9, 12, 24, 32])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_between_two_numbers(dtype, n):
    """Columns whose sums lie half between two numbers, or next to that, and some that cancel."""
    dtype = numpy_dtype(dtype)
    rng = generator("half", dtype, n)
    a = np.zeros((n, 400), dtype)
    eps = np.finfo(dtype).eps
    a[0] = 1 + eps * rng.integers(0, 9, 400)
    a[1] = eps / 2 * rng.choice((-1, 1, 3), 400)
    a[2, ::2] = eps**2 * rng.choice((-1, 0, 1), 200)
    a[3:, 100:] = eps**3 * rng.integers(-1, 2, (n - 3, 300))
    a[3:, 200:] += rng.integers(-2, 3, (n - 3, 200)).astype(dtype) * 2 ** rng.integers(0, 30)
    a[n - 1, 300:] = -a[0, 300:]
    a = rng.permuted(a, axis=0) * 2.0 ** rng.integers(-40, 40, 400).astype(dtype)
    a = a.astype(dtype)
    want = np.array([REFERENCE["sum"](x.copy(), dtype) for x in a.T], dtype)
    assert_bits(gpureduce.sum(a, axis=0), want, "columns")
    assert_bits(gpureduce.sum(a.T.copy(), axis=1), want, "rows")
    assert_bits(gpureduce.sum(np.repeat(a, 2, axis=1)[:, ::2], axis=0), want, "columns apart")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("op", ["sum", "mean", "var"])
def test_columns_wherever_they_start(op, dtype):
    """Rows of whole cache lines, of which the first begins anywhere in one."""
    dtype = numpy_dtype(dtype)
    unit = real_of(dtype).itemsize
    rng = generator("start", op, dtype)
    for n, offset in itertools.product((7, 33, 200, 300), range(0, 64, unit)):
        room = np.empty(n * 128 * dtype.itemsize + 128, np.uint8)
        start = -room.ctypes.data % 64 + offset
        a = room[start : start + n * 128 * dtype.itemsize].view(dtype).reshape(n, 128)
        a[:] = draw(rng, dtype, n * 128).reshape(n, 128)
        parts = a.view(real_of(dtype))
        far = rng.integers(0, parts.shape[1], 9)
        parts[0, far], parts[-1, far] = 2.0**100, -(2.0**100)
        width = 128 - int(rng.integers(0, 40))
        got = call(op, a[:, :width], axis=0)
        for j in {0, width - 1, *(far * unit // dtype.itemsize).tolist()} & set(range(width)):
            want = call(op, a[:, j].copy())
            assert_bits(at(got, j), want, f"{n} rows, {offset} bytes, column {j} of {width}")


@pytest.mark.parametrize("n", [2, 9, 64, 65, 127, 128, 129, 300, 1000, 2049, 4096])
@pytest.mark.parametrize("op", ["var", "std"])
def test_spreads_far_from_zero(op, n):
    """Of numbers that are close to each other and far from zero, and of others that are not."""
    dtype = np.dtype("float64")
    rng = generator("far", op, n)
    a = rng.standard_normal((n, 67))
    a[:, :60] += 10.0 ** (np.arange(60) // 4)
    a[:, 60] = 1e300 * a[:, 61]
    a[:, 62] = 1e-300 * a[:, 61]
    a[:, 63] = 0.1
    a[n // 2, 64] = 1e18
    a[:, 65] = rng.integers(0, 2, n)
    a[:, 66] = 1 + np.finfo(dtype).eps * rng.integers(0, 2, n)
    for ddof in (0, 1):
        want = [REFERENCE[op](x.copy(), dtype, ddof) for x in a.T]
        ours = getattr(gpureduce, op)
        for got in (ours(a, axis=0, ddof=ddof), ours(a.T.copy(), axis=1, ddof=ddof)):
            assert_bits(got, np.array(want), f"ddof {ddof}")


@pytest.mark.parametrize("n", [33, 63, 64, 100, 1000, 1024, 1025, 3333, 4096, 5000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_whose_first_numbers_mislead(dtype, n):
    """Rows of close numbers, and of some that lie far from the first ones."""
    dtype = numpy_dtype(dtype)
    rng = generator("misled", dtype, n)
    a = rng.standard_normal((40, n)).astype(dtype)
    a[1] = rng.random(n) + 1  # more than 2^53 units
    a[2] = -a[1]
    a[3] *= 1e30
    a[4] *= 1e-30
    a[5, :32] *= 1e-20
    a[6, :32] *= 1e20
    a[7, 32:] *= 33  # just above the window
    a[8, n // 2] = 2.0**35
    a[9, n // 2] = 2.0**-35
    a[10, n - 1] = 2.0**-70
    a[11, ::3] = 0
    a[12, 1::2] = -a[12, 0 : n - 1 : 2]  # to zero, or the last one
    a[13] = 2.0**-126 * rng.integers(1, 100, n)
    a[14, :] = np.finfo(dtype).tiny / 4
    a[15, n - 1] = 2.0**100
    a[16, 0] = 0
    a[17] = 0
    a[18] = -0.0
    a[19, 0], a[19, 1:] = 1, -0.0
    want = np.array([REFERENCE["sum"](row, dtype) for row in a], dtype)
    assert_bits(gpureduce.sum(a, axis=1), want, "rows")
    assert_bits(gpureduce.sum(a.T.copy(), axis=0), want, "columns")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_spreads_of_any_range(dtype):
    """A part of close numbers between two of any range."""
    dtype = numpy_dtype(dtype)
    a = finite_bits(generator("range", dtype), dtype, 30_000)
    a[8192:20_000] = 1.25
    a[20_000:] /= dtype.type(16)
    for value in (a[9], np.inf, np.nan):
        a[9] = value
        assert_bits(call("var", a), REFERENCE["var"](a, dtype), str(value))


# --- NumPy's shapes, types and warnings -----------------------------------------------------------


def outcome(function, *arguments, **named):
    """(shape, dtype and type of the result or the exception, warnings)."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            result = function(*arguments, **named)
        except Exception as error:
            builtin = next(
                t for t in type(error).__mro__ if t.__module__ in ("builtins", "numpy.exceptions")
            )
            return builtin
        parts = result if isinstance(result, tuple) else (result,)
        said = sorted({str(w.message).rstrip(".") for w in caught})
        return [(type(p), np.shape(p), p.dtype) for p in parts], said


PARITY = {
    "plain": np.arange(1, 61).reshape(SHAPE),
    "0-d": np.array(3),
    "one": np.array([5]),
    "empty (0, 3)": np.empty((0, 3), int),
    "empty (3, 0)": np.empty((3, 0), int),
    "empty (2, 0, 3)": np.empty((2, 0, 3), int),
}


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_shapes_types_and_warnings_are_numpys(function, name):
    dtype = numpy_dtype(name)
    for label, a in PARITY.items():
        a = a.astype(np.int64).astype(dtype)
        cases = [None, 0, -1, 1, (), (0, 1), 3, (0, 0), (0, -3), 1.5, "x", [0]]
        for axis, keepdims in itertools.product(cases, (False, True)):
            want = outcome(numpys(function), a, axis=axis, keepdims=keepdims)
            got = outcome(getattr(gpureduce, function), a, axis=axis, keepdims=keepdims)
            if got is TypeError and isinstance(want, type):
                continue  # of two faults NumPy names the other: of the dtype, of a tuple
            assert got == want, f"{label}, axis={axis!r}, keepdims={keepdims}"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_all_nan_is_numpys(function):
    for a in (np.full((2, 3), np.nan), np.array([[1, np.nan], [np.nan, np.nan]], "F")):
        for axis in (None, 0, 1):
            want = outcome(numpys(function), a, axis=axis)
            assert outcome(getattr(gpureduce, function), a, axis=axis) == want, f"{a}, {axis}"


@pytest.mark.parametrize("function", NUMPYS)
def test_signatures_are_numpys(function):
    want = [(p.name, p.kind) for p in inspect.signature(getattr(np, function)).parameters.values()]
    ours = [
        (p.name, p.kind)
        for p in inspect.signature(getattr(gpureduce, function)).parameters.values()
    ]
    own = ["device"] + ["kernel"] * (function in KERNELS) + ["progress"]
    assert ours == [*want, *((name, inspect.Parameter.KEYWORD_ONLY) for name in own)]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_axes_of_another_kind(function):
    large = [2**31, -(2**31) - 1, 2**40, 2**63, 2**70]
    axes = [True, np.int8(1), np.array(1), np.array([0, 1]), None, np.float64(1), *large]
    axes += [] if OPS[function]["position"] else [(n,) for n in large]
    many = [0, 1, 2, "x", "", None, np.True_, np.False_, 1.0, [], [0], np.ones(2), *large]
    theirs, ours = numpys(function), getattr(gpureduce, function)
    for a in (np.arange(6.0).reshape(2, 3), np.arange(6).reshape(2, 3)):
        for axis in axes:
            assert outcome(ours, a, axis=axis) == outcome(theirs, a, axis=axis), repr(axis)
        for keepdims, axis in itertools.product(many, (0, None)):
            if (function, axis) == ("count_nonzero", None) and type(keepdims) is not int:
                continue  # NumPy asks whether it is true, and then what sum() asks
            want = outcome(theirs, a, axis=axis, keepdims=keepdims)
            assert outcome(ours, a, axis=axis, keepdims=keepdims) == want, repr(keepdims)


def test_many_dimensions():
    a = np.arange(2.0**12).reshape((2,) * 12)
    for axis in ((0, 2, 4, 6, 8, 10), (11, 3), tuple(range(12))):
        assert_bits(gpureduce.sum(a, axis), np.sum(a, axis), f"{axis}")
    thin = np.ones((1,) * 62 + (3, 2))
    assert gpureduce.sum(thin, axis=62).shape == (1,) * 62 + (2,)
    assert gpureduce.minmax(thin, axis=0)[1].shape == (1,) * 61 + (3, 2)


# --- where ----------------------------------------------------------------------------------------


def masks(rng, shape):
    yield "half", rng.integers(0, 2, shape).astype(bool)
    yield "rows", rng.integers(0, 2, shape[-1]).astype(bool)
    yield "columns", rng.integers(0, 2, (shape[-2], 1)).astype(bool)
    yield "none", np.zeros(shape, bool)
    yield "all", np.ones((1,) * len(shape), bool)
    yield (
        "strange bytes",
        np.array([2, 0, 255, 1, 0, 3, 0], np.uint8)[np.arange(shape[-1]) % 7].view(bool),
    )
    yield "Fortran", np.asfortranarray(rng.integers(0, 2, shape).astype(bool))
    yield "reversed", rng.integers(0, 2, shape).astype(bool)[::-1, :, ::-1]


def masked(op, x, keep, result):
    """The reference of what counts; of products over the tree, with ones for what does not."""
    if op in ("prod", "nanprod") and x.dtype.kind not in "biu":
        return (nan_prod if op == "nanprod" else prod_of)(
            np.where(keep, x, x.dtype.type(1)), result
        )
    return REFERENCE[op](x[keep], result)


MASKED = [
    row
    for row in ROWS
    if row[0] in TAKE_WHERE
    and row[1] in ("float32", "float64", "complex128", "int8", "bool", "float16")
]


@pytest.mark.parametrize(("op", "dtype", "result", "law"), MASKED, ids=lambda x: x)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_masks(op, dtype, result, law):
    dtype, result = numpy_dtype(dtype), numpy_dtype(result)
    rng = generator("masks", op, dtype)
    a = elements(dtype, "masked")
    extreme = OPS[op]["nonempty"]
    worst = (np.finfo(dtype).max if is_float(dtype) else 0) if extreme else None
    arguments = {"initial": dtype.type(worst)} if extreme else {}
    for (label, mask), (laid, b) in zip(
        itertools.cycle(masks(rng, SHAPE)), list(layouts(a))[:4] * 2
    ):
        if b.shape != SHAPE:
            continue
        mask = mask & np.ones((), bool) if label == "half" else mask
        for axis in (None, 0, 1, (0, 2)):
            got = call(op, b, axis=axis, where=mask, **arguments)
            whole = np.broadcast_to(mask.view(np.uint8) != 0, SHAPE)
            for (index, x), (_, keep) in zip(alone(b, axis), alone(whole, axis), strict=True):
                if extreme:
                    x = np.append(x[keep], dtype.type(worst))
                    want = REFERENCE[op](x, result)
                else:
                    want = masked(op, x, keep, result)
                assert_bits(at(got, index), want, f"{label}, {laid}, axis {axis}, {index}")


@pytest.mark.parametrize("function", TAKE_WHERE)
def test_masks_are_taken_or_refused_as_numpy_does(function):
    a = np.arange(1.0, 7).reshape(2, 3)
    choices = [
        True,
        False,
        np.True_,
        [1, 0, 1],
        np.array([1, 0, 1]),
        [True, False],
        np.ones((2, 1), bool),
    ]
    choices += [
        np.ones((4, 2, 3), bool),
        np.ones((1, 2, 3), bool),
        np.ones(3),
        [True, True, False],
    ]
    for where, axis in itertools.product(choices, (None, 0, 1)):
        arguments = {"axis": axis, "where": where}
        want = outcome(getattr(np, function), a, **arguments)
        assert outcome(getattr(gpureduce, function), a, **arguments) == want, f"{where!r}, {axis}"


def test_a_mask_cannot_widen_the_array():
    for axis in (None, 0, 1):
        with pytest.raises(ValueError):
            np.sum(np.ones((3, 1)), axis=axis, where=np.ones((3, 3), bool))
        with pytest.raises(ValueError, match="where"):
            gpureduce.sum(np.ones((3, 1)), axis=axis, where=np.ones((3, 3), bool))


def runs_of_masks(rng, rows, columns):
    """Of tiles whose lines all count, of which none does, and of others."""
    kind = np.repeat(rng.integers(0, 3, rows // 50), 50)[:, None]
    yield np.where(kind == 2, rng.integers(0, 2, (rows, columns)), kind).astype(bool)
    yield np.repeat(rng.integers(0, 2, (rows, columns // 90)), 90, axis=1).astype(bool)
    yield rng.integers(0, 2, (rows, 1)).astype(bool)
    yield rng.integers(0, 2, columns).astype(bool)
    yield np.asarray([[False]])
    yield np.arange(rows)[:, None] > rows // 2 + np.zeros(columns)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex128"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_masks_in_runs(dtype):
    rng = generator("runs of masks", dtype)
    a = rng.integers(-9, 9, (1600, 900)).astype(dtype)
    sign = np.where(a.real < 0, -1, 1).astype(dtype)
    some = np.where(rng.random(a.shape) < 0.01, np.nan, a) if a.dtype.kind == "f" else a
    for keep in runs_of_masks(rng, *a.shape):
        for take in (np.s_[:], np.s_[::2], np.s_[:, ::-1], np.s_[7:, 3:870]):
            mask = np.broadcast_to(keep, a.shape)[take] if keep.size < a.size else keep[take]
            for axis, f in itertools.product((0, 1), ("sum", "mean", "max", "prod", "nansum")):
                b = {"prod": sign, "nansum": some}.get(f, a)[take]
                more = {"initial": -10} if f == "max" else {}
                want = getattr(np, f)(b, axis, where=mask, **more)
                if f == "mean" and a.dtype.kind in "fc":  # which NumPy's does not round once
                    want = np.mean(b.real, axis, np.float64, where=mask).astype(dtype)
                got = getattr(gpureduce, f)(b, axis, where=mask, **more)
                np.testing.assert_array_equal(got, want, f"{f}, {axis}, {take}", strict=True)


def test_large_masks():
    rng = generator("large masks")
    a = rng.standard_normal((300, 5000))
    keep = rng.integers(0, 2, a.shape).astype(bool)
    for axis in (None, 0, 1):
        got = gpureduce.sum(a, axis, where=keep)
        for index, x in itertools.islice(alone(np.where(keep, a, 0), axis), 0, None, 97):
            assert_bits(at(got, index), gpureduce.sum(x), f"{axis}, {index}")
    spoiled = np.where(keep, a, np.nan)
    for name in ("sum", "prod", "mean", "var", "min", "argmax"):
        for axis in (None, 0, 1):
            got = getattr(gpureduce, f"nan{name}")(spoiled, axis)
            index, x = next(alone(spoiled, axis))
            assert_bits(at(got, index), REFERENCE[f"nan{name}"](x, np.asarray(got).dtype), name)


# --- initial, out, dtype --------------------------------------------------------------------------


@pytest.mark.parametrize(("op", "dtype", "result", "law"), rows(), ids=lambda x: x)
def test_initial_takes_part_in_every_output(op, dtype, result, law):
    if not OPS[op]["takes_initial"]:
        return
    a = elements(numpy_dtype(dtype), "initial")
    initial = a[0, 0, 0]
    got = call(op, a, axis=1, initial=initial)
    for index, x in alone(a, 1):
        assert_bits(at(got, index), call(op, x, initial=initial), f"{index}")
    nothing = call(op, a[:, :0], axis=1, initial=initial)
    assert nothing.shape == (3, 4) and bits(nothing[1, 1]) == bits(
        call(op, a[0, 0, :0], initial=initial)
    )


def test_no_initial_at_all_is_numpys():
    for a in (np.ones((2, 3)), np.ones((2, 0)), np.ones((0, 2))):
        for axis in (None, 0, 1):
            for more in ({}, {"where": np.ones(a.shape, bool)}):
                for function in ("sum", "prod", "max"):
                    arguments = {"axis": axis, "initial": None, **more}
                    want = outcome(getattr(np, function), a, **arguments)
                    assert outcome(getattr(gpureduce, function), a, **arguments) == want


@pytest.mark.parametrize("ufunc", ["fmin", "fmax"])
@pytest.mark.parametrize("name", [n for n in PLAIN if numpy_dtype(n).kind in "fcm"])
def test_initial_that_is_nan_does_not_count(name, ufunc):
    dtype, function = numpy_dtype(name), "nan" + ufunc[1:]
    make = (lambda x: np.timedelta64(x, "s")) if dtype.kind == "m" else dtype.type
    nothing = make("NaT" if dtype.kind == "m" else np.nan)
    for values in ([3, 1, 2], [3, None, 2], [None, None, None], []):
        row = np.array([nothing if x is None else make(x) for x in values], nothing.dtype)
        calls = [(row, None), (row, 0), (np.stack([row, row[::-1]]), 1), (row[None], 0)]
        for (a, axis), initial in itertools.product(calls, (nothing, make(2))):
            arguments = {"axis": axis, "initial": initial}
            for theirs, ours in (
                (getattr(np, function), getattr(gpureduce, function)),
                (getattr(np, ufunc).reduce, lambda a, **more: gpureduce.reduce(a, ufunc, **more)),
            ):
                assert outcome(ours, a, **arguments) == outcome(theirs, a, **arguments), values
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)
                    got, want = np.asarray(ours(a, **arguments)), np.asarray(theirs(a, **arguments))
                assert np.array_equal(got, want, equal_nan=True), (values, axis, initial)


def test_ufuncs_do_not_warn_of_nan():
    a = np.full((2, 2), np.nan)
    assert np.isnan(gpureduce.reduce(a, "fmin", axis=0)).all()
    assert np.isnan(gpureduce.reduceat(a, [0], np.fmax)).all()
    assert np.isnan(gpureduce.segments(a, [0], [1], "nanmin")).all()
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        gpureduce.nanmin(a, axis=0)


OUTS = ["f4", "f8", "F", "D", "i1", "i4", "i8", "u1", "?", ">f8", "f2"]


@pytest.mark.parametrize("function", [name for name in NUMPYS if OPS[name]["takes_out"]])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "?", "F"])
def test_out_is_taken_or_refused_as_numpy_does(function, dtype):
    a = np.array([[1, 2, 3], [3, 5, 2]]).astype(dtype)
    for kind, axis in itertools.product(OUTS, (None, 0, 1)):
        wants, gots = np.zeros(np.sum(a, axis).shape, kind), np.zeros(np.sum(a, axis).shape, kind)
        want = outcome(getattr(np, function), a, axis=axis, out=wants)
        got = outcome(getattr(gpureduce, function), a, axis=axis, out=gots)
        if isinstance(got, type) and function == "ptp" and dtype == "?":
            continue  # booleans do not subtract; NumPy's do where out is none
        if wants.dtype.kind == "c" and not isinstance(want, type):
            got, want = got[0], want[0]  # NumPy warns of its own conversions on the way
        assert got == want, kind
        if not isinstance(got, type) and wants.dtype.kind not in "fc":
            assert wants.tobytes() == gots.tobytes(), kind
        elif not isinstance(got, type):
            np.testing.assert_array_max_ulp(wants.real.astype("f4"), gots.real.astype("f4"), 2)


NO_NUMBERS = ["M8[s]", "M8", "m8[s]", "m8[ms]", "m8", "S32", "U32", "V8", "i4,f4"]


@pytest.mark.parametrize("function", [name for name in NUMPYS if OPS[name]["takes_out"]])
@pytest.mark.parametrize("dtype", ["f8", "i8", "u8", "?", "D", "m8[s]", "M8[s]"])
def test_out_of_no_numbers(function, dtype):
    """NumPy takes some more: the sum of integers for a date, or their product for a text."""
    a = np.array([[1, 2, 3], [3, 5, 2]]).astype(dtype)
    for kind in [*NO_NUMBERS, "i8", "f8", "?"]:
        out = np.zeros((), kind)
        want = outcome(getattr(np, function), a, out=np.zeros((), kind))
        got = outcome(getattr(gpureduce, function), a, out=out)
        if not isinstance(got, type):  # ptp: uint64 into integers, and a date's times into times
            assert not isinstance(want, type) or function == "ptp", kind
            continue
        assert got is TypeError and out == np.zeros((), kind), kind
        text = np.dtype(kind).kind in "SU"
        if isinstance(want, type) or text or (function, dtype) == ("ptp", "?"):
            continue
        result = getattr(np, function)(a).dtype
        casting = "same_kind" if result.kind in "mM" else "safe"
        assert not np.can_cast(result, kind, casting), kind


@pytest.mark.parametrize("function", FUNCTIONS)
def test_text_is_no_out(function):
    if not OPS[function]["takes_out"] or function in ("any", "all"):
        return  # NumPy assigns truth to text
    results = OPS[function]["results"]
    for kind in ("S32", "U32", "V8", "i4,f4", np.dtypes.StringDType()):
        out = tuple(np.zeros(3, kind) for _ in range(results))
        with pytest.raises(TypeError, match=rf"{function}: .* out"):
            getattr(gpureduce, function)(np.ones((2, 3)), 0, out=out if results > 1 else out[0])


def test_out_of_times():
    a = np.array([[1500, 500], [7, 8]], "m8[ms]")
    for kind in ("i8", "u1", "m8[s]", "m8[us]"):
        wants, gots = np.zeros(2, kind), np.zeros(2, kind)
        assert gpureduce.sum(a, 1, out=gots) is gots
        assert np.sum(a, 1, out=wants).tolist() == gots.tolist(), kind
    days = np.array([[5, 3], [1, 2]], "M8[D]")
    hours = np.zeros(2, "M8[h]")
    assert gpureduce.min(days, 1, out=hours).tolist() == np.min(days, 1).astype("M8[h]").tolist()
    truth = np.zeros((), "S8")
    assert gpureduce.any(a, out=truth) == np.any(a, out=np.zeros((), "S8"))


def test_out_is_returned():
    a = np.arange(6.0).reshape(2, 3)
    for out in (np.empty(3), np.empty((3, 2))[:, 0], np.empty(6)[::-2], np.empty(3, ">f4")):
        assert gpureduce.sum(a, 0, out=out) is out
        assert out.tolist() == [3, 5, 7]
    single = np.empty(())
    assert gpureduce.mean(a, out=single) is single and single == 2.5
    kept = np.empty((1, 1))
    assert gpureduce.max(a, out=kept, keepdims=True) is kept and kept == 5
    pair = np.empty(3), np.empty(3, int)
    assert gpureduce.minmax(a, 0, out=pair)[1] is pair[1]
    assert pair[0].tolist() == [0, 1, 2] and pair[1].tolist() == [3, 4, 5]


def test_out_may_be_the_array():
    a = np.arange(12.0).reshape(3, 4)
    gpureduce.sum(a, 0, out=a[1])
    assert a[1].tolist() == [12, 15, 18, 21]


@pytest.mark.parametrize("function", [name for name in FUNCTIONS if OPS[name]["takes_out"]])
def test_nothing_is_written_where_it_fails(function):
    a = np.array([[1.0, np.nan], [2.0, 3.0]])
    results = OPS[function]["results"]

    def refused(make, error, x=a, **arguments):
        out = make()
        kept = out.copy()
        given = out if results == 1 else (np.zeros_like(out), out)
        with pytest.raises(error):
            getattr(gpureduce, function)(x, out=given, **arguments)
        assert out.tobytes() == kept.tobytes()

    refused(lambda: np.ones(3), ValueError, axis=0)
    refused(lambda: np.ones((1, 2)), ValueError, axis=0)
    refused(lambda: np.ones(2), ValueError)
    refused(lambda: np.ones(2), ValueError, axis=5)
    refused(lambda: np.ones(2), TypeError, axis=0, x=np.array([["a", "b"]]))
    read_only = np.ones(2, int if OPS[function]["position"] else float)
    read_only.flags.writeable = False
    refused(lambda: read_only, ValueError, axis=0)
    for wrong in (3, [0, 0], "x", (np.ones(2),) * 3):
        with pytest.raises(TypeError):
            getattr(gpureduce, function)(a, axis=0, out=wrong)
    if OPS[function]["nonempty"]:
        kind = int if OPS[function]["position"] else float
        refused(lambda: np.ones(2, kind), ValueError, axis=0, x=a[:0])
    if function.startswith("nanarg"):
        refused(lambda: np.ones(2, int), ValueError, axis=0, x=np.full((2, 2), np.nan))
    if function in ("mean", "var"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            refused(lambda: np.ones(2), RuntimeWarning, axis=0, x=a[:0])


@pytest.mark.parametrize("to", ["f2", "f4", "f8", "i1", "i8", "D", "?"])
def test_dtype_with_axes(to):
    a = draw(generator("dtype"), np.dtype("f4"), 60).reshape(SHAPE)
    for function in ("sum", "prod", "mean", "var", "nansum"):
        got = call(function, a, axis=1, dtype=to)
        assert got.dtype == to and got.shape == (3, 4)
        for index, x in alone(a, 1):
            assert_bits(got[index], call(function, x, dtype=to), f"{function}, {index}")


# --- variance -------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["var", "std", "nanvar", "nanstd"])
@pytest.mark.parametrize("ddof", [1, 0.5, -2, 0.1, 2.75, -1e-300, 1e-300, 4, 5, 7, -1e18])
def test_ddof(function, ddof):
    reference = std_of if "std" in function else var_of
    for name in ("float32", "float64", "int16", "complex64", "float16"):
        a = draw(generator("ddof", name), numpy_dtype(name), 12).reshape(3, 4)
        result = numpy_dtype("float64") if a.dtype.kind == "i" else a.real.dtype
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            got = getattr(gpureduce, function)(a, axis=1, ddof=ddof)
            assert bits(getattr(gpureduce, function)(a, axis=1, correction=ddof)) == bits(got)
        assert bool(caught) == (ddof >= 4)
        for index, x in alone(a, 1):
            if ddof >= 4 and "nan" in function and a.dtype.kind != "i":
                assert np.isnan(got[index])
            elif abs(ddof) > 1e-200:
                assert_bits(got[index], reference(x, result, ddof), f"{name}, {index}")


@pytest.mark.parametrize("function", ["var", "std", "nanvar", "nanstd"])
def test_ddof_that_is_none(function):
    """Without a number there is no variance, and no warning."""
    ours, theirs = getattr(gpureduce, function), getattr(np, function)
    for name in ("float32", "float64", "int16", "complex64", "bool"):
        a = draw(generator("ddof", name), numpy_dtype(name), 12).reshape(3, 4)
        for axis, more in itertools.product((None, 0, 1), ({}, {"mean": 0.5})):
            want = outcome(theirs, a, axis=axis, ddof=np.nan, **more)
            assert outcome(ours, a, axis=axis, ddof=np.nan, **more) == want, name
            assert np.isnan(ours(a, axis=axis, ddof=np.nan, **more)).all(), name
    assert ours(np.arange(5.0), ddof=-(2.0**62)) == theirs(np.arange(5.0), ddof=-(2.0**62))
    for ddof in (-(2.0**62) * (1 + 2.0**-52), -(2**70), -1e300, -np.inf):
        with pytest.raises(ValueError, match=rf"{function}: ddof .* is below"):
            ours(np.arange(5.0), ddof=ddof)


@pytest.mark.parametrize("function", SPREADS)
def test_spreads_take_or_refuse_what_numpy_does(function):
    a = np.arange(6.0).reshape(2, 3)
    means = [
        0,
        2.5,
        np.zeros(3),
        np.zeros(2),
        np.zeros((2, 1)),
        np.zeros((1, 3)),
        np.zeros((1, 1)),
        "x",
    ]
    for arguments in (
        {"ddof": 1, "correction": 1},
        {"ddof": 0, "correction": 1},
        {"ddof": "x"},
        {"correction": "x"},
        {"ddof": None},
    ):
        want = outcome(getattr(np, function), a, **arguments)
        assert outcome(getattr(gpureduce, function), a, **arguments) == want, f"{arguments}"
    for axis, mean in itertools.product((None, 0, 1), means):
        want = outcome(getattr(np, function), a, axis=axis, mean=mean)
        got = outcome(getattr(gpureduce, function), a, axis=axis, mean=mean)
        if isinstance(mean, np.ndarray) and axis is None and mean.size > 1:
            assert got is ValueError  # NumPy takes one mean for each element
        elif isinstance(mean, str):
            assert isinstance(got, type) and isinstance(want, type)
        elif np.shape(mean) != (1, 3) or axis != 1:
            assert got == want or got is ValueError, f"{axis}, {mean!r}"


@pytest.mark.parametrize("function", SPREADS)
def test_means_are_numbers(function):
    from fractions import Fraction

    a, theirs, ours = np.arange(6.0), getattr(np, function), getattr(gpureduce, function)
    for kind in NO_NUMBERS:
        for mean in (np.zeros((), kind), np.zeros(1, kind)):
            assert outcome(theirs, a, mean=mean) is TypeError
            with pytest.raises(TypeError, match=f"{function}: mean is of real numbers"):
                ours(a, mean=mean)
    for mean in ("1", ["1"], b"1", np.datetime64(1, "s")):
        assert outcome(ours, a, mean=mean) is outcome(theirs, a, mean=mean) is TypeError
    for mean in (1j, np.ones(1, "F")):  # NumPy's have the parts of x - mean
        with pytest.raises(TypeError, match="real"):
            ours(a, mean=mean)
        assert ours(a + 0j, mean=mean) == ours(a - mean, mean=0)
    for mean in (1, True, [1.0], np.float16(1), np.longdouble(1), Fraction(1)):
        assert ours(a, mean=mean) == ours(a, mean=1.0)


def test_variance_about_a_given_mean():
    """Σ(x - m)² / (n - ddof) as fractions."""
    from fractions import Fraction

    from reference import nearest

    for name in ("float32", "float64", "int32"):
        dtype = numpy_dtype(name)
        result = np.dtype("f8") if dtype.kind == "i" else dtype
        for spread in (draw, finite_bits) if dtype.kind == "f" else (draw,):
            a = spread(generator("mean", name, spread.__name__), dtype, 60).reshape(6, 10)
            means = draw(generator("means", name), np.dtype("f8"), 6).reshape(6, 1)
            got = gpureduce.var(a, axis=1, mean=means, ddof=1)
            for i in range(6):
                m = Fraction(float(means[i, 0]))
                total = sum((Fraction(x) - m) ** 2 for x in a[i].tolist())
                assert_bits(got[i], nearest(total / 9, result), f"{name}, {i}")
    z = draw(generator("mean", "complex"), np.dtype("D"), 9)
    away = [(Fraction(x.real) - Fraction(1, 2), Fraction(x.imag) + 2) for x in z.tolist()]
    total = sum(re**2 + im**2 for re, im in away)
    assert_bits(gpureduce.var(z, mean=0.5 - 2j), nearest(total / 9, np.dtype("f8")), "complex")
    assert np.isnan(gpureduce.var([1.0, 2.0], mean=np.nan))
    assert gpureduce.var([1.0, 2.0], mean=np.inf) == np.inf == gpureduce.var([np.inf, 1], mean=0)
    assert np.isnan(gpureduce.var([np.inf, 1], mean=np.inf))


def test_variance_where_others_fail():
    assert gpureduce.var(np.full(10**5, 1e8 + 0.1)) == 0
    assert gpureduce.var([1e200, -1e200]) == np.inf and gpureduce.std([1e200, -1e200]) == 1e200
    assert gpureduce.std([5e-324, -5e-324]) == 5e-324 and gpureduce.var([5e-324, 0]) == 0
    assert gpureduce.var(np.array([60000, -60000] * 500, "f2")) == np.inf
    assert gpureduce.std(np.array([60000, -60000] * 500, "f2")) == 60000
    assert gpureduce.var(np.array([2**62, -(2**62)])) == 2.0**124
    assert gpureduce.var(np.array([2**64 - 1, 0], "u8")) == 2.0**126


# --- segments -------------------------------------------------------------------------------------

REDUCIBLE = [name for name, op in OPS.items() if op["ufunc"]]


@pytest.mark.parametrize("name", REDUCIBLE)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "?", "D"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_reduceat(name, dtype):
    if not any(row[:2] == (name, np.dtype(dtype).name) for row in ROWS):
        return
    rng = generator("reduceat", name, dtype)
    for shape in ((50,), (50, 3), (4, 50), (2, 50, 3)):
        axis = shape.index(50)
        for n in (0, 1, 2, 30):
            a = draw(rng, np.dtype(dtype), int(np.prod(shape))).reshape(shape)
            offsets = rng.integers(0, 50, n)
            got = gpureduce.reduceat(a, offsets, name, axis=axis - len(shape))
            ufunc = getattr(np, OPS[name]["ufunc"])
            want = ufunc.reduceat(a, offsets, axis=axis)
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            for i, start in enumerate(offsets):
                stop = offsets[i + 1] if i + 1 < n else 50
                part = np.take(a, range(start, max(stop, start + 1)), axis)
                alone = gpureduce.reduce(part, name, axis=axis)
                assert np.take(got, i, axis).tobytes() == alone.tobytes(), (shape, start, stop)


def test_segments():
    rng = generator("segments")
    a = rng.standard_normal((3, 200))
    starts, stops = rng.integers(0, 150, 40), rng.integers(0, 201, 40)
    for name in ("sum", "prod", "logical_xor"):
        got = gpureduce.segments(a, starts, stops, name, axis=1)
        assert got.shape == (3, 40)
        for i, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            want = gpureduce.reduce(a[:, start : max(start, stop)], name, axis=1)
            assert got[:, i].tobytes() == want.tobytes(), (start, stop)
    out = np.empty((3, 40))
    assert gpureduce.segments(a, starts, stops, np.minimum, 1, out=out, initial=2) is out
    assert (out <= 2).all()
    with pytest.raises(ValueError, match="identity"):
        gpureduce.segments(a, [0, 5], [0, 9], "min", axis=1)
    assert gpureduce.segments(a, [], [], "min", axis=1).shape == (3, 0)
    assert gpureduce.segments(a[:, :0], [0], [0], "add", axis=1).tolist() == [[0]] * 3


def test_skewed_segments():
    rng = generator("skewed")
    a = rng.standard_normal(400_000).astype("f4")
    lengths = np.maximum(1, (400_000 / np.arange(1, 3000) ** 1.7)).astype(int)
    lengths = lengths[np.cumsum(lengths) < len(a)]
    stops = np.cumsum(lengths)
    got = gpureduce.segments(a, stops - lengths, stops, "add")
    for i in range(0, len(stops), 61):
        assert_bits(got[i], gpureduce.sum(a[stops[i] - lengths[i] : stops[i]]), f"{i}")


# Around what one lane, a team of lanes, a warp and a block take, in elements of 1 to 16 bytes.
LENGTHS = [
    0,
    1,
    2,
    3,
    5,
    15,
    16,
    17,
    31,
    64,
    *(48 * team + d for team in (4, 8, 16, 32) for d in (0, 1)),
]
LENGTHS += [(2**k >> 10) * 1000 + d for k in range(12, 19) for d in (0, 31)] + [
    2**17,
    2**17 + 1,
    290_000,
]
LONGEST = 300_000
INDEX = {op["name"]: index for index, op in enumerate(gpureduce.operators())}
NOT_GIVEN = gpureduce.functions._NO


def segments_of_all_lengths(rng):
    """Starts and stops, in no order: some at both ends, some that overlap, most unaligned."""
    lengths = rng.permutation(LENGTHS * 3)
    starts = rng.integers(0, LONGEST + 1 - lengths)
    starts[:9] = 0
    starts[9:18] = LONGEST - lengths[9:18]
    return starts, starts + lengths


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "f2", "F"])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "argmax", "any", "prod"])
def test_segments_of_all_lengths(name, dtype, device):
    rng = generator("all lengths", name, dtype)
    starts, stops = segments_of_all_lengths(rng)
    if name in ("max", "argmax"):
        starts, stops = starts[stops > starts], stops[stops > starts]
    make = near_one if name == "prod" and dtype != "i1" else draw
    a = make(rng, np.dtype(dtype), 2 * (LONGEST + 1)).reshape(2, LONGEST + 1)[:, :LONGEST]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # means of nothing
        for array, axis in ((a[0], 0), (a[1, ::-1], 0), (a, 1), (a.T, 0)):
            # Of all operators, also those that segments() has no name for.
            arguments = (array, starts, stops, axis, None, None, NOT_GIVEN, device, None)
            got = np.moveaxis(_core.segments(INDEX[name], *arguments), axis, 0)
            for i in range(0, len(starts), 1 if array.ndim == 1 else 5):
                part = array.swapaxes(0, axis)[starts[i] : stops[i]]
                want = getattr(gpureduce, name)(part, axis=0)
                assert_bits(got[i], want, f"[{starts[i]}, {stops[i]}) of axis {axis}")


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
def test_segments_of_any_exponents(dtype):
    rng = generator("any exponents", dtype)
    starts, stops = segments_of_all_lengths(rng)
    for make in (finite_bits, random_bits):
        a = make(rng, np.dtype(dtype), LONGEST)
        got = gpureduce.segments(a, starts, stops, "sum", initial=-1.5)
        for i in range(0, len(starts), 4):
            want = gpureduce.sum(a[starts[i] : stops[i]], initial=-1.5)
            assert_bits(got[i], want, f"[{starts[i]}, {stops[i]})")


def test_many_short_segments():
    rng = generator("many short")
    a = rng.standard_normal(60_000).astype("f4")
    for most in (2, 9, 300):
        starts = rng.integers(0, len(a) - most, 40_000)
        stops = starts + rng.integers(0, most, len(starts))
        got = gpureduce.segments(a, starts, stops, "max", initial=-1)
        sums = gpureduce.segments(a, starts, stops, "sum")
        for i in range(0, len(starts), 997):
            part = a[starts[i] : stops[i]]
            assert_bits(got[i], np.max(part, initial=np.float32(-1)), f"{i} of {most}")
            assert_bits(sums[i], gpureduce.sum(part), f"{i} of {most}")


def test_segments_that_end_long_before_they_start():
    a = np.ones((4, 3), "f4")
    starts, stops = [0, 5, 2**62, 3], [4, -(2**63), 0, 3]
    for axis in (0, 1):
        array = a if axis == 0 else a.T
        got = np.moveaxis(gpureduce.segments(array, starts, stops, "sum", axis=axis), axis, 0)
        assert got.tolist() == [[4.0] * 3, [0.0] * 3, [0.0] * 3, [0.0] * 3]


@pytest.mark.parametrize(
    "offsets",
    [
        [0, 3],
        [-1],
        [0.5, 1],
        [[0]],
        0,
        [],
        [True],
        ["x"],
        [2**70],
        np.array([0.0]),
        np.array([0], "u8"),
        None,
        np.array([0, 1], "u1"),
    ],
    ids=repr,
)
def test_offsets_are_taken_or_refused_as_numpy_does(offsets):
    a = np.arange(6.0).reshape(2, 3)
    for axis in (0, 1, -1, 2, (0, 1), None, (0,)):
        want = outcome(np.add.reduceat, a, offsets, axis=axis)
        got = outcome(gpureduce.reduceat, a, offsets, "add", axis=axis)
        assert got == want, f"axis {axis}"
    for scalar_or_row, axis in itertools.product((3, a[0]), (0, None, (0,), (), (0, 0), -1)):
        want = outcome(np.add.reduceat, scalar_or_row, offsets, axis=axis)
        got = outcome(gpureduce.reduceat, scalar_or_row, offsets, "add", axis=axis)
        assert got == want, f"axis {axis} of {scalar_or_row}"


def test_a_single_axis_in_other_words():
    a = np.arange(5.0)
    for axis in (0, (0,), None):
        assert gpureduce.reduceat(a, [0, 2], "add", axis=axis).tolist() == [1, 9]
        assert gpureduce.segments(a, [0, 2], [3, 5], "add", axis=axis).tolist() == [3, 9]
    got = gpureduce.reduceat(a.reshape(1, 5), [0, 2], "add", axis=(-1,))
    assert got.tolist() == [[1, 9]]


def test_segments_that_are_none():
    a = np.arange(5.0)
    for starts, stops in (([0], [6]), ([-1], [2]), ([0, 9], [1, 10])):
        with pytest.raises(IndexError, match="not within"):
            gpureduce.segments(a, starts, stops, "add")
    with pytest.raises(ValueError, match="2 starts and 1 stops"):
        gpureduce.segments(a, [0, 1], [2], "add")
    for wrong in (0.5, 1.0, np.float32(1), "1", 1j, None, 2**63, 2**70, np.timedelta64(1, "s")):
        for bounds in ([wrong], np.array([wrong])):
            with pytest.raises(TypeError, match=r"segments: .* not of dtype"):
                gpureduce.segments(a, bounds, [2], "add")
            with pytest.raises(TypeError, match=r"segments: .* not of dtype"):
                gpureduce.segments(a, [0], bounds, "add")
    for whole in ([1], (1,), [True], [np.uint8(1)], np.array([1], ">i2"), range(1, 2)):
        assert gpureduce.segments(a, whole, [3], "add").tolist() == [3]
    assert gpureduce.segments(a, [], np.array([]), "add").tolist() == []
    with pytest.raises(np.exceptions.AxisError):
        gpureduce.segments(a, [0], [2], "add", axis=1)
    for axis in (None, (0, 1), ()):
        with pytest.raises(ValueError, match=r"gpureduce\.segments: one axis"):
            gpureduce.segments(a[None], [0], [2], "add", axis=axis)
        with pytest.raises(ValueError, match=r"gpureduce\.reduceat: one axis"):
            gpureduce.reduceat(a[None], [0], "add", axis=axis)
    with pytest.raises(ValueError, match="op"):
        gpureduce.segments(a, [0], [2], "nonsense")


# --- however it was computed ----------------------------------------------------------------------

THREADED = [("sum", "f4"), ("sum", "f8"), ("prod", "f8"), ("argmax", "f4"), ("var", "f8")]
THREADED += [("min", "i1"), ("mean", "F"), ("nanprod", "f4"), ("nanargmin", "f8"), ("any", "?")]


@pytest.mark.parametrize(("op", "dtype"), THREADED)
def test_any_number_of_threads(op, dtype):
    dtype = np.dtype(dtype)
    for shape in ((3, 1_000_003), (1_000_003, 3), (1000, 2000), (1, 2_000_000), (70, 200, 200)):
        if op in ("prod", "nanprod"):
            a = near_one(generator("threads"), dtype, int(np.prod(shape))).reshape(shape)
        else:
            a = draw(generator("threads"), dtype, int(np.prod(shape))).reshape(shape)
        for axis in range(len(shape)):
            gpureduce.set_num_threads(1)
            want = call(op, a, axis=axis)
            for threads in (2, 7):
                gpureduce.set_num_threads(threads)
                assert call(op, a, axis=axis).tobytes() == want.tobytes(), (
                    f"{shape}, {axis}, {threads}"
                )


def test_the_array_and_the_mask_are_not_written():
    a = draw(generator("unwritten axes"), np.dtype("f4"), 600).reshape(20, 30)
    keep = a > 0
    before = a.tobytes(), keep.tobytes()
    for op in (name for name, dtype, *_ in ROWS if dtype == "float32"):
        for axis in (0, 1):
            call(op, a, axis=axis)
        if OPS[op]["takes_where"]:
            call(op, a, axis=0, where=keep, **({"initial": 0} if OPS[op]["nonempty"] else {}))
    assert before == (a.tobytes(), keep.tobytes())
