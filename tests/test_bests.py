"""Extremes and their places where NaN, infinities and ties meet: many lines, a few columns, complex
numbers by their parts."""

import itertools
import math
import warnings

import numpy as np
import pytest
from arrays import generator, random_bits

import gpureduce

SHAPES = [(900, 2), (500, 7), (30, 50), (5, 300), (2, 90), (90, 1), (3, 400, 4), (9, 16, 3)]
PARTS = {
    "numbers": lambda rng, shape: rng.standard_normal(shape),
    "ties": lambda rng, shape: rng.integers(-2, 3, shape) * 1.0,
    "infinities": lambda rng, shape: rng.choice([np.inf, -np.inf, 1.0], shape),
    "the worst of all": lambda rng, shape: np.full(shape, rng.choice([np.inf, -np.inf])),
}


def cases(op, dtype, kind):
    """Arrays without NaN and with more and more of them, each along each axis."""
    rng = generator(f"{op} {dtype} {kind}")
    for shape in SHAPES:
        a = PARTS[kind](rng, shape).astype(dtype)
        if np.iscomplexobj(a):
            a.imag = PARTS[kind](rng, shape)
        for share in (0, 0.01, 0.9, 1):
            given = np.where(rng.random(shape) < share, a.dtype.type(np.nan), a)
            yield from ((given, axis) for axis in range(a.ndim))


def answer(function, a, axis):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            return function(a, axis=axis), {str(one.message) for one in said}
        except ValueError as error:
            return str(error), set()


@pytest.mark.parametrize("kind", PARTS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("op", ["min", "max", "argmin", "argmax"])
def test_where_nan_and_ties_meet(op, dtype, kind):
    for a, axis in cases(op, dtype, kind):
        got, wanted = (getattr(library, op)(a, axis=axis) for library in (gpureduce, np))
        np.testing.assert_array_equal(got, wanted, str(a.shape))


@pytest.mark.parametrize("kind", ["numbers", "ties"])  # of infinities NumPy finds NaN's place
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("op", ["nanmin", "nanmax", "nanargmin", "nanargmax"])
def test_nan_that_does_not_count(op, dtype, kind):
    for a, axis in cases(op, dtype, kind):
        got, said = answer(getattr(gpureduce, op), a, axis)
        wanted, told = answer(getattr(np, op), a, axis)
        np.testing.assert_array_equal(got, wanted, str(a.shape))
        assert said == told, a.shape


def test_any_byte_but_zero_is_true():
    """As one byte is as good as another, none is greater, and results have the byte 1."""
    rng = generator("truth")
    ops = ("max", "min", "minmax", "argmax", "argmin", "argminmax", "any", "all", "count_nonzero")
    for shape in ((1, 40), (6, 2), (2, 300), (300, 2), (9, 64), (5, 3, 7), (8, 1)):
        for share in (0.0, 0.3, 0.9):
            a = random_bits(rng, np.dtype(np.uint8), math.prod(shape)).reshape(shape)
            a[rng.random(shape) < share] = 0
            for view in (a, a[::-1], a.T):
                for op, axis in itertools.product(ops, range(a.ndim)):
                    got, want = (
                        getattr(gpureduce, op)(x, axis=axis) for x in (view.view(bool), view != 0)
                    )
                    assert np.asarray(got).tobytes() == np.asarray(want).tobytes(), (op, shape)
