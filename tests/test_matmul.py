"""reduce(m, "matmul2x2"): a product whose order shows, on the one tree, equal in every bit.

The reference is the short tree of reference.py; for integers modulo 2^64, which any order of the
brackets leaves alone, NumPy's own product from left to right too."""

import functools

import numpy as np
import pytest
from arrays import SMALL, draw, finite_bits, generator, layouts, random_bits
from device import Interface, Pinned, interface_of, on_device
from reference import matmul_of
from table import assert_bits

import gpureduce
from gpureduce import _core

COUNT, WHY = _core.device_count()
TYPES = [np.dtype("f8"), np.dtype("i8")]
BYTES = 32  # of a matrix
each_type = pytest.mark.parametrize("dtype", TYPES, ids=str)
KIB, MIB = 1 << 10, 1 << 20
# A part of one thread; rows, groups and chunks of the device; 64 chunks.
EDGES = [edge * KIB // BYTES + d for edge in (1, 4, 64, 128, 256, 4096) for d in (-1, 0, 1)]


def product(m, **arguments):
    return gpureduce.reduce(m, "matmul2x2", **arguments)


def tame(rng, dtype, n):
    """Matrices whose product neither vanishes nor overflows: rotations, and odd determinants."""
    if dtype.kind == "f":
        angle, scale = rng.uniform(0, 7, n), rng.uniform(0.999, 1.001, n)
        c, s = np.cos(angle) * scale, np.sin(angle) * scale
        return np.stack([c, -s, s + 1e-9, c], axis=-1).reshape(n, 2, 2)
    m = draw(rng, dtype, 4 * n).reshape(n, 2, 2)
    m[:, 0, 0] |= 1
    m[:, 1, 1] |= 1
    m[:, 0, 1] &= ~1
    return m


def nasty(dtype):
    """(label, matrices) of what is hard."""
    rng = generator("matmul", dtype)
    pool = tame(rng, dtype, max(SMALL) + 1)
    for n in SMALL:
        yield f"{n} matrices", pool[:n]
    yield "random bits", random_bits(rng, dtype, 4 * 3001).reshape(-1, 2, 2)
    if dtype.kind == "f":
        yield "random bits, finite", finite_bits(rng, dtype, 4 * 3001).reshape(-1, 2, 2)
        yield "few random bits, finite", finite_bits(rng, dtype, 4 * 3).reshape(-1, 2, 2)
        for value in (np.nan, np.inf, -0.0, 5e-324):
            m = pool[:1001].copy()
            m[500, 1, 0] = value
            yield f"{value} in the middle", m
        yield "-0.0 alone", np.full((1, 2, 2), -0.0)
        yield "-0.0", np.full((100, 2, 2), -0.0)


def laid(dtype):
    """(label, matrices): the layouts of all arrays, of matrices and within them."""
    m = tame(generator("laid", dtype), dtype, 3000)
    for label, a in layouts(np.arange(3000)):
        if a.ndim == 1:
            continue
        rows = np.resize(m, (*a.shape, 2, 2))
        if rows.ndim <= 32:
            yield label, rows.reshape(-1, 2, 2)
    raw = np.zeros(m.nbytes + 1, np.uint8)
    moved = raw[1:].view(dtype).reshape(m.shape)
    moved[:] = m
    wide = np.zeros((3000, 3, 5), dtype)
    wide[:, ::2, 1::3] = m
    read_only = m.copy()
    read_only.flags.writeable = False
    yield "reversed", m[::-1]
    yield "strided", m[::3]
    yield "moved by a matrix", m[1:]
    yield "moved by a number", m.reshape(-1)[2:-2].reshape(-1, 2, 2)
    yield "moved by half a matrix", m.reshape(-1)[1:-3].reshape(-1, 2, 2)
    yield "unaligned", moved
    yield "byte-swapped", m.astype(dtype.newbyteorder())
    yield "byte-swapped and strided", m.astype(dtype.newbyteorder())[::-2]
    yield "read-only", read_only
    yield "Fortran order", np.asfortranarray(m)
    yield "transposed", m.transpose(0, 2, 1)
    yield "rows reversed", m[:, ::-1]
    yield "columns reversed", m[:, :, ::-1]
    yield "part of wider ones", wide[:, ::2, 1::3]
    yield "broadcast", np.broadcast_to(m[7], (1000, 2, 2))
    yield "one number", np.broadcast_to(m[:, :1, :1], (3000, 2, 2))
    yield "one matrix, transposed", m[:1].transpose(0, 2, 1)


@each_type
def test_nasty_matrices(dtype):
    for label, m in [*nasty(dtype), *laid(dtype)]:
        assert_bits(product(m), matmul_of(m, dtype), label)


def test_integers_are_numpys_left_to_right():
    m = tame(generator("left"), np.dtype("i8"), 3000)
    for n in (1, 2, 3, 64, 1000, 2999):
        assert_bits(product(m[:n]), functools.reduce(np.matmul, m[:n]), f"{n} matrices")


def test_order_is_kept():
    m = tame(generator("order"), np.dtype("i8"), 1001)
    assert not np.array_equal(product(m), product(m[::-1]))
    assert not np.array_equal(product(m[:2]), product(m[1::-1]))


@each_type
@pytest.mark.parametrize("n", [20_000, 300_001])
def test_any_number_of_threads(dtype, n):
    m = tame(generator("threads", dtype), dtype, n)
    swapped = m.astype(dtype.newbyteorder())
    want = matmul_of(m, dtype)
    for threads in (1, 2, 3, 7):
        gpureduce.set_num_threads(threads)
        assert_bits(product(m), want, f"{threads} threads")
        assert_bits(product(swapped), want, f"swapped, {threads} threads")


@each_type
def test_products_of_aligned_chunks_multiply_to_the_product(dtype):
    """Aligned blocks of a power of two are nodes of the tree."""
    m = tame(generator("chunks", dtype), dtype, 2**14)
    for log in (0, 3, 8, 10, 13):
        parts = np.stack([product(chunk) for chunk in m.reshape(-1, 2**log, 2, 2)])
        assert_bits(product(parts), product(m), f"chunks of 2**{log}")


def test_the_result_is_an_array_of_its_own():
    for m in (np.ones((3, 2, 2)), np.ones((1, 2, 2)), np.ones((0, 2, 2), int)):
        got = product(m)
        assert got.shape == (2, 2) and got.flags.c_contiguous and got.flags.owndata
        got[0, 0] = 7  # and writable
        assert not np.shares_memory(got, m) and (m == 1).all()
    assert_bits(product(np.ones((0, 2, 2), int)), np.eye(2, dtype=int), "none")
    assert_bits(product(np.ones((0, 2, 2))), np.eye(2), "none")
    assert_bits(product([[[1, 2], [3, 4]], [[0, 1], [1, 0]]]), np.array([[2, 1], [4, 3]]), "lists")


@pytest.mark.parametrize("of", ["bool", "int8", "uint16", "int32", "float16", "float32", ">f4"])
@each_type
def test_dtype_is_converted_to_first(dtype, of):
    m = generator("cast", of).integers(0, 2, (1000, 2, 2)).astype(of)
    for label, a in (("contiguous", m), ("strided", m[::-3]), ("none", m[:0])):
        assert_bits(product(a, dtype=dtype), matmul_of(a, dtype), label)


@each_type
def test_initial_stands_to_the_left(dtype):
    m = tame(generator("initial", dtype), dtype, 100)
    for a in (m, m[:1], m[:0]):
        for initial in (m[-1], m[-1].tolist(), m[-1].T, m[-1].astype(dtype.newbyteorder())):
            want = matmul_of(a, dtype, initial)
            assert_bits(product(a, initial=initial), want, f"{len(a)} matrices")


@pytest.mark.parametrize("shape", [(), (4,), (2, 2), (3, 4), (2, 3, 2), (5, 2, 3), (1, 3, 2, 2)])
def test_other_shapes_are_refused(shape):
    for m in (np.ones(shape), np.ones((0, *shape))):
        said = str(m.shape).replace("(", r"\(").replace(")", r"\)")
        if m.shape[1:] != (2, 2):
            with pytest.raises(ValueError, match=rf"matmul2x2.*{said}.*\(n, 2, 2\)"):
                product(m)


@pytest.mark.parametrize("of", ["?", "i4", "u8", "f4", "f2", "c16", "M8[s]", "O", "V3"])
def test_other_dtypes_are_refused(of):
    with pytest.raises(TypeError, match="matmul2x2"):
        product(np.zeros((3, 2, 2), of))


@pytest.mark.parametrize(
    "initial", [3, [1, 2], [[1, 2, 3]], np.ones((1, 2, 2)), [["a", 1], [1, 1]]]
)
def test_other_initials_are_refused(initial):
    with pytest.raises(ValueError):
        product(np.ones((3, 2, 2)), initial=initial)


# --- on a device ----------------------------------------------------------------------------------

needs_gpu = [pytest.mark.gpu, pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")]


def on_gpu(test):
    return functools.reduce(lambda made, mark: mark(made), needs_gpu, test)


def compare(label, m, given=None):
    """The GPU half from the host and from the device beside the CPU half."""
    want = product(m, device="cpu")
    assert_bits(product(m, device="cuda"), want, f"{label}, host")
    assert_bits(product(on_device(m) if given is None else given), want, f"{label}, device")


@on_gpu
@each_type
def test_nasty_matrices_on_the_gpu(dtype):
    for label, m in [*nasty(dtype), *laid(dtype)]:
        compare(label, m)


@on_gpu
@each_type
def test_sizes_around_every_edge_on_the_gpu(dtype):
    m = tame(generator("edges", dtype), dtype, max(EDGES) + 2)
    whole = on_device(m)
    address = whole.__cuda_array_interface__["data"][0]
    for n in EDGES:
        for start in (0, 1):
            part = m[start : start + n]
            given = Interface(interface_of(part, address + start * BYTES), whole)
            compare(f"{n} matrices from {start}", part, given)
        part = m.reshape(-1)[1 : 4 * n + 1].reshape(-1, 2, 2)
        given = Interface(interface_of(part, address + 8), whole)
        compare(f"{n} matrices, 8 bytes on", part, given)


@on_gpu
@each_type
def test_pieces_of_the_ring(dtype):
    """Pageable, pinned and strided host arrays of several pieces of 8 MiB."""
    few = tame(generator("ring", dtype), dtype, 10_007)
    m = np.resize(few, (50 * MIB // BYTES + 13, 2, 2))
    pinned = Pinned(m.nbytes)
    fixed = pinned.array(dtype).reshape(m.shape)
    fixed[:] = m
    want = product(m, device="cpu")
    assert_bits(product(m, device="cuda"), want, "pageable")
    assert_bits(product(fixed, device="cuda"), want, "pinned")
    compare("reversed", m[::-1])
    compare("columns reversed", m[: 9 * MIB // BYTES, :, ::-1])


@on_gpu
@each_type
def test_the_third_level_of_the_tree(dtype):
    full = 128 * MIB // BYTES
    m = np.resize(tame(generator("third", dtype), dtype, 100_003), (full + 5, 2, 2))
    whole = on_device(m)
    address = whole.__cuda_array_interface__["data"][0]
    for n in (full - 1, full, full + 1, full // 64 * 3 - 7):
        compare(f"{n} matrices", m[:n], Interface(interface_of(m[:n], address), whole))


@on_gpu
@each_type
def test_more_than_one_launch(dtype):
    """Beyond 2^27 matrices, 4 GiB."""
    m = np.resize(tame(generator("two", dtype), dtype, 1_000_003), (2**27 + 2**20 + 3, 2, 2))
    given = on_device(m)
    assert_bits(product(given), product(m, device="cpu"), "two launches")


@on_gpu
@each_type
def test_dtype_and_initial_on_the_gpu(dtype):
    m = generator("gpu cast").integers(0, 2, (30_011, 2, 2)).astype("f4")
    for a in (m, m[::-2], m[:0]):
        want = product(a, dtype=dtype, initial=[[1, 2], [3, 4]], device="cpu")
        for given, device in ((a, "cuda"), (on_device(a), "auto")):
            got = product(given, dtype=dtype, initial=[[1, 2], [3, 4]], device=device)
            assert_bits(got, want, f"{len(a)} matrices, {device}")


@on_gpu
def test_other_shapes_are_refused_on_the_gpu():
    with pytest.raises(ValueError, match=r"\(4, 3\).*\(n, 2, 2\)"):
        product(on_device(np.ones((4, 3))))
    with pytest.raises(TypeError, match="matmul2x2"):
        product(on_device(np.ones((4, 2, 2), "f4")))


@pytest.mark.sanitized
@on_gpu
@each_type
def test_the_kernel_under_the_sanitizers(dtype):
    m = tame(generator("sanitized", dtype), dtype, 9000)
    for label, part in (("chunks", m), ("moved", m[3:300]), ("strided", m[:99:-2]), ("one", m[:1])):
        compare(label, part)
    compare("8 bytes on", m.reshape(-1)[1:-3].reshape(-1, 2, 2))
