"""Few outputs of many elements on a device, whose parts come together by blocks: the CPU's bits."""

import numpy as np
import pytest
from arrays import draw, finite_bits, generator, near_one
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


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_products_that_many_blocks_share(dtype):
    """Blocks climb, of which the last ones have fewer neighbours, or copy rows of few columns."""
    rng = generator("groups", dtype)
    for shape in (20_000, 31), (100_003, 5), (3, 30_000, 17), (300_001, 2), (4, 50_001, 3):
        a = near_one(rng, np.dtype(dtype), int(np.prod(shape))).reshape(shape)
        assert took("prod", a, len(shape) - 2, None)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_products_of_long_rows_whose_neighbours_lie_closest(dtype):
    """By panels, again and again: the last part comes to the same whenever its copies do."""
    rng = generator("panels", dtype)
    for shape in (90, 4000, 7), (300, 2100), (33, 3, 41, 97), (40, 30_011):
        a = near_one(rng, np.dtype(dtype), int(np.prod(shape))).reshape(*shape[1:], shape[0])
        for _ in range(5):
            assert took("prod", np.moveaxis(a, -1, 0), None, None)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_products_of_long_rows_of_packets(dtype):
    """Of one row and of several, whole packets or with a last one that is cut short."""
    rng = generator("chunks", dtype)
    for shape in (
        (1, 2_400_008),
        (1, 600_000),
        (7, 96_000),
        (300, 20_008),
        (3, 5, 30_000),
        (2000, 4096),
    ):
        a = near_one(rng, np.dtype(dtype), int(np.prod(shape))).reshape(shape)
        for view in (a, a[..., :-3], a[::-1, ..., :-1]):
            assert took("prod", view, view.ndim - 1, None)


@pytest.mark.parametrize("op", ["sum", "var", "max", "argmin", "nanmean"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_columns_that_many_blocks_share(op, dtype):
    """In narrow tiles: few of them, some hundred, every second one, and in runs with gaps."""
    rng = generator("narrow tiles", op, dtype)
    for rows, width in (
        (90_001, 3),
        (50_000, 11),
        (20_003, 33),
        (9_000, 74),
        (5_000, 300),
        (1_501, 1100),
    ):
        a = draw(rng, np.dtype(dtype), rows * width).reshape(rows, width)
        if op.startswith("nan"):
            a[rng.random(a.shape) < 0.01] = np.nan
        for view in (a, a[:, ::2], a[1:, 1:]):
            assert took(op, view, 0, None)
        if op != "argmin":
            runs = a[: rows // 50 * 50].reshape(-1, 50, width)[:, 3:]
            assert took(op, runs, (0, 1), None)


@pytest.mark.parametrize("op", ["sum", "var", "max", "nanmean", "argmax"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_runs_with_gaps(op, dtype):
    """Of a few packets and of some hundred, that begin and end anywhere, and with the memory."""
    rng = generator("runs", op, dtype)
    for outputs, runs, n in (
        (1, 9000, 13),
        (1, 4001, 57),
        (1, 2500, 130),
        (2, 900, 250),
        (3, 300, 900),
        (700, 90, 41),
    ):
        a = draw(rng, np.dtype(dtype), outputs * runs * (n + 3)).reshape(outputs, runs, n + 3)
        if op.startswith("nan"):
            a[rng.random(a.shape) < 0.01] = np.nan
        for view in (a[..., 1:-2], a[..., :-3], a[:, ::-1, 2:]):
            assert took(op, view, (1, 2) if op != "argmax" else None, None)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_products_of_rows_in_batches(dtype):
    """Batches with gaps between them, of rows that lie behind each other or nearly so."""
    rng = generator("batches", dtype)
    for batches, rows, n in (
        (9, 40, 100),
        (300, 7, 584),
        (3, 5000, 33),
        (2, 70, 1000),
        (5, 1, 700),
    ):
        a = near_one(rng, np.dtype(dtype), batches * (rows + 2) * (n + 3))
        a = a.reshape(batches, rows + 2, n + 3)
        for view in (a[:, 1:-1], a[:, 1:-1, 1:-1], a[:, :-2, ::2], a[:, 2:, 3:]):
            assert took("prod", view, 2, None)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_of_tall_columns_by_rows(dtype):
    """So many that a warp brings rows of them, which begin anywhere and end with the array; those
    of bfloat16 come from the host in slabs, for which lanes have loads of their own."""
    host = {"to": np.asarray, "device": "cuda"} if dtype == "bfloat16" else {}
    some = near_one(generator("tall", dtype), np.dtype("float32"), 1_000_003)
    a = np.resize(some.astype(numpy_dtype(dtype)), (20_011, 4_003))
    for view in (a, a[:, 1:-2]) if host else (a, a[:, 1:-2], a[::-1, 5:]):
        assert took("prod", view, 0, None, **host)


@pytest.mark.parametrize("sigma", [5, 20])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_variances_of_a_wide_range(dtype, sigma):
    """Beyond a batch's windows, and beyond those of eight numbers."""
    rng, real = generator("wide", dtype, sigma), np.dtype(dtype).type(0).real.dtype
    for shape, axis in (((50_000,), 0), ((300, 700), 0), ((700, 300), 1), ((9, 40_000), 1)):
        size = 2 * int(np.prod(shape))
        a = np.exp(np.clip(sigma * rng.standard_normal(size), -80, 80)).astype(real)
        a[rng.random(size) < 0.5] *= -1
        a = (a.view(dtype) if np.dtype(dtype).kind == "c" else a[::2]).reshape(shape)
        assert took("var", a, axis, None)


def variances(a, axis):
    """Of bfloat16 on the device, as they lie there."""
    want = gpureduce.var(a, axis=axis, device="cpu")
    got = np.asarray(fetched(gpureduce.var(on_device(a), axis=axis)))
    assert_bits(got.view(want.dtype), want, f"{a.shape} {a.strides}")


@pytest.mark.parametrize("kind", ["lognormal", "growing", "few", "spoiled", "bits", "zeros"])
def test_variances_of_bfloat16_in_windows(kind):
    """Of few batches each: ordinary windows, wide ones, or what neither holds."""
    rng = generator("windows", kind)
    n = 3_000_017
    a = np.exp(5 * rng.standard_normal(n)) * rng.choice([-1.0, 1.0], n)
    if kind == "growing":
        a.sort()
    elif kind == "few":
        a = np.where(rng.random(n) < 1e-4, a * 1e-20, rng.standard_normal(n))
    elif kind == "spoiled":
        a[rng.integers(0, n, 3)] = np.inf, -np.inf, np.nan
    elif kind == "zeros":
        a = np.where(rng.random(n) < 0.1, a, -0.0)
    a = finite_bits(rng, numpy_dtype("bfloat16"), n) if kind == "bits" else a
    a = a.astype(numpy_dtype("bfloat16"))
    rows = a[: 17 * 176_000].reshape(17, 176_000)
    for view, axis in ((a, 0), (a[1::2], 0), (rows, 1), (rows[:, :-1], (0, 1))):
        variances(view, axis)


def test_variances_of_bfloat16_of_two_scales():
    """That alternate along rows which lanes share; test_few_variances.py has windows that move."""
    rng = generator("windows", "move")
    a = np.resize(rng.standard_normal(1_000_003), (3400, 18_001))
    place, row = np.arange(18_001), np.arange(3400)[:, None]
    a *= np.where(place >> 3 + row % 12 & 1, 2.0**40, 1)
    variances(a.astype(numpy_dtype("bfloat16")), 1)


@pytest.mark.parametrize("sigma", [0, 5])
def test_variances_of_bfloat16_in_windows_that_are_full(sigma):
    """After 2^11 numbers of a thread; a row is a block's."""
    rng = generator("windows", "full", sigma)
    some = rng.standard_normal(1_000_003) * np.exp(sigma * rng.standard_normal(1_000_003))
    variances(np.resize(some.astype(numpy_dtype("bfloat16")), (600, 600_001)), 1)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64", "complex64", "complex128"])
def test_blocks_come_together_by_levels(dtype):
    """As a whole, by columns and by lanes; of numbers that fit, that do not, and beside NaN."""
    rng, of = generator("levels", dtype), numpy_dtype(dtype)
    host = {"to": np.asarray, "device": "cuda"} if dtype == "bfloat16" else {}
    for shape, axis in (
        ((100_003,), 0),
        ((70_001, 3), 0),
        ((30_000, 31), 0),
        ((2000, 250), 0),
        ((500, 30, 6), (0, 2)),
    ):
        a = rng.standard_normal(shape)
        for sigma, nan in ((0, 0), (0, 0.001), (5, 0), (40, 0)):
            b = a * np.exp(np.clip(sigma * rng.standard_normal(shape), -80, 80))
            b[rng.random(shape) < nan] = np.nan
            b = (b + 1j * b[::-1] if dtype.startswith("complex") else b).astype(of)
            for op in ("sum", "var", "nansum", "nanvar"):
                assert took(op, b, axis, None, **host)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64", "complex128"],
)
def test_long_rows_whose_elements_lie_apart(dtype):
    """Every second one and others, backwards, of one row and of some, that end within what a warp
    reads at once; NaN counts and does not."""
    rng, of, taken = generator("apart", dtype), np.dtype(dtype), 0
    ops = ["sum", "max", "any", "nansum", *(["prod"] if of.kind in "iu" else ["var"])]
    for n in (70_001, 400_003):
        a = draw(rng, of, n)
        if of.kind in "fc":
            a[rng.random(n) < 0.0001] = np.nan
        some = 51_440 if n > 102_880 else 33_008  # of the last round some lanes have all
        views = [a[::2], a[: 2 * some : 2], a[n // 2 :][::-3],
                 a[3 : (n - 3) // 6 * 6 + 3].reshape(3, -1)[:, ::2],
                 a[: n // 14 * 14].reshape(2, -1, 7)[:, :, 4]]  # fmt: skip
        for view in views:
            for op in ops:
                if op != "var" or of.kind != "b":
                    taken += took(op, view, view.ndim - 1, "rows")
                    assert took(op, view, view.ndim - 1, None)
    assert taken >= 8 * (len(ops) - 1), taken


def test_what_blocks_share_is_left_as_it_was():
    """Digits that blocks add to lie at the same place for launches of any width."""
    rng = generator("digits")
    arrays = [rng.standard_normal(shape) for shape in ((60_000, 32), (9000, 200), (30_000, 6))]
    arrays += [a.astype(np.float32) for a in arrays] + [
        np.exp(np.clip(300 * a, -700, 700)) for a in arrays[:1]
    ]
    columns = 0
    for _ in range(3):
        for a in arrays:
            for op in ("sum", "nansum", "var"):
                assert took(op, a, 0, None)
                columns += op != "var" and took(op, a, 0, "columns")
    assert columns >= 3 * len(arrays)
