"""argmin and argmax of long rows on a device, whose warps find the best of a batch before they look
for it: the first of what ties, as on the CPU, in whatever packet, lane and batch it lies, wherever
rows begin, and whatever lies beside them."""

import numpy as np
import pytest
from arrays import generator
from table import numpy_dtype
from test_places import matrices
from test_variants import took

from gpureduce import _core

COUNT, WHY = _core.device_count()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")]
SMALL = ["bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16"]
DTYPES = [*SMALL, "int32", "uint32", "float32", "int64", "float64"]
BYTES = (2100, 4096, 8208, 20_001)  # a warp's batch is 4096 bytes


def drawn(dtype, n):
    of = np.dtype("float16" if dtype == "bfloat16" else dtype)
    return [(what, a.astype(numpy_dtype(dtype))) for what, a in matrices(of, n)]


def check(view, what, axis=None, kernel=None):
    """Of rows, or of all."""
    for op in ("argmax", "argmin"):
        assert took(op, view, axis, kernel), f"{op}, {view.dtype}, {what}, {view.shape}: {kernel}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", BYTES)
def test_the_first_place_of_long_rows(dtype, size):
    n = size // numpy_dtype(dtype).itemsize
    for what, a in drawn(dtype, n):
        check(a, what, axis=1, kernel="rows")
        check(a, what, axis=1)
        beside = np.empty((len(a), n + 3), a.dtype)
        for better in (0, 3):
            beside[:] = better
            beside[:, 1:-2] = a
            check(beside[:, 1:-2], f"{what}, cut out", axis=1, kernel="rows")
        check(a[0], what)
        check(beside[1, 1:-2], f"{what}, cut out")


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_whole_array_of_many_batches(dtype):
    rng = generator("batches", dtype)
    n = 3_000_001
    a = rng.integers(0, 2, n + 5).astype(numpy_dtype(dtype))
    for at in (0, 7, 4095, 4096, n // 2, n - 1):
        for view in (a[:n], a[1 : n + 1], a[5 : n + 5]):
            before = view[at]
            view[at] = 3  # or True
            check(view, f"at {at}", axis=0)
            check(view, f"at {at}")
            view[at] = before
