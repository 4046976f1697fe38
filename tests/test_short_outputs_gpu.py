"""Short rows, single elements and few outputs of many blocks on a device: the CPU's bits, whatever
lies beside each other in a warp."""

import itertools

import numpy as np
import pytest
from arrays import finite_bits, generator, subnormals
from device import on_device
from table import assert_bits, numpy_dtype
from test_variants import fetched, took

import gpureduce
from gpureduce import _core

COUNT, WHY = _core.device_count()
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
FLOATS = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


def real_rows(rng, shape):
    """Of numbers a hundred bits apart, of one size, of zeros, with NaN and infinities."""
    a = np.exp(5 * rng.standard_normal(shape)) * rng.choice([-1.0, 1.0], shape)
    kind = rng.integers(0, 10, shape[0])
    a[kind == 1] = rng.standard_normal(shape)[kind == 1]
    a[kind == 2] = -0.0
    a[kind == 3] *= rng.choice([0.0, 1.0], shape)[kind == 3]
    a[rng.random(shape) < 0.01] = np.nan
    a[kind == 4] = np.nan
    a[(kind == 5)[:, None] & (rng.random(shape) < 0.02)] = np.inf
    return a


def drawn(label, dtype, shape):
    rng = generator(label, dtype, shape)
    a = real_rows(rng, shape).astype(numpy_dtype(dtype))
    if dtype.startswith("complex"):
        a.imag = real_rows(rng, shape)
    a[rng.integers(0, shape[0], 3)] = finite_bits(rng, a.dtype, 3 * shape[1]).reshape(3, -1)
    a[rng.integers(0, shape[0], 3)] = subnormals(rng, a.dtype, 3 * shape[1]).reshape(3, -1)
    return a


def compare(op, a, **options):
    function = getattr(gpureduce, op)
    kernel = options.pop("kernel", None)
    forced = {"kernel": kernel} if kernel else {}
    got = function(a, device="cuda", **options, **forced)
    want = function(a, device="cpu", **options)
    assert_bits(got, want, f"{op} {a.dtype} {a.shape} {options}")


# Whole arrays, long rows of whole packets and others, short ones, columns of many rows and of few.
WITH_INFINITIES = [
    ((300_007,), None, slice(None)),
    ((40, 70_001), 1, slice(None)),
    ((900, 2048), 1, slice(None)),
    ((700, 2058), 1, np.s_[:, 1:]),
    ((3000, 200), 1, slice(None)),
    ((20_000, 4), 1, slice(None)),
    ((900, 4000), 1, np.s_[:, ::2]),
    ((30, 12, 900), (0, 2), slice(None)),
    ((2000, 1001), 0, slice(None)),
    ((3, 700_001), 0, slice(None)),
    ((12, 200_001), 0, slice(None)),
    ((2, 700_001), 0, slice(None)),
    ((1, 700_001), 0, slice(None)),
    ((200_000, 2), 1, slice(None)),
]


@pytest.mark.parametrize(("shape", "axis", "view"), WITH_INFINITIES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_infinities(dtype, shape, axis, view):
    """Of one sign, of both, with NaN, and beside numbers that overflow on the way."""
    rng = generator("infinities", dtype, shape)
    real = numpy_dtype(dtype).type(0).real.dtype
    top = float(2.0 ** {"float16": 15, "float64": 1023}.get(real.name, 127))
    for share, specials in (
        (0.002, [np.inf]),
        (0.002, [np.inf, -np.inf]),
        (0.01, [np.inf, -np.inf, np.nan]),
        (1e-4, [-np.inf]),
    ):
        a = rng.standard_normal(shape).astype(numpy_dtype(dtype))
        if dtype.startswith("complex"):
            a.imag = rng.standard_normal(shape)
        for part in (a.real, a.imag) if dtype.startswith("complex") else (a,):
            great = rng.random(shape) < 0.001
            part[great] = rng.choice([top, -top], great.sum()).astype(real)
            there = rng.random(shape) < share
            part[there] = rng.choice(specials, there.sum()).astype(real)
        for op in ("sum", "mean", "nansum"):
            compare(op, a[view], axis=axis)
        for initial in (1.0, np.inf, -np.inf, np.nan):
            compare("sum", a[view], axis=axis, initial=initial)


@pytest.mark.parametrize("length", [96, 128, 200, 256])
@pytest.mark.parametrize("dtype", FLOATS)
def test_what_one_lane_of_a_row_cannot_add(dtype, length):
    """Others of its team have added theirs, whole packets of the row or every so many elements."""
    are_wide = dtype in ("bfloat16", "float32", "complex64")
    great, least = (6e37, 6e-38) if are_wide else (np.inf, 1.0)
    a = np.ones((3001, length), numpy_dtype(dtype))
    for row in range(0, 3001, 5):
        at = row % (length - 3)
        a[row, at : at + 3] = great, -great, least
    for view in a, a[:, 1:], a[:, ::2]:
        compare("sum", view, axis=1)
        compare("mean", view, axis=1)
        is_taken = took("sum", view, 1, "rows_shared", to=np.asarray, device="cuda")
        assert is_taken or view is not a


@pytest.mark.parametrize("length", [2, 7, 16, 33, 128, 133, 169, 256, 399, 801])
@pytest.mark.parametrize("dtype", FLOATS)
def test_short_rows(dtype, length):
    for rows in (64, 9001):
        a = drawn("rows", dtype, (rows, length))
        for op in ("sum", "mean", "nansum", "nanmean", "nanmax", "nanmin", "var", "nanvar"):
            if not dtype.startswith("complex") or op not in ("nanmax", "nanmin"):
                compare(op, a, axis=1)
        if not dtype.startswith("complex"):
            a[:, 0] = 1  # no row is NaN alone, which has no place
            compare("nanargmax", a, axis=1)
            compare("nanargmin", a, axis=1)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 12, 16, 17])
@pytest.mark.parametrize("dtype", FLOATS)
def test_variances_of_few(dtype, n):
    """By differences: of what has much in common, of halves that tie, beside what is no number."""
    a = drawn("few", dtype, (9001, n))
    rng = generator("common", dtype, n)
    near = (1000 + rng.standard_normal((9001, n))).astype(a.dtype)
    whole = (rng.standard_normal((9001, n)) * 20).round().astype(a.dtype)
    where = rng.random((9001, n)) < 0.7
    for rows in (a, near, whole, np.full_like(a, 3)):
        columns = np.ascontiguousarray(rows.T)
        for op in ("var", "std", "nanvar"):
            compare(op, rows, axis=1)
            compare(op, columns, axis=0)
        compare("var", columns, axis=0, ddof=1)
        compare("std", columns, axis=0, ddof=0.5)
        compare("var", columns, axis=0, where=where.T)


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int16", "int64", "bool"])
def test_one_row_and_two(dtype):
    """Of widths after which the second row begins elsewhere in a packet, with some left over."""
    for start, width in ((0, 4096), (1, 4097), (2, 4099), (3, 5003), (5, 262)):
        a = drawn("ones", "float64", (5 * 37, 5003)).reshape(5, 37, 5003)
        if dtype in FLOATS:
            a = a.astype(numpy_dtype(dtype))
        else:
            a = np.where(np.abs(a) < 100, a, 7).astype(dtype)
        for rows in (a[1:2, :, start : start + width], a[1:3, :, start : start + width]):
            compare("sum", rows, axis=0, kernel="columns_small")
            if not dtype.startswith("complex"):
                compare("max", rows, axis=0, kernel="columns_small")


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int16", "int32", "int64", "bool"])
def test_columns_of_a_few_rows(dtype):
    """As many as are read at once and more, from any place of a packet on."""
    a = drawn("few rows", "float64", (16, 9003))
    if dtype in FLOATS:
        a = a.astype(numpy_dtype(dtype))
    else:
        a = np.where(np.abs(a) < 100, a, 7).astype(dtype)
    a[:, ::5] = a[:1, ::5]
    for rows, start in itertools.product((3, 4, 5, 6, 7, 8, 9, 10, 11, 15), (0, 1, 3)):
        x = a[:rows, start:]
        compare("sum", x, axis=0, kernel="columns_small")
        if not dtype.startswith("complex"):
            compare("max", x, axis=0, kernel="columns_small")
        for op in ("nansum", "var") if dtype != "bool" else ("any",):
            one_of(op, x, None, 0, "columns_small")


@pytest.mark.parametrize("n", [18, 31, 64, 150, 256, 257])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_variances_of_columns(dtype, n):
    columns = np.ascontiguousarray(drawn("columns", dtype, (701, n)).T)
    near = (1000 + generator("near", n).standard_normal((n, 701))).astype(columns.dtype)
    where = generator("where", n).random((n, 701)) < 0.7
    where[:, :3] = False
    for x in (columns, near):
        for op, mask in (("var", None), ("std", where), ("nanvar", None), ("nanstd", where)):
            one_of(op, x, mask)


@pytest.mark.parametrize("n", [17, 48, 128])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_variances_of_many_short_rows(dtype, n):
    """A thread each, where a mask or NaN keeps them from shared memory."""
    x = np.ascontiguousarray(drawn("short rows", dtype, (701, n + 2)))[:, 1:-1]
    where = generator("short rows", n).random((701, n)) < 0.7
    where[:3] = False
    for op, mask in (("var", None), ("std", where), ("nanvar", None), ("nanstd", where)):
        one_of(op, x, mask, 1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int32"])
def test_shares_of_as_many_elements_as_a_lane_takes(dtype):
    """256 bytes of them, of rows, and one element less of batches of narrow columns."""
    n = 1024 // np.dtype(dtype).itemsize - 1
    a = drawn("shares", "float64" if dtype == "int32" else dtype, (20_000, n))
    a[5], a[6] = -0.0, 0 if dtype == "int32" else np.nan
    a = np.where(np.abs(a) < 100, a, 7).astype(dtype) if dtype == "int32" else a
    narrow = 64 * 4 // np.dtype(dtype).itemsize - 1
    batches = np.resize(a, (60_000, narrow, 5)) if narrow > 15 else a[:, :, None]
    ops = ["sum", "mean", "any"] + ["nansum", "nanmean"] * (dtype != "int32")
    for op in ops + ["max", "argmin", "nanmax"] * (not dtype.startswith("complex")):
        compare(op, a, axis=1)
        compare(op, batches, axis=1)
    compare("sum", a, axis=1, kernel="rows_shared")


@pytest.mark.parametrize("n", [33, 300, 2100])
@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
)
def test_variances_that_lanes_share(dtype, n):
    """Of whole numbers, whose variances tie, of the same number, and of some that are not finite,
    the first ones too."""
    x = np.asarray(drawn("lanes", dtype, (n, 60)))
    whole = generator("whole", n).integers(0, 10, (n, 60)).astype(x.dtype)
    whole[:, 0] = whole[0, 0]
    spoiled = whole.copy()
    spoiled[:4, 5], spoiled[0, 7], spoiled[n // 2, 9] = np.nan, np.inf, np.nan
    for a in (x, whole, spoiled):
        for op in ("var", "nanstd"):
            one_of(op, np.ascontiguousarray(a), None)
            one_of(op, np.ascontiguousarray(a.T), None, 1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_tall_outputs_that_are_folded_again(dtype):
    """A few of many, and nearly all: of a range that no plain sums hold."""
    rng = generator("tall", dtype)
    a = rng.standard_normal((5001, 300))
    for few in (0.01, 0.9):
        wide = rng.random(300) < few
        wide[7] = True
        a[:, wide] *= (
            2.0 ** rng.integers(-12, 12, a[:, wide].shape)
            if dtype == "float16"
            else (2.0 ** rng.integers(-60, 60, a[:, wide].shape))
        )
        x = (a + 1j * a[::-1] if dtype.startswith("complex") else a).astype(numpy_dtype(dtype))
        for spoiled in (False, True):
            if spoiled:
                x[::701, 7], x[3, 8:12] = np.nan, np.inf
            for op in ("sum", "mean", "var", "nansum", "nanvar"):
                mask = rng.random(x.shape) < 0.8 if op == "mean" else None
                one_of(op, x, mask)
                if op in ("sum", "var"):
                    one_of(op, np.ascontiguousarray(x.T)[:, 1:-1], None, 1)


@pytest.mark.parametrize("dtype", [*FLOATS, "int32"])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 40])
def test_sums_of_columns_that_skip_nan(dtype, rows):
    """Of some nothing is left, or -0.0; the second row begins elsewhere in a packet."""
    rng = generator("skip", dtype, rows)
    a = drawn("skip", "float64", (rows, 9003))
    a = np.where(np.abs(a) < 100, a, 7) if dtype == "int32" else a
    a = a.astype(numpy_dtype(dtype))
    if dtype != "int32":
        a[rng.random(a.shape) < 0.4] = np.nan
        a[:, 100:200] = np.nan
        a[-1, 100:150] = -0.0
    for x in (a, a[:, 1:-2].copy(), a[:, 3:]):
        for op in ("nansum", "nanmean"):
            one_of(op, x, None, 0, "columns_small")
        for initial in (-0.0, 3) if dtype != "int32" else (3,):
            one_of("nansum", x, None, 0, "columns_small", initial)


def one_of(op, x, mask, axis=0, variant="brief", initial=np._NoValue):
    """By the variant's name, which not all functions take."""
    no = np._NoValue
    where = no if mask is None else mask
    index = [row["name"] for row in gpureduce.operators()].index(op)
    arguments = (index, x, axis, None, None, no, initial, where, 1, no)
    got = _core.reduce(*arguments, "cuda", variant, None)
    assert_bits(got, _core.reduce(*arguments, "cpu", None, None), f"{op} {x.dtype} {x.shape}")


@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float32", "float64", "datetime64[s]"])
def test_places_of_single_elements(dtype):
    a = drawn("places", "float64", (300, 701))
    if dtype in ("int8", "datetime64[s]"):
        a = np.where(np.abs(a) < 100, a, 7).astype("int8")
    a = a.astype(numpy_dtype(dtype) if dtype in FLOATS else dtype)
    for op in ("argmax", "argmin"):
        compare(op, a.reshape(300, 1, 701), axis=1)
        compare(op, a.reshape(1, 300, 701), axis=0)
    if dtype in FLOATS:
        with pytest.raises(ValueError, match="All-NaN"):
            gpureduce.nanargmax(a.reshape(300, 1, 701), axis=1, device="cuda")
        a[a != a] = 1
        compare("nanargmin", a.reshape(300, 701, 1), axis=2)


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int32", "uint64", "bool"])
def test_single_elements_that_lie_apart(dtype):
    """On the device, cut out of a longer axis, where a thread has several of them."""
    a = drawn("apart", "float64", (150, 3 * 701)).reshape(150, 3, 701)
    if dtype in FLOATS:
        a = a.astype(numpy_dtype(dtype))
    else:
        a = np.where(np.abs(a) < 100, np.abs(a), 7).astype(dtype)
    where = generator("apart", dtype).random((150, 1, 701)) < 0.7
    for view in (a[:, 1:2], a[:, 1:2, ::2], a[:, 1:2].transpose(2, 1, 0), a[::-1, 2:]):
        for op in ("sum", "mean", "nansum", "nanmean", "any", "var", "max", "argmax", "nanmin"):
            if dtype.startswith("complex") and op in ("argmax", "nanmin"):
                continue
            function = getattr(gpureduce, op)
            for options in ({}, {"where": where}, {"initial": 5}):
                if view.shape != where.shape and "where" in options:
                    continue
                if options and op not in ("sum", "max"):
                    continue
                if op == "max" and "where" in options:
                    options = options | {"initial": 3}
                there = {k: on_device(v) if k == "where" else v for k, v in options.items()}
                want = function(view, axis=1, device="cpu", **options)
                got = fetched(function(on_device(view), axis=1, **there))
                got = got.view(want.dtype) if got.dtype.kind == "V" else got  # bfloat16
                assert_bits(got, want, f"{op} {dtype} {view.strides} {list(options)}")


@pytest.mark.parametrize("n", [2, 3, 5, 6, 9, 16, 31, 64])
@pytest.mark.parametrize("dtype", FLOATS)
def test_short_columns(dtype, n):
    columns = np.ascontiguousarray(drawn("columns", dtype, (9001, n)).T)
    apart = columns.copy()
    apart[0] *= numpy_dtype(dtype).type(0.5 if dtype == "float16" else 2.0**-60)
    for a in (columns, apart, columns[:, 1:].copy(), columns[:, 3:]):
        for op in ("sum", "mean", "nansum", "nanmean"):
            compare(op, a, axis=0)
        compare("sum", a, axis=0, kernel="columns_small")
        compare("sum", a, axis=0, initial=3)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("rows", [130, 540, 1100])
def test_columns_with_nan_by_lanes(dtype, rows):
    a = generator("lanes", dtype, rows).standard_normal((rows, 7001)).astype(dtype)
    a[generator("gone", rows).random(a.shape) < 0.001] = np.nan
    for op in ("sum", "mean", "nansum"):
        compare(op, a, axis=0)
    compare("sum", a, axis=0, kernel="brief")


@pytest.mark.parametrize("n", [4_195_421, (1 << 24) - 1, 1 << 24])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_products_that_stay_on_the_device(dtype, n):
    a = (1 + generator("products", dtype).standard_normal(4099) / 64).astype(dtype)
    a = np.resize(a, n)
    got, want = gpureduce.prod(on_device(a), axis=0), gpureduce.prod(a, device="cpu")
    assert_bits(fetched(got), want, f"{dtype} {n}")


@pytest.mark.parametrize("dtype", FLOATS)
def test_single_elements_without_nan(dtype):
    a = drawn("single", dtype, (3 * 200, 5003)).reshape(3, 200, 5003)
    for start in (0, 1):
        compare("nansum", a[1:2, :, start:5000], axis=0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex128", "int32"])
@pytest.mark.parametrize("columns", [1, 3, 5, 22, 50])
def test_few_outputs_of_many_blocks(dtype, columns):
    """More blocks share an output than one can hear out, and again on what they left."""
    a = drawn("few", "float32", (300_000 // columns * 4, columns)).astype("float64")
    a = np.where(np.abs(a) < 100, a, 7).astype(dtype) if dtype == "int32" else a.astype(dtype)
    wide = np.repeat(a, 2, axis=1)[:, ::2]
    for op in ("sum", "mean", "var", "nansum", "argmax", "max"):
        if not dtype.startswith("complex") or op not in ("argmax", "max"):
            compare(op, wide, axis=0)
    compare("sum", wide, axis=0)


@pytest.mark.parametrize("rows", [19, 64, 333])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int16", "uint16"])
def test_neighbours_of_two_bytes(dtype, rows):
    """Two of them are one lane's, where they are one word of every row."""
    a = drawn("neighbours", "float64", (rows, 40_004))
    a = np.where(np.abs(a) < 100, np.abs(a), 7) if "int" in dtype else a
    a = a.astype(numpy_dtype(dtype))
    ops = ["sum", "mean", "nansum", "nanmean", "max", "nanmin", "argmax", "any", "var"]
    for view in (a, a[:, 1:-1], a[:, 2:-2], a[:, :-1].copy(), a[::-1, 2:]):
        for op in ops:
            compare(op, view, axis=0)
        compare("sum", view, axis=0, kernel="brief")
        compare("sum", view, axis=0, initial=3)
    compare("sum", a.reshape(rows, 4, -1)[:, ::3], axis=0, kernel="brief")


@pytest.mark.parametrize(
    "dtype, rows, length",
    [
        ("float32", 3300, 9000),
        ("float32", 4300, 6001),
        ("bfloat16", 3400, 18_001),
        ("float64", 2300, 5003),
        ("complex128", 2200, 2001),
        ("int32", 4300, 6001),
        ("float32", 452, 52_397),
        ("float16", 450, 60_000),
        ("float64", 300, 50_003),
        ("complex64", 300, 30_001),
    ],
)
def test_rows_left_to_blocks(dtype, rows, length):
    """More rows than there are warps or blocks at a time, on the device: slabs have fewer."""
    a = drawn("left", "float64", (40, length))
    a = np.where(np.abs(a) < 100, a, 7).astype(dtype) if dtype == "int32" else a
    a = np.resize(a.astype(numpy_dtype(dtype)), (rows, length))
    a[-3:] = a[:3, ::-1]
    for view, kernel in ((a, None), (a[:, 1:-1], "rows")):
        for op in ("sum",) if kernel else ("sum", "mean", "nansum", "max", "argmax"):
            if dtype.startswith("complex") and op in ("max", "argmax"):
                continue
            function, forced = getattr(gpureduce, op), {"kernel": kernel} if kernel else {}
            want = function(view, axis=1, device="cpu")
            got = fetched(function(on_device(view), axis=1, **forced))
            got = got.view(want.dtype) if got.dtype.kind == "V" else got  # bfloat16
            assert_bits(got, want, f"{op} {dtype} {view.shape}")


@pytest.mark.parametrize("dtype", [*FLOATS, "int32"])
@pytest.mark.parametrize("rows", [1, 2, 3, 8])
def test_columns_of_which_nothing_counts(dtype, rows):
    """By the kernel of columns of a few rows; means, which take no kernel=, by what suits them."""
    a = drawn("nothing", "float64", (rows, 9000))
    a = np.where(np.abs(a) < 100, a, 7) if dtype == "int32" else a
    a = a.astype(numpy_dtype(dtype))
    where = generator("nothing", dtype, rows).random(a.shape) < 0.4
    for op, options in (
        ("sum", {}),
        ("mean", {}),
        ("sum", {"initial": -0.0 if dtype in FLOATS else 5}),
        ("max", {"initial": 0}),
    ):
        if op == "max" and dtype.startswith("complex"):
            continue
        forced = {} if op == "mean" else {"kernel": "columns_small"}
        compare(op, a, axis=0, where=where, **options, **forced)


@pytest.mark.parametrize("dtype", [*FLOATS, "int32"])
@pytest.mark.parametrize("length", [1, 2, 4, 9, 16, 17, 40])
def test_rows_of_which_nothing_counts(dtype, length):
    """By a thread each, by lanes of a warp, and as whole rows of masks."""
    a = drawn("no rows", "float64", (3000, length))
    a = np.where(np.abs(a) < 100, a, 7) if dtype == "int32" else a
    a = a.astype(numpy_dtype(dtype))
    where = generator("no rows", dtype, length).random(a.shape) < 0.3
    where[::3] = False
    for op, options in (
        ("sum", {}),
        ("mean", {}),
        ("var", {}),
        ("std", {"ddof": 1}),
        ("sum", {"initial": -0.0 if dtype in FLOATS else 5}),
        ("max", {"initial": 0}),
        ("count_nonzero", {}),
    ):
        if op == "max" and dtype.startswith("complex"):
            continue
        masked = {} if op == "count_nonzero" else {"where": where}
        compare(op, a, axis=1, **masked, **options)
        compare(
            op, a[:, None, :], axis=1, **{n: m[:, None, :] for n, m in masked.items()}, **options
        )
    if dtype in FLOATS:
        a[~where] = np.nan
        compare("nansum", a, axis=1, initial=-0.0)
        for op in ("nansum", "nanmean", "nanvar"):
            compare(op, a, axis=1)
