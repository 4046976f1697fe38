"""Long rows on a device: under masks, without NaN and converted, from any place in memory on."""

import numpy as np
import pytest
from arrays import draw, generator
from device import on_device
from table import assert_bits, numpy_dtype
from test_variants import COUNT, WHY, fetched

import gpureduce

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}"),
    pytest.mark.filterwarnings("ignore:overflow", "ignore:All-NaN", "ignore:Mean of empty slice"),
]
SHAPES = [(1, 200_003), (40, 6_007), (900, 1_500), (3, 50, 3_001)]


def views(rng, dtype, shape):
    """Whole, and cut out of longer rows so that they begin anywhere."""
    a = draw(rng, dtype, int(np.prod(shape))).reshape(shape)
    yield a
    yield a[..., 1 : -int(rng.integers(1, 8))]


def compare(op, a, axis, **options):
    """options: arrays are on the device there."""
    there = {
        name: on_device(value) if isinstance(value, np.ndarray) else value
        for name, value in options.items()
    }
    function = getattr(gpureduce, op)
    got = function(on_device(a), axis=axis, **there)
    want = function(a, axis=axis, **options)
    assert_bits(fetched(got), want, f"{op} of {a.dtype} {a.shape} {a.strides}, {list(options)}")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("to", ["float32", "float64"])
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
def test_sums_of_integers_as_floats(dtype, to, shape):
    rng = generator("as floats", dtype, to, str(shape))
    axis = -1 if len(shape) == 2 else (0, 2)
    for a in views(rng, np.dtype(dtype), shape):
        for op in ("sum", "mean"):
            compare(op, a, axis, dtype=to)
    compare("sum", np.zeros(shape, dtype), axis, dtype=to, initial=-0.0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype, to", [("float16", "float32"), ("float16", "f8"), ("f4", "f8")])
def test_sums_of_floats_as_wider_ones(dtype, to, shape):
    rng = generator("wider", dtype, to, str(shape))
    axis = -1 if len(shape) == 2 else (0, 2)
    for a in views(rng, np.dtype(dtype), shape):
        compare("sum", a, axis, dtype=to)
        compare("nansum", a, axis, dtype=to)
        compare("sum", a, axis, dtype=to, where=rng.random(a.shape) < 0.7)
    compare("sum", np.full(shape, -0.0, dtype), axis, dtype=to)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "f8", "complex64"]
)
def test_masks(dtype, shape):
    """They begin anywhere too, stand still along an axis, or leave out all."""
    rng = generator("masks", dtype, str(shape))
    axis = -1 if len(shape) == 2 else (0, 2)
    for a in views(rng, numpy_dtype(dtype), shape):
        wide = rng.random((*a.shape[:-1], a.shape[-1] + 3)) < 0.5
        masks = wide[..., 3:], wide[..., :-3].copy(), np.zeros(a.shape, bool)
        same = np.broadcast_to(wide[:1, ..., 1:-2].copy(), a.shape)
        for where in (*masks, same):
            for op in ("sum", "mean"):
                compare(op, a, axis, where=where)
            compare("max", a, axis, where=where, initial=a.flat[0])
            compare("any", a, axis, where=where)


@pytest.mark.sanitized
@pytest.mark.parametrize("dtype, to", [("int8", "f4"), ("float16", "f4"), ("float32", "f8")])
def test_ends(dtype, to):
    """Of rows and masks that begin anywhere nothing else is read."""
    rng = generator("ends", dtype)
    for a in views(rng, np.dtype(dtype), (5, 3_001)):
        where = rng.random((5, a.shape[1] + 1))[:, 1:] < 0.7
        compare("sum", a, 1, where=where)
        compare("max", a, 1, where=where, initial=0)
        compare("sum", a, 1, dtype=to)
        compare("nansum", a, 1)


@pytest.mark.parametrize("axis", [0, 1, (0, 2)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_extremes_without_nan(dtype, axis):
    """Zeros of both signs, infinities, and outputs of which nothing is a number."""
    rng = generator("numbers", dtype, str(axis))
    kinds = np.array([0.0, -0.0, np.inf, -np.inf, 1.5, np.nan, np.nan], dtype)
    for shape in ((300, 2_000, 1), (9_000, 70, 1), (3, 40, 3_000)):
        a = kinds[rng.integers(0, rng.integers(2, 8), shape)]
        a[:, :3] = np.nan
        a[0, 5:] = draw(rng, np.dtype(dtype), a[0, 5:].size).reshape(a[0, 5:].shape)
        for op in ("nanmin", "nanmax"):
            compare(op, a, axis)
            compare(op, a[..., 0], axis if axis != (0, 2) else 0)
