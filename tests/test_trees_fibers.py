"""Products of floats along axes as a device takes them, where there is none: planned as for one,
and run by fibers (tests/c/operator_fibers.cpp). The bits are the CPU's."""

import ctypes
import itertools
import math
import shutil
import subprocess

import numpy as np
import pytest
from arrays import SEED, generator
from operator_fibers import CHECKS, FAILURES, FLAGS, ROOT
from table import SANITIZED

import gpureduce

DIMS = 64
THREADS, CHUNKS = 1, 9
# Parts that blocks copy as they lie (tree_gathered.cuh): in lines, rows, of long rows, of columns.
LINES, ROWS, BESIDE, NARROW = 4, 5, 6, 7
CLIMBING = 8  # more parts of blocks than one folds the nodes of (climb.cuh)
TYPES = {
    "float16": "float16",
    "float32": "float",
    "complex64": "complex<float>",
    "complex128": "complex<double>",
}

pytestmark = [
    pytest.mark.skipif(not shutil.which("g++"), reason="no g++"),
    pytest.mark.skipif(
        not (ROOT / "kernels").is_dir(), reason="the sources are not beside the tests"
    ),
    pytest.mark.skipif(SANITIZED, reason="AddressSanitizer does not know these stacks"),
]


class Dimension(ctypes.Structure):
    """gpr_axes_dim."""

    _fields_ = tuple((name, ctypes.c_int64) for name in ("size", "stride", "where_stride", "place"))


class Arguments(ctypes.Structure):
    """gpr_axes_args."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("data", "where", "out", "scratch", "least")),
        *((name, ctypes.c_int64) for name in ("few", "outputs", "count")),
        *((name, ctypes.c_int) for name in ("op", "kept", "reduced", "skip", "has_initial")),
        ("spread_nan", ctypes.c_int),
        ("ddof", ctypes.c_double),
        ("means", ctypes.c_void_p),
        ("initial", ctypes.c_uint64 * 2),
        *((name, ctypes.c_int) for name in ("from_", "to", "from_bytes", "swap", "unaligned")),
        ("back", ctypes.c_int),
        *((name, ctypes.c_int64) for name in ("length", "runs", "groups")),
        ("packets", ctypes.c_int),
        *((name, ctypes.c_int64) for name in ("full", "single", "drawn", "tiles")),
        *((name, ctypes.c_int) for name in ("split", "crowd", "queue", "queue_apart", "apart")),
        *((name, ctypes.c_int) for name in ("team", "rows", "pitch")),
        ("per", ctypes.c_int64),
        ("mix", ctypes.c_uint64),
        ("low", ctypes.c_void_p),
        ("high", ctypes.c_void_p),
        *((name, ctypes.c_int) for name in ("across", "down", "beyond", "neighbours")),
        *((name, ctypes.c_int) for name in ("runners", "boxed")),
        *((name, ctypes.c_int64) for name in ("box", "chunk", "chunks", "last_box")),
        *((name, ctypes.c_int64) for name in ("run_rounds", "rounds", "share")),
        *((name, ctypes.c_int64) for name in ("step", "where_step")),
        ("starts", ctypes.c_void_p),
        ("stops", ctypes.c_void_p),
        ("segments", ctypes.c_int64),
        ("pieces", ctypes.c_void_p),
        ("piece_count", ctypes.c_int64),
        ("piece_bytes", ctypes.c_int64),
        ("dim", Dimension * DIMS),
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder, kept = tmp_path_factory.mktemp("trees"), {}

    def made(dtype):
        if dtype not in kept:
            target = folder / f"{dtype}.so"
            command = ["g++", *FLAGS, *CHECKS, f"-DPRODUCT_OF={TYPES[dtype]}"]
            source, object = ROOT / "tests/c/operator_fibers.cpp", target.with_suffix(".o")
            subprocess.run([*command, source, "-o", object], check=True)
            subprocess.run(["g++", "-shared", object, "-o", target], check=True)
            kept[dtype] = ctypes.CDLL(str(target))
            kept[dtype].arguments_bytes.restype = ctypes.c_size_t
            assert kept[dtype].arguments_bytes() == ctypes.sizeof(Arguments)
        return kept[dtype]

    return made


def product(library, x, axes, where, skip, segments=None, multiprocessors=3):
    """The products, and which way they went; x in any layout and at any address."""
    args, kept = Arguments(), [d for d in range(x.ndim) if d not in axes]
    shape = tuple(x.shape[d] for d in kept)
    kept_places = {d: math.prod(x.shape[e] for e in kept if e > d) for d in kept}
    kept.sort(key=lambda d: -abs(x.strides[d]))
    reduced = [d for d in axes if x.shape[d] != 1] or [axes[0]]
    merged = []  # reduced dimensions, neighbours as one where strides allow
    steps = where.strides if where is not None else (0,) * x.ndim
    for d in reduced:
        dim = [x.shape[d], x.strides[d], steps[d]]
        if merged and merged[-1][1] == dim[0] * dim[1] and merged[-1][2] == dim[0] * dim[2]:
            merged[-1] = [merged[-1][0] * dim[0], dim[1], dim[2]]
        else:
            merged.append(dim)
    dims = [[x.shape[d], x.strides[d], steps[d]] for d in kept] + merged
    for n, (length, stride, step) in enumerate(dims):
        place = kept_places[kept[n]] if n < len(kept) else 0
        args.dim[n] = Dimension(length, stride, step, place)
    native = x.dtype.newbyteorder("=")
    args.kept, args.reduced = len(kept), len(merged)
    args.outputs, args.count = math.prod(shape), math.prod(dim[0] for dim in merged)
    out = np.full(math.prod(shape) * (1 if segments is None else len(segments[0])), 77, native)
    if segments is not None:
        starts, stops = (np.array(s, np.int64) for s in segments)
        args.starts, args.stops, args.segments = starts.ctypes.data, stops.ctypes.data, len(starts)
        args.outputs *= len(starts)
        args.count = int((stops - starts).max())
    dtype = gpureduce.dtypes().index(native.name)
    args.data, args.out, args.from_ = x.ctypes.data, out.ctypes.data, dtype
    args.where = where.ctypes.data if where is not None else None
    part = x.itemsize // (1 + (x.dtype.kind == "c"))
    args.skip, args.swap = skip, 0 if x.dtype.isnative else part
    args.from_bytes = x.itemsize
    args.unaligned = x.ctypes.data % part != 0 or any(s % part for s in x.strides)
    scratch = np.zeros(1 << 23, np.uint8)
    args.split = args.team = args.rows = 1
    room = ctypes.c_void_p(scratch.ctypes.data)
    failed = library.product(ctypes.byref(args), dtype, multiprocessors, room, SEED & 0xFFFFFFFF)
    assert not failed, FAILURES[failed]
    assert not scratch[: 4 * 4096].any(), "tickets are left as they were"
    way = int(args.length)
    if way == LINES:
        way = LINES + args.packets
    if way == THREADS and args.split > 32:
        way = CLIMBING
    return out.reshape((-1, *shape) if segments else shape), way


def drawn(rng, dtype, shape):
    x = rng.uniform(0.7, 1.4, shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.uniform(-0.7, 0.7, shape)
    return x.astype(dtype)


def laid_out(rng, x):
    how = int(rng.integers(0, 6))
    if how == 0:
        return x
    if how == 1:
        return np.asfortranarray(x)
    if how in (2, 5):  # every second one, or rows with some between them: others would be seen
        step, between = (2, 0) if how == 2 else (1, int(rng.integers(1, 9)))
        wide = np.full((*x.shape[:-1], step * x.shape[-1] + between), x.dtype.type(3))
        out = wide[..., : step * x.shape[-1] : step]
        out[...] = x
        return out
    room = np.empty(x.size + 1, x.dtype)
    out = room[1:].reshape(x.shape)
    out[...] = x
    return out if how == 3 else np.moveaxis(np.moveaxis(out, 0, -1).copy(), -1, 0)


SHAPES = [((2500,), (0,)), ((7, 1301), (1,)), ((700, 45), (0,)), ((300, 150), (0,)),
          ((5000, 8), (0,)), ((30, 7, 41), (0, 2)), ((3, 40, 700), (0, 2)), ((9, 60, 11), (1,)),
          ((400, 5), (1,)), ((90, 33), (1,)), ((5, 1999, 7), (0, 2)), ((3, 4, 1500), (0, 2)),
          ((2, 9000), (1,)), ((40, 2), (1,)), ((6, 5, 4, 3), (1, 3)), ((9, 700), (1,)),
          ((70_001,), (0,)), ((3, 70, 2, 5), (0,)), ((4, 90, 3), (2,)),
          ((2, 60, 3), (0, 2)), ((2, 9, 2, 7, 2), (0, 2, 4)), ((70, 8, 9), (1,)),
          ((9, 1601), (0,)), ((23, 1700), (0,)), ((2, 75, 3100), (1,)),
          ((4001, 2), (0,)), ((2, 5000, 3), (1,)), ((9000, 4), (0,)), ((3000, 5), (0,)),
          ((12, 10, 21, 4), (0, 1, 2, 3)), ((2, 3, 4, 5, 60, 2), (0, 1, 2, 3, 4, 5)),
          ((90, 70), (0, 1)), ((13, 11, 40), (0, 1, 2)), ((4, 37, 50), (0, 1, 2))]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
def test_the_bits_are_the_cpus(dtype, library):
    rng = generator("products of fibers", dtype)
    ways = set()
    for shape, axes in SHAPES:
        for how in range(3):
            x = laid_out(rng, drawn(rng, dtype, shape))
            where = laid_out(rng, rng.random(shape) < 0.7) if how == 1 else None
            skip = how == 2
            if skip:
                x[rng.random(shape) < 0.1] = np.nan
            found, unit = product(library(dtype), x, axes, where, skip)
            call = gpureduce.nanprod if skip else gpureduce.prod
            given = {} if where is None else {"where": where}
            wanted = call(x, axis=axes, device="cpu", **given)
            said = (shape, axes, x.strides, how)
            assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes(), said
            ways.add(unit)
    narrow = set() if dtype == "complex128" else {NARROW}  # of which every second is 32 bytes on
    assert ways - {BESIDE, CHUNKS} == {0, THREADS, 2, LINES, ROWS, 32} | narrow


@pytest.mark.parametrize("dtype", TYPES)
def test_long_rows_of_packets(dtype, library):
    """In chunks of one group and of several, of which the last one ends in any way; of one output
    and of several, with packets between them."""
    rng = generator("chunks", dtype)
    packet = 16 // np.dtype(dtype).itemsize
    for outputs, rows, more, multiprocessors in (
        (1, 2048, 0, 132),
        (1, 4099, 1, 132),
        (1, 2300, 3, 3),
        (1, 9001, 0, 1),
        (2, 700, 1, 1),
        (5, 33, 2, 3),
        (3, 1200, 0, 1),
    ):
        size = rows * 32 * packet + more % packet
        pitch = -(-size // packet) * packet + 2 * packet
        x = np.empty(outputs * pitch + packet, dtype)
        x = x[-x.ctypes.data % 16 // x.itemsize :][: outputs * pitch].reshape(outputs, pitch)
        x[...] = 1 + 1e-3 * rng.normal(size=x.shape)
        x = x[:, :size]
        found, way = product(library(dtype), x, (1,), None, False, None, multiprocessors)
        assert way == CHUNKS
        wanted = gpureduce.prod(x, axis=1, device="cpu")
        assert np.asarray(found).tobytes() == wanted.tobytes(), (x.shape, multiprocessors)


def test_segments_and_elements_that_lie_otherwise(library):
    rng = generator("segments of products")
    for shape, axis in (((3000,), 0), ((900, 20), 0), ((4, 2000), 1), ((4, 900, 20), 1)):
        x = laid_out(rng, drawn(rng, "float32", shape))
        cuts = np.sort(rng.integers(0, shape[axis] + 1, 9))
        cuts[4] = cuts[5]
        found, _ = product(library("float32"), x, (axis,), None, False, (cuts[:-1], cuts[1:]))
        for n, (start, stop) in enumerate(itertools.pairwise(cuts)):
            part = np.take(x, range(start, stop), axis)
            wanted = gpureduce.prod(part, axis=axis, device="cpu")
            assert found[n].tobytes() == np.asarray(wanted).tobytes(), (shape, n)
        room = np.empty(x.nbytes + 1, np.uint8)
        for other in (x.astype(">f4"), room[1:].view("f4").reshape(shape)):
            other[...] = x
            found, _ = product(library("float32"), other, (axis,), None, False)
            wanted = gpureduce.prod(x, axis=axis, device="cpu")
            assert found.tobytes() == np.asarray(wanted).tobytes(), (shape, other.dtype)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_blocks_climb(dtype, library):
    """By two levels, outputs and segments, of which one is empty."""
    rng, ways = generator("climbing blocks", dtype), []
    for length, columns in ((30_011, 20), (9001, 64), (20_003, 9)):
        x = (1 + 1e-3 * rng.normal(size=(length, columns))).astype(dtype)
        for cuts in ([0, length], [0, 500, 700, 700, length]):
            segments = np.array(cuts[:-1]), np.array(cuts[1:])
            found, way = product(library(dtype), x, (0,), None, False, segments, 132)
            for n, (start, stop) in enumerate(itertools.pairwise(cuts)):
                wanted = gpureduce.prod(x[start:stop], axis=0, device="cpu")
                assert found[n].tobytes() == wanted.tobytes(), (x.shape, n)
            ways.append(way)
    assert ways.count(CLIMBING) > 3, ways


@pytest.mark.parametrize("dtype", TYPES)
def test_many_dimensions_in_another_order(dtype, library):
    """Short lines that lie far apart, by pieces of all sizes, and every second of something."""
    rng = generator("lines", dtype)
    ways = set()
    for n in range(60):
        rank = int(rng.integers(1, 7))
        sizes = rng.integers(1, 9, rank) * (1 + (rng.random(rank) < 0.3))
        sizes[rng.integers(rank)] *= max(1, int(rng.integers(600, 20_000) // sizes.prod()))
        order = np.append(rng.permutation(rank - 1), rank - 1) if n % 2 else rng.permutation(rank)
        room = drawn(rng, dtype, int(sizes.prod()) + 8)[int(rng.integers(9)) :]
        x = room[: sizes.prod()].reshape(sizes).transpose(order)
        if n % 3 == 0:
            axis = int(rng.integers(rank))
            x = x[(slice(None),) * axis + (slice(int(rng.integers(2)), None, 2),)]
        if x.size < 2:
            continue
        axes = tuple(sorted(rng.permutation(rank)[: int(rng.integers(1, rank + 1))].tolist()))
        axes = tuple(range(rank)) if n % 2 else axes
        found, way = product(library(dtype), x, axes, None, False)
        wanted = gpureduce.prod(x, axis=axes, device="cpu")
        assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes(), (n, x.shape, x.strides)
        ways.add(way)
    assert {LINES, ROWS} <= ways


@pytest.mark.parametrize("dtype", TYPES)
def test_long_rows_whose_neighbours_lie_closest(dtype, library):
    """Rows that end with a part and within one, fewer than a block takes, of outputs and of one."""
    rng, ways = generator("long rows", dtype), []
    shapes = ((37, 3, 41, 97), (9, 8192), (5, 4097), (64, 2100), (130, 1, 3, 700), (16, 3, 2, 4000))
    for shape in shapes:
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(drawn(rng, dtype, shape), 0, -1)), -1, 0)
        for axes in (tuple(range(x.ndim)), (0, *range(2, x.ndim))):
            found, way = product(library(dtype), x, axes, None, False)
            wanted = gpureduce.prod(x, axis=axes, device="cpu")
            assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes(), (shape, axes)
            ways.append(way)
    assert ways.count(BESIDE) > len(shapes), ways


def test_tall_columns_of_small_numbers(library):
    """That begin anywhere, that are cut short, turned round, and what lies in no row."""
    rng = generator("tall columns")
    for columns, pitch, before in ((70, 70, 0), (64, 96, 3), (33, 41, 7), (40, 81, 1)):
        wide = np.full((40_011, pitch), np.nan, np.float16)
        x = wide[:, before : before + columns]
        x[...] = drawn(rng, "float16", x.shape)
        for view in (x, x[::-1], x[:, ::2], x[1:].reshape(2, -1, columns)):
            axis = view.ndim - 2
            found, way = product(library("float16"), view, (axis,), None, False)
            wanted = gpureduce.prod(view, axis=axis, device="cpu")
            assert found.tobytes() == wanted.tobytes(), (view.shape, view.strides)
            assert way == THREADS, (view.shape, view.strides)
        x[rng.random(x.shape) < 0.01] = np.nan
        found, _ = product(library("float16"), x, (0,), None, True)
        assert found.tobytes() == gpureduce.nanprod(x, axis=0, device="cpu").tobytes(), columns
