"""Cubed's arrays stay lazy, and any chunks give the bits of the whole."""

import numpy as np
import pytest
from arrays import finite_bits, generator
from table import OPS, bits

import gpureduce

# Zarr's of the bytes in which partials wait, of which its third format has no word yet.
pytestmark = pytest.mark.filterwarnings("ignore:The data type .RawBytes")
cubed = pytest.importorskip("cubed", reason="cubed is not installed")


def lazy_and_plain(*key):
    x = finite_bits(generator("cubed", *key), np.dtype("f4"), 12 * 9).reshape(12, 9)
    return cubed.from_array(x, chunks=(5, 4), spec=cubed.Spec(allowed_mem="200MB")), x


@pytest.mark.parametrize("name", ["sum", "mean", "nanstd", "max", "argmin", "minmax", "any"])
def test_any_chunks(name):
    lazy, x = lazy_and_plain(name)
    function = getattr(gpureduce, name)
    for axis in (None, 0, 1, (0, 1), ()):
        if OPS[name]["position"] and isinstance(axis, tuple):
            continue
        for keepdims in (False, True):
            got, want = (function(a, axis=axis, keepdims=keepdims) for a in (lazy, x))
            pairs = zip(*[r if isinstance(r, tuple) else (r,) for r in (got, want)], strict=True)
            for one, value in pairs:
                assert isinstance(one, cubed.Array)
                assert one.dtype == value.dtype and one.shape == np.shape(value)
                assert bits(one.compute()) == bits(value)


def test_what_is_not_taken():
    lazy, x = lazy_and_plain("not taken")
    with pytest.raises(TypeError, match="has an order"):
        gpureduce.prod(lazy)
    with pytest.raises(TypeError, match="where is not taken"):
        gpureduce.sum(lazy, where=x > 0)
    with pytest.raises(TypeError, match="comes in chunks"):
        gpureduce.Operator("f8", combine="a + b")(lazy)
