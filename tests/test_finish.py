"""Engines leave the end to the operator: a hidden one, twice the exact sum, folds as sums do and
finishes by itself, and has to be right wherever sums are: alone, as one of many outputs, short and
long, in any layout, masked, of segments."""

import numpy as np
import pytest
from arrays import cases, draw, finite_bits, generator, real_of
from reference import FORMATS, by_parts, exact_sum, nan, nearest
from table import OPS, assert_bits, bits, numpy_dtype, show

import gpureduce
from gpureduce import _core

COUNT, WHY = _core.device_count()
ON_DEVICE = [pytest.mark.gpu, pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")]
DTYPES = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
TWICE_SUM = len(_core.operators())  # after all that are listed
NO = np._NoValue


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=ON_DEVICE)])
def device(request):
    return request.param


@pytest.fixture(params=DTYPES)
def dtype(request):
    return numpy_dtype(request.param)


def twice_sum(a, axis=None, *, initial=NO, where=NO, dtype=None, device="cpu"):
    given = (axis, dtype, None, NO, initial, where, 0, NO, device, None, None)
    return _core.reduce(TWICE_SUM, a, *given)


def reference(a, result):
    def of_real(x, kind):
        with np.errstate(all="ignore"):
            x = x.astype(np.float64).reshape(-1)
            special = x[~np.isfinite(x)].sum()
        if special != 0:  # or NaN
            return nan(kind) if np.isnan(special) else kind.type(special)
        total = exact_sum(x)
        if total == 0:
            minus = len(x) > 0 and bool((np.signbit(x) & (x == 0)).all())
            return kind.type(-0.0 if minus else 0.0)
        return nearest(2 * total, kind)

    return by_parts(of_real, a, result)


def numbers(dtype, shape, *key):
    """Close numbers, and outputs of any range, of zeros, NaN and infinities among them."""
    rng = generator("twice", dtype, shape, *key)
    a = draw(rng, dtype, int(np.prod(shape))).reshape(shape)
    flat = a.reshape(-1)
    n = len(flat)
    flat[n // 2 : n // 2 + n // 8] = finite_bits(rng, dtype, n // 8)
    flat[: n // 16] = -0.0
    flat[n // 3 :: 97], flat[n // 5 :: 389] = np.nan, np.inf
    return a


def check(a, axis, device, rows=None, **given):
    """Some outputs against the reference, each of the elements that `rows` says."""
    got = np.asarray(twice_sum(a, axis, device=device, **given))
    kept = np.moveaxis(a, axis, -1).reshape(-1, a.shape[axis])
    assert got.dtype == a.dtype and got.size == len(kept)
    some = generator("some", a.shape, axis).integers(0, len(kept), 40)
    for o in {0, len(kept) - 1, *some.tolist()}:
        x = kept[o] if rows is None else rows(kept[o], o)
        assert_bits(got.reshape(-1)[o], reference(x.copy(), a.dtype), f"{a.shape}, {axis}, {o}")


def test_it_is_hidden():
    assert "twice_sum" not in OPS and "twice_sum" not in {row[0] for row in _core.rows()}
    assert not hasattr(gpureduce, "twice_sum")
    with pytest.raises(ValueError, match="twice_sum"):
        gpureduce.reduce(np.ones(3), "twice_sum")
    assert twice_sum(np.ones(3)) == 6
    with pytest.raises(TypeError):
        twice_sum(np.ones(3, int))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_whole_arrays(dtype, device):
    wrong = []
    for label, a in cases(dtype):
        got, want = twice_sum(a, device=device), reference(a, dtype)
        if bits(got) != bits(want):
            wrong.append(f"{label}: got {show(got)}, want {show(want)}")
    assert not wrong, "\n".join(wrong)


SHAPES = [(n, 150) for n in (1, 2, 3, 4, 5, 8, 16, 17, 31, 33, 40, 64, 65, 130, 300)]
SHAPES += [(5000, 3), (3, 5000), (5000, 70), (40, 9), (4097, 16), (2, 20_000), (9, 2000)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_one_of_many_outputs(dtype, shape, device):
    """Columns and rows, in order and apart, short and long."""
    a = numbers(dtype, shape)
    apart = np.zeros((shape[0], 2 * shape[1]), dtype)[:, ::2]
    apart[:] = a
    for b in (a, np.asfortranarray(a), apart, a[::-1, ::-1]):
        check(b, 0, device)
        check(b, 1, device)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_close_numbers_of_many_outputs(dtype, device):
    """Such as every quick way takes; and enough of them for the kernels of few rows."""
    rng = generator("close", dtype)
    for n, outputs in ((2, 140_000), (4, 70_000), (8, 40_000), (20, 9000), (64, 3000), (100, 500)):
        a = (1 + rng.random((n, outputs))).astype(dtype)
        check(a, 0, device)
        check(np.ascontiguousarray(a.T), 1, device)


@pytest.mark.gpu
@pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
@pytest.mark.parametrize("n", [2, 4, 16, 20, 64])
def test_few_rows_of_many_columns_on_a_device(dtype, n):
    rng = generator("wide", dtype, n)
    a = np.tile((1 + rng.random((n, 1 << 14))).astype(dtype), (1, 160))
    a[:, ::1001] = finite_bits(rng, dtype, a[:, ::1001].size).reshape(n, -1)
    check(a, 0, "cuda")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_masks(dtype, device):
    a = numbers(dtype, (33, 130))
    mask = generator("mask", dtype).random(a.shape) < 0.6
    mask[:, 5] = mask[7] = False
    for axis, lines in ((0, mask.T), (1, mask)):
        check(a, axis, device, lambda x, o, lines=lines: x[lines[o]], where=mask)
    want = reference(a[mask], dtype)
    assert_bits(twice_sum(a, where=mask, device=device), want, "all of it")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_initial_takes_part(dtype, device):
    for shape in ((33, 130), (2, 500), (300, 7)):
        a = numbers(dtype, shape)
        for value in (3, -0.0, np.inf):
            one = np.array([value], dtype)
            for axis in (0, 1):
                check(a, axis, device, lambda x, _, one=one: np.append(one, x), initial=one[0])
            got = twice_sum(a, initial=one[0], device=device)
            assert_bits(got, reference(np.append(one, a), dtype), f"all and {value}")
    for shape in ((0,), (0, 3), (3, 0)):
        got = twice_sum(np.zeros(shape, dtype), -1, device=device)
        assert not any(np.asarray(got).tobytes()), "sums of nothing are +0.0"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_other_dtypes(device):
    a = numbers(np.dtype("float32"), (40, 60))
    for name in ("float64", "float16"):
        there = a.astype(name)
        got = twice_sum(a, 0, dtype=np.dtype(name), device=device)
        for j in range(0, 60, 7):
            assert_bits(got[j], reference(there[:, j].copy(), there.dtype), f"{name}, {j}")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_segments(dtype, device):
    """Of all lengths: none, of one lane, of a team, of a warp, of several blocks."""
    a = numbers(dtype, (600_000,))
    rng = generator("segments", dtype)
    lengths = [0, 1, 2, 5, 24, 25, 48, 100, 192, 193, 700, 1536, 1537, 5000, 300_000, 0, 3]
    lengths += rng.integers(0, 300, 300).tolist()
    starts = np.concatenate([[0], np.cumsum(lengths)])[:-1]
    stops = starts + lengths
    got = _core.segments(TWICE_SUM, a, starts, stops, -1, None, None, NO, device, None)
    for i, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        assert_bits(got[i], reference(a[start:stop], dtype), f"segment {i} of {stop - start}")


def test_formats_are_those_of_the_reference():
    assert {real_of(numpy_dtype(name)).name for name in DTYPES} == set(FORMATS)
