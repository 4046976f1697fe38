"""Few outputs of many elements on a device, whose parts come together by blocks: the CPU's bits."""

import numpy as np
import pytest
from arrays import generator, near_one
from test_variants import took

from gpureduce import _core

COUNT, WHY = _core.device_count()

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}"),
]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_products_that_many_blocks_share(dtype):
    """Their parts fold by groups first, of which the last may be short."""
    rng = generator("groups", dtype)
    for shape in (20_000, 31), (100_003, 5), (3, 30_000, 17), (300_000, 2):
        a = near_one(rng, np.dtype(dtype), int(np.prod(shape))).reshape(shape)
        assert took("prod", a, len(shape) - 2, None)


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
