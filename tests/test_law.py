"""The same bits however it was computed: threads, instruction sets, layouts, order, chunks."""

import numpy as np
import pytest
from arrays import THREADED_BYTES, draw, finite_bits, generator, is_float, near_one, values
from isa import ISAS, run_on
from table import OPS, assert_bits, bits, call, numpy_dtype, rows

import gpureduce


def is_ordered(row):
    return row[3] == "tree" or OPS[row[0]]["position"]


HARD = rows(law="exact") + rows(law="tree") + rows(op="argmax") + rows(op="max")
# Unordered rows first: pytest brings tests together by a row's place in the list, which is then the
# same in UNORDERED.
HARD.sort(key=is_ordered)
UNORDERED = [row for row in HARD if not is_ordered(row)]
# 16-bit products are rounded once, at the root, and a chunk's product is rounded too.
UNROUNDED = [row for row in rows(law="tree") if numpy_dtype(row[1]).itemsize > 2]
REALS = [row for row in rows(op="sum") if numpy_dtype(row[1]).kind in "fcV"]


def large_arrays(op, dtype):
    """(label, array) big enough for several threads, with something to decide in every part."""
    rng = generator("law", op, dtype)
    n = 8 * THREADED_BYTES // dtype.itemsize + 77  # folds long enough for helpers to be asked
    if not (is_float(dtype) or dtype.kind == "c"):
        yield "draws", draw(rng, dtype, n)
        return
    if op == "prod":
        yield "near one", near_one(rng, dtype, n)
        return
    yield "draws", draw(rng, dtype, n)
    yield "random bits", finite_bits(rng, dtype, n)


@pytest.fixture(scope="module")
def large(request):
    """(op, dtype, large arrays), drawn once for all tests of a row: pytest brings them together."""
    op, name, *_ = request.param
    dtype = numpy_dtype(name)
    return op, dtype, list(large_arrays(op, dtype))


def half(a):
    """Of several threads too, and enough where each layout is made by a copy."""
    return a[: len(a) // 30 * 15]


def each_large(rows):
    return pytest.mark.parametrize("large", rows, indirect=True, ids="-".join)


@each_large(HARD)
def test_any_number_of_threads(large):
    op, _, arrays = large
    for label, a in arrays:
        gpureduce.set_num_threads(1)
        want = call(op, a), call(op, a[::-2])
        for threads in (2, 3, 7):
            gpureduce.set_num_threads(threads)
            assert_bits(call(op, a), want[0], f"{op}, {label}, {threads} threads")
            assert_bits(call(op, a[::-2]), want[1], f"{op}, {label}, strided, {threads} threads")


ISA_SCRIPT = """
import warnings
from arrays import values, generator, THREADED_BYTES, draw
from table import ROWS, OPS, bits, call, numpy_dtype
warnings.simplefilter("ignore")
for op, name, result, law in ROWS:
    dtype = numpy_dtype(name)
    for label, a in values(dtype):
        print(op, name, label, bits(call(op, a))[2].hex())
"""


AXES_SCRIPT = """
import warnings
from zlib import crc32
from arrays import draw, finite_bits, generator
from table import ROWS, bits, call, numpy_dtype
warnings.simplefilter("ignore")
SHAPES = [(2, 150), (5, 150), (17, 150), (40, 150), (70, 150), (300, 40), (5000, 70)]
SHAPES += [(40, 9), (5000, 9), (5000, 15)]
for op, name, result, law in ROWS:
    dtype = numpy_dtype(name)
    if name not in ("float16", "float32", "float64", "complex64", "int16") or op.startswith("nan"):
        continue
    for rows, columns in SHAPES:
        rng = generator("axes", op, name, rows)
        a = draw(rng, dtype, rows * columns)
        if dtype.kind in "fc" and columns > 15:
            a[: 9 * rows] = finite_bits(rng, dtype, 9 * rows)
        for b in (a.reshape(rows, columns), a.reshape(columns, rows).T.copy()):
            for axis in (0, 1):
                print(op, name, b.shape, axis, crc32(bits(call(op, b, axis=axis))[2]))
"""


@pytest.mark.parametrize("script", [ISA_SCRIPT, AXES_SCRIPT], ids=["whole", "axes"])
def test_every_instruction_set(script):
    outputs = dict(run_on(isa, script) for isa in ISAS)
    assert "plain" in outputs
    for used, text in outputs.items():
        same = outputs["plain"].splitlines()
        wrong = [pair for pair in zip(same, text.splitlines(), strict=True) if pair[0] != pair[1]]
        assert not wrong, f"{used} differs from plain: {wrong[:5]}"


@each_large(HARD)
def test_wherever_it_lies(large):
    """Moved by one element, strided, byte-swapped, a matrix in either order."""
    op, dtype, arrays = large
    for label, a in arrays:
        a = half(a)
        want = call(op, a)
        room = np.empty(2 * len(a) + 1, dtype)
        moved, strided = room[1 : len(a) + 1], room[1::2]
        moved[:] = a
        assert_bits(call(op, moved), want, f"{op}, {label}, moved by one")
        strided[:] = a
        assert_bits(call(op, strided), want, f"{op}, {label}, strided")
        swapped = a.astype(dtype.newbyteorder())
        assert_bits(call(op, swapped), want, f"{op}, {label}, byte-swapped")
        for shape in ((3, -1), (-1, 5), (5, -1, 3)):
            assert_bits(call(op, a.reshape(shape)), want, f"{op}, {label}, {shape}")
            fortran = np.asfortranarray(a.reshape(shape))
            assert_bits(call(op, fortran), want, f"{op}, {label}, {shape} in Fortran order")


@each_large(HARD)
def test_in_whatever_order_it_lies(large):
    """Axes in any order of memory: neighbours there lie far apart in the index, or near."""
    op, dtype, arrays = large
    rng = generator("axes", op, dtype)
    for label, a in arrays:
        a = half(a)
        for _ in range(6):
            shape = tuple(int(n) for n in rng.integers(2, (12, 60, 30, 9)))
            shape = rng.permutation((*shape, len(a) // np.prod(shape)))
            matrix = a[: np.prod(shape)].reshape(shape)
            order = rng.permutation(len(shape))
            lies = np.ascontiguousarray(matrix.transpose(order)).transpose(np.argsort(order))
            want = call(op, matrix)
            assert_bits(call(op, lies), want, f"{op}, {label}, {shape}, memory {order}")
            swapped = lies.astype(dtype.newbyteorder(), order="K")
            assert_bits(call(op, swapped), want, f"{op}, {label}, {shape}, swapped {order}")


def test_what_is_settled_early_in_another_order():
    a = np.zeros((300, 80, 70))
    for place in ((0, 0, 1), (3, 2, 1), (17, 79, 69), (299, 79, 69)):
        a[place] = np.nan
        want = np.ravel_multi_index(place, a.shape)
        for order in ((2, 1, 0), (1, 2, 0), (0, 2, 1)):
            lies = np.ascontiguousarray(a.transpose(order)).transpose(np.argsort(order))
            assert gpureduce.argmax(lies) == want
            lies[(-1,) * 3] = np.nan
            assert gpureduce.argmin(lies) == want
        a[place] = 0


@each_large(UNORDERED)
def test_order_does_not_matter(large):
    op, dtype, arrays = large
    rng = generator("order", op, dtype)
    for label, a in [*values(dtype), *((label, half(a)) for label, a in arrays)]:
        want = call(op, a)
        assert_bits(call(op, a[::-1]), want, f"{op}, {label}, reversed")
        assert_bits(call(op, rng.permutation(a)), want, f"{op}, {label}, permuted")
        matrix = a[: len(a) // 2 * 2].reshape(2, -1) if len(a) > 1 else a
        assert_bits(call(op, matrix.T), call(op, matrix), f"{op}, {label}, transposed")


@pytest.mark.parametrize(("op", "dtype", "result", "law"), REALS, ids=lambda x: x)
def test_zeros_change_no_sum(op, dtype, result, law):
    dtype = numpy_dtype(dtype)
    zeros = np.zeros(1000, dtype)
    for label, a in values(dtype):
        want = call(op, np.append(a, zeros[:1]))  # one turns -0.0 into 0.0
        for padded in (
            np.append(zeros[:1], a),
            np.append(a, zeros),
            np.insert(a, len(a) // 2, zeros),
        ):
            assert_bits(call(op, padded), want, f"{label}, with {len(padded) - len(a)} zeros")
        minus = np.append(a, -zeros)
        assert_bits(call(op, minus), call(op, a), f"{label}, with -0.0 appended")


@pytest.mark.parametrize(("op", "dtype", "result", "law"), UNROUNDED, ids=lambda x: x)
def test_products_of_aligned_chunks_multiply_to_the_product(op, dtype, result, law):
    """Aligned blocks of a power of two are nodes of the tree."""
    dtype = numpy_dtype(dtype)
    a = near_one(generator("chunks", dtype), dtype, 2**16)
    for log in (0, 3, 9, 10, 11, 14):
        chunks = a.reshape(-1, 2**log)
        parts = np.array([call(op, chunk) for chunk in chunks])
        assert_bits(call(op, parts), call(op, a), f"chunks of 2**{log}")


@pytest.mark.parametrize(("op", "dtype", "result", "law"), rows(op="sum"), ids=lambda x: x)
def test_sums_of_chunks_add_to_the_sum(op, dtype, result, law):
    """With values whose partial sums are exact, so that only the cuts could show."""
    dtype = numpy_dtype(dtype)
    rng = generator("cuts", dtype)
    a = rng.integers(0, 2 if dtype.itemsize < 4 else 8, 250).astype(np.int64).astype(dtype)
    cuts = np.sort(rng.integers(0, len(a), 6))
    parts = np.array([call(op, part) for part in np.split(a, cuts)])
    assert_bits(call(op, parts), call(op, a), f"cut at {cuts}")


def test_the_number_in_the_issue():
    """2^25 times float32(0.1), which NumPy's order misses, rounds to this."""
    assert_bits(gpureduce.sum(np.full(2**25, 0.1, np.float32)), np.float32(3355443.25), "0.1")


def test_one_number_many_ways():
    """Ten arrangements of the same million numbers, one sum."""
    rng = generator("arrangements")
    a = rng.standard_normal(10**6).astype(np.float32) * np.float32(1000)
    every_other = np.zeros(2 * len(a), np.float32)
    every_other[::2] = a
    arrangements = [
        a,
        a[::-1],
        np.append(np.float32(0), a),
        rng.permutation(a),
        np.sort(a),
        every_other,
        every_other[::2],
        a.reshape(1000, 1000).T,
        a.astype(np.float64).astype(np.float32),
        np.concatenate([a[500_000:], a[:500_000]]),
    ]
    assert len({bits(gpureduce.sum(x)) for x in arrangements}) == 1
