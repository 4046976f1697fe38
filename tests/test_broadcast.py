"""Arrays in which one number stands for many, as broadcast weights: sums take its multiples."""

import zlib

import numpy as np
import pytest
from arrays import SEED
from table import assert_bits

import gpureduce

DTYPES = ["f4", "f8", "c8", "c16", "f2", "i4"]
SHAPES = [(7, 513), (1, 20001), (3, 2, 1024), (2, 600, 2, 7)]


@pytest.fixture
def rng(request):
    return np.random.default_rng([SEED, zlib.crc32(request.node.name.encode())])


def numbers(rng, dtype, shape):
    """Of all sizes, so that nearly all sums are inexact; now and then special ones."""
    kind = np.dtype(dtype)
    if kind.kind == "i":
        return rng.integers(-(2**31), 2**31, shape).astype(kind)
    scale = {"f2": 8, "f4": 30, "c8": 30}.get(dtype, 200)

    def reals():
        a = rng.standard_normal(shape) * 2.0 ** rng.integers(-scale, scale, shape)
        special = rng.choice([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e300], shape)
        return np.where(rng.random(shape) < rng.choice([0, 0.02]), special, a)

    with np.errstate(over="ignore", invalid="ignore"):
        real = reals()
        return (real + 1j * reals()).astype(kind) if kind.kind == "c" else real.astype(kind)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_broadcast_array_has_the_sums_of_its_copy(rng, dtype, shape):
    for _ in range(3):
        spread = [1 if rng.random() < 0.5 else n for n in shape]
        a = np.broadcast_to(numbers(rng, dtype, spread), shape)
        masks = [True, rng.random(shape) < 0.4, np.broadcast_to(rng.random(shape[-1]) < 0.4, shape)]
        masks += [np.broadcast_to(rng.random((*shape[:-1], 1)) < 0.4, shape)]
        if rng.random() < 0.5:
            order = rng.permutation(len(shape))
            a = a.transpose(order)
            masks = [m if m is True else m.transpose(order) for m in masks]
        copy = a.copy()
        axes = [None, *range(a.ndim), (0, a.ndim - 1)] if a.ndim > 2 else [None, 0, 1]
        for axis in axes:
            for function in (gpureduce.sum, gpureduce.mean, gpureduce.var, gpureduce.max):
                if function is gpureduce.max and np.dtype(dtype).kind == "c":
                    continue
                for mask in masks:
                    extra = {"where": mask}
                    if function is gpureduce.max:
                        extra["initial"] = a.dtype.type(-3)
                    ours = function(a, axis=axis, **extra)
                    whole = function(copy, axis=axis, **extra)
                    assert_bits(ours, whole, f"{function.__name__} along {axis} of {spread}")
            ours, whole = (gpureduce.nansum(x, axis=axis) for x in (a, copy))
            assert_bits(ours, whole, f"nansum along {axis} of {spread}")


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_what_would_overflow_is_added_number_by_number(dtype):
    most = np.finfo(dtype).max
    a = np.broadcast_to(np.array([[most], [-most]], dtype), (2, 1000))
    keep = np.ones(a.shape, bool)
    keep[0, ::2] = False
    keep[1, ::2] = False
    keep[1, 1] = False
    assert gpureduce.sum(a) == 0
    assert gpureduce.sum(a, where=keep) == most
    assert np.all(gpureduce.mean(a, axis=1) == [most, -most])


def test_partials_and_parts_of_a_broadcast_array(rng):
    a = np.broadcast_to(rng.standard_normal((300, 1)).astype("f4"), (300, 3000))
    keep = rng.random(a.shape) < 0.3
    whole = gpureduce.sum(a, where=keep)
    parts = [gpureduce.partials(a[i::3], "sum", where=keep[i::3]) for i in range(3)]
    assert gpureduce.finish(gpureduce.merge(parts)) == whole
    assert gpureduce.sum(a.T, where=keep.T) == whole == gpureduce.sum(a.copy(), where=keep)
