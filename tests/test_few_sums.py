"""Sums, means and deviations of few elements an output: they tie, cancel and end in zeros of either
sign so often that quick ways to them must tell such cases, and not only be close."""

from functools import partial

import numpy as np
import pytest
import reference
from arrays import generator

import gpureduce

DATA = {
    "of few bits": lambda rng, shape: np.ldexp(
        1.0 + rng.integers(0, 4, shape) * 2.0**-23, rng.integers(0, 4, shape)
    ),
    "of all bits": lambda rng, shape: np.ldexp(rng.standard_normal(shape), rng.integers(0, 5)),
    "that cancel": lambda rng, shape: rng.integers(-1, 2, shape) * 1.5,
    "zeros": lambda rng, shape: np.where(rng.random(shape) < 0.8, -0.0, 0.0),
    "far apart": lambda rng, shape: np.ldexp(
        rng.standard_normal(shape), rng.integers(0, 60, shape)
    ),
    "all too far apart for a window": lambda rng, shape: np.ldexp(
        rng.standard_normal(shape), rng.integers(-120, 120, shape)
    ),
    "tiny": lambda rng, shape: rng.integers(-9, 9, shape) * 2.0**-149,
    "huge": lambda rng, shape: rng.standard_normal(shape) * 2.0 ** rng.integers(1013, 1022),
    "far from zero": lambda rng, shape: rng.standard_normal(shape) + 1000.0,
    "special": lambda rng, shape: rng.choice(
        [1.5, -2.0, np.inf, np.nan], shape, p=[0.6, 0.3, 0.07, 0.03]
    ),
}
EXACT = {
    "sum": reference.sum_of,
    "mean": reference.mean_of,
    "std": reference.std_of,
    "var": reference.var_of,
}


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", EXACT)
def test_few_elements_an_output(op, dtype, kind):
    rng = generator(f"{op} {dtype} {kind}")
    function = partial(getattr(gpureduce, op), axis=0)
    for rows in (1, 2, 3, 4, 7, 16, 17, 65, 129):
        a = DATA[kind](rng, (rows, 37)).astype(dtype)
        wanted = [EXACT[op](a[:, column], a.dtype) for column in range(a.shape[1])]
        for given in (a, np.asfortranarray(a), np.repeat(a, 2, 1)[:, ::2]):
            with np.errstate(all="ignore"):
                got = function(given)
            assert got.tobytes() == np.array(wanted, dtype).tobytes(), (rows, kind)


@pytest.mark.parametrize("kind", ["of few bits", "that cancel", "far from zero"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_variances_of_few_under_a_mask(dtype, kind):
    """What does not count is a zero in between, which is none of the numbers."""
    rng = generator(f"masked {dtype} {kind}")
    for rows in (2, 3, 6, 17):
        a = DATA[kind](rng, (rows, 37)).astype(dtype)
        keep = rng.random(a.shape) < 0.6
        keep[0] = True
        wanted = [reference.var_of(x[k], a.dtype) for x, k in zip(a.T, keep.T, strict=True)]
        got = gpureduce.var(a, axis=0, where=keep)
        assert got.tobytes() == np.array(wanted, dtype).tobytes(), rows


@pytest.mark.parametrize("most", [1, 9, 100, 30000, 2**31 - 1, 2**62])
@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "i8"])
@pytest.mark.parametrize("op", ["var", "std"])
def test_variances_of_few_integers(op, dtype, most):
    rng = generator(f"{op} {dtype} {most}")
    most = min(most, np.iinfo(dtype).max)
    for rows in (1, 2, 3, 4, 7, 16, 65):
        a = rng.integers(-most if dtype[0] == "i" else 0, most, (rows, 37), dtype, endpoint=True)
        for ddof in range(min(rows, 2)):
            exact = getattr(reference, f"{op}_of")
            wanted = [exact(a[:, j], np.dtype("f8"), ddof) for j in range(a.shape[1])]
            for given in (a, np.asfortranarray(a)):
                got = getattr(gpureduce, op)(given, axis=0, ddof=ddof)
                assert got.tobytes() == np.array(wanted).tobytes(), (rows, ddof)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u4", "i8"])
@pytest.mark.parametrize("op", ["mean", "var", "std"])
def test_integers_as_doubles(op, dtype):
    """The same whether they are converted, or taken as they are where doubles hold them."""
    a = generator(f"{op} {dtype}").integers(0, 2**63, (9, 11), "i8").astype(dtype)
    for axis in (0, 1, None):
        wanted = getattr(gpureduce, op)(a.astype("f8"), axis=axis)
        assert np.array_equal(getattr(gpureduce, op)(a, axis=axis, dtype="f8"), wanted)


NUMBERS = "?bhiqBHIQefdFD"


@pytest.mark.parametrize("to", NUMBERS)
def test_elements_are_cast_as_by_numpy(to):
    """By one step, or by way of a type that has all values of the first."""
    for given in NUMBERS:
        a = np.arange(100).astype(given)
        if np.can_cast(given, to, "same_kind"):
            assert gpureduce.sum(a, dtype=to) == a.astype(to).sum(dtype=to), given


def test_means_of_integers_beyond_a_sign():
    a = np.full((3, 40), 2**64 - 50, np.uint64)
    assert (gpureduce.mean(a, axis=0) == float(2**64 - 50)).all()
    assert (gpureduce.mean(a.view(np.int64), axis=0) == -50).all()


def test_the_sign_of_a_mean_that_rounds_to_zero():
    """Greater numbers that cancel leave bounds on either side of zero."""
    for rows in (31, 46, 64, 65, 200):
        a = np.zeros((rows, 70), np.float16)
        a[0], a[-1], a[rows // 2] = 6e4, -6e4, -(2.0**-23)
        for columns in (1, 2, 3, 4, 8, 16, 33, 70):
            means = gpureduce.mean(np.ascontiguousarray(a[:, :columns]), axis=0)
            assert (means == 0).all() and np.signbit(means).all(), (rows, columns)


@pytest.mark.parametrize("op", ["mean", "nanmean"])
def test_a_tie_is_decided_by_what_is_far_below(op):
    """Of numbers near one, whose sum ends in the middle of a double, and the least there is."""
    rng = generator("ties", op)
    function = getattr(gpureduce, op)
    for n in (3, 4, 8, 11):
        a = rng.uniform(0.97, 1.03, (400, n))
        a[:, rng.integers(n)] = rng.choice([5e-324, -5e-324, 3e-323], 400)
        spare = np.insert(a, 1, 7.0, axis=1)
        counts = np.ones(spare.shape, bool)
        counts[:, 1] = False
        if op == "nanmean":
            spare[:, 1], counts = np.nan, np.ones(spare.shape, bool)
        wanted = np.array([reference.mean_of(row, row.dtype) for row in a])
        for given, where in ((a, np.ones(a.shape, bool)), (spare, counts)):
            turned = np.ascontiguousarray(given.T), np.ascontiguousarray(where.T)
            rows = function(given, axis=1, where=where)
            columns = function(turned[0], axis=0, where=turned[1])
            alone = [function(row, where=w) for row, w in zip(given, where, strict=True)]
            for got in (rows, columns, alone):
                assert np.array(got).tobytes() == wanted.tobytes(), n
