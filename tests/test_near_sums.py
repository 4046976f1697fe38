"""Exact states of numbers whose exponents lie closer together, or further apart, than those that
are added up at once: of rows and of columns, with zeros, and beside what is no number."""

from fractions import Fraction

import numpy as np
import pytest
from arrays import generator

import gpureduce

SHAPE = (200, 37)  # blocks of 64 rows, and of 128 to 1,024 numbers of a row; some are left over
APART = (0, 18, 19, 20, 21, 22, 23, 24, 25, 39, 40, 41, 42, 43, 60)


def drawn(label, dtype, apart):
    """All bits of the mantissa, and exponents of which the least and the greatest are there."""
    rng = generator(label)
    x = rng.uniform(1, 2, SHAPE) * rng.choice([-1.0, 1.0], SHAPE)
    x *= np.exp2(rng.choice([0, apart], SHAPE))
    x[rng.random(SHAPE) < 0.1] = rng.choice([0.0, -0.0])
    return x.astype(dtype)


def moments(x):
    values = [Fraction(float(v)) for v in x]
    return sum(values), sum(v * v for v in values)


@pytest.mark.parametrize("apart", APART)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_and_squares(dtype, apart):
    x = drawn(f"near {dtype} {apart}", dtype, apart)
    for a in (x, np.asfortranarray(x), x.T.copy().T, np.repeat(x, 2, axis=1)[:, ::2]):
        sums = gpureduce.finish(gpureduce.partials(a, "sum", axis=0), dtype="f8")
        spreads = gpureduce.finish(gpureduce.partials(a, "var", axis=0), dtype="f8")
        for j in range(0, SHAPE[1], 4):
            total, squares = moments(x[:, j])
            n = SHAPE[0]
            assert sums[j] == float(total)
            assert spreads[j] == float((n * squares - total * total) / (n * n))
    flat, (total, squares) = x.ravel(), moments(x.ravel())
    p, n = gpureduce.partials(flat, "var"), x.size
    assert gpureduce.finish(p, "sum", dtype="f8") == float(total)
    assert gpureduce.finish(p, dtype="f8") == float((n * squares - total * total) / (n * n))
    for step in (1, 100, 1024, 5000):
        parts = [gpureduce.partials(flat[i : i + step], "var") for i in range(0, n, step)]
        assert np.array_equal(gpureduce.words(gpureduce.merge(parts)), gpureduce.words(p))


@pytest.mark.parametrize("odd", [np.nan, np.inf, 3e38, 1e-45, 0.0])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
def test_one_number_is_no_matter_where(dtype, odd):
    x = drawn(f"odd {dtype}", "f4", 9)
    for place in (0, 63, 64, 199):
        y = x.copy()
        y[place, 5] = odd
        y = y.astype(dtype)
        for op in ("sum", "var"):
            p = gpureduce.words(gpureduce.partials(y, op, axis=0))
            for j in (4, 5):
                one = gpureduce.words(gpureduce.partials(y[:, j].copy(), op))
                parts = [gpureduce.partials(y[i : i + 1, j], op) for i in range(SHAPE[0])]
                assert np.array_equal(p[j], one)
                assert np.array_equal(gpureduce.words(gpureduce.merge(parts)), one)


@pytest.mark.parametrize("columns", [2, 3, 4, 7, 15])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8"])
def test_rows_of_few_columns(dtype, columns):
    rng = generator(f"few columns {dtype} {columns}")
    x = (rng.normal(size=(1000, columns)) * np.exp2(rng.integers(0, 9, columns))).astype(dtype)
    x[700, -1] = np.inf if columns == 4 else 1e4
    for op in ("sum", "var"):
        found = gpureduce.words(gpureduce.partials(x, op, axis=0))
        for j in range(columns):
            one = gpureduce.partials(x[:, j].copy(), op)
            assert np.array_equal(found[j], gpureduce.words(one))


def test_zeros_keep_their_signs():
    for dtype in ("f2", "f4", "f8"):
        x = np.full(SHAPE, -0.0, dtype)
        x[150, 7] = 0.0
        for found in (
            gpureduce.finish(gpureduce.partials(x, "sum", axis=0)),
            gpureduce.finish(gpureduce.partials(x.T, "sum", axis=1)),
        ):
            assert np.signbit(found).sum() == SHAPE[1] - 1 and not np.signbit(found[7])


@pytest.mark.parametrize("near", [0.0, -0.0, np.nextafter(2, 0), np.nextafter(-1e-308, 0)])
def test_many_of_one_exponent_beside_the_whole_range(near):
    """More of them than the word of one exponent holds."""
    x = np.full(1 << 15, near)
    for i, other in enumerate((1e300, 1e-300, 5e-324, -1e300)):
        x[i::500] = other
    for a in (x, x + 1j * x[::-1]):
        found = gpureduce.finish(gpureduce.partials(a, "sum"))
        assert found.real == float(moments(a.real)[0])
        assert found.imag == float(moments(a.imag)[0])


def special_sum(column):
    """Of reals of which some are no numbers: None where they are all finite."""
    if np.isnan(column).any() or {np.inf, -np.inf} <= set(column):
        return np.nan
    infinite = column[np.isinf(column)]
    return infinite[0] if len(infinite) else None


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("rate", [0.002, 0.02, 0.2])
def test_columns_that_are_nan_already(dtype, rate):
    """NaN and infinities come in different blocks of 64 rows; beside them the sums are exact."""
    rng = generator("special", dtype, rate)
    for columns in (8, 37):
        x = rng.standard_normal((600, columns))
        x[rng.random(x.shape) < rate] = np.nan
        for odd in (np.inf, -np.inf, np.nan):
            x[rng.integers(600, size=3), rng.integers(columns, size=3)] = odd
        x[:, 1] = rng.standard_normal(600)
        x = x.astype(dtype)
        x = x + 1j * np.roll(x.real, 1, axis=1) if dtype[0] == "c" else x
        sums = gpureduce.finish(gpureduce.partials(x, "sum", axis=0), dtype=dtype)
        np.testing.assert_array_equal(gpureduce.sum(x, axis=0), sums)
        means = gpureduce.mean(x, axis=0)
        for part in ("real", "imag")[: 1 + (dtype[0] == "c")]:
            for j in range(columns):
                column = getattr(x, part)[:, j]
                want = special_sum(column)
                if want is None:
                    total = sum(map(Fraction, column.tolist()))
                    want = column.dtype.type(float(total))
                np.testing.assert_equal(getattr(sums, part)[j], want)
                assert np.isfinite(want) == np.isfinite(getattr(means, part)[j])
