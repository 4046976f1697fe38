"""The device's kernel of any layout (kernels/gpu/tile.cuh), that of short rows (staged.cuh), and
how rows are read whose elements lie apart or in short runs (rows.cuh), where there is no device:
compiled by g++, planned and launched as there, its threads as fibers; the results have the CPU's
bits."""

import ctypes
import math
import shutil
import subprocess

import numpy as np
import pytest
from arrays import SEED, generator
from operator_fibers import CHECKS, FAILURES, FLAGS, ROOT
from table import SANITIZED, assert_bits, call, numpy_dtype
from test_trees_fibers import Arguments, Dimension

import gpureduce

pytestmark = [
    pytest.mark.skipif(not shutil.which("g++"), reason="no g++"),
    pytest.mark.skipif(
        not (ROOT / "kernels").is_dir(), reason="the sources are not beside the tests"
    ),
    pytest.mark.skipif(SANITIZED, reason="AddressSanitizer does not know these stacks"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

# c/tiles.h's number, operator and dtype.
FOLDS = {
    "sums of floats": (0, "sum", "float32"),
    "sums of doubles": (1, "sum", "float64"),
    "sums of complex floats": (2, "sum", "complex64"),
    "extremes": (3, "max", "float64"),
    "places": (4, "argmax", "float32"),
    "variances of floats": (5, "var", "float32"),
    "variances of doubles": (6, "var", "float64"),
    "sums of bfloat16": (7, "sum", "bfloat16"),
}
ROWS = {
    "sums of floats": (20, "sum", "float32"),
    "sums of complex doubles": (21, "sum", "complex128"),
    "complex floats": (22, "max", "complex64"),
    "complex doubles": (23, "max", "complex128"),
    "integers": (24, "max", "int64"),
    "sums without NaN": (25, "nansum", "float32"),
    "variances": (26, "var", "float32"),
}
STAGED = {
    "sums of floats": (40, "sum", "float32"),
    "sums of doubles": (41, "sum", "float64"),
    "sums of complex floats": (42, "sum", "complex64"),
    "sums of bfloat16": (43, "sum", "bfloat16"),
    "extremes": (44, "max", "float32"),
    "variances": (45, "var", "float32"),
}
RESULT = {"argmax": np.int64}
NUMBERS = {op["name"]: i for i, op in enumerate(gpureduce.operators())}
ROOM = 1 << 26


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    target = tmp_path_factory.mktemp("tiles") / "tiles.so"
    source, object = ROOT / "tests/c/operator_fibers.cpp", target.with_suffix(".o")
    subprocess.run(["g++", *FLAGS, *CHECKS, "-DTILES", source, "-o", object], check=True)
    subprocess.run(["g++", "-shared", object, "-o", target], check=True)
    made = ctypes.CDLL(str(target))
    made.arguments_bytes.restype = ctypes.c_size_t
    assert made.arguments_bytes() == ctypes.sizeof(Arguments)
    return made


def dimensions(x, where, axes):
    """Of the reduced axes or the others: size, stride, the mask's stride and place, the largest
    stride first, and neighbours as one where they are."""
    steps = where.strides if where is not None else (0,) * x.ndim
    sizes = [x.shape[d] for d in axes]
    places = [math.prod(sizes[i + 1 :]) for i in range(len(axes))]
    dims = [[x.shape[d], x.strides[d], steps[d], p] for d, p in zip(axes, places, strict=True)]
    merged = []
    for dim in sorted((dim for dim in dims if dim[0] != 1), key=lambda dim: -abs(dim[1])):
        if merged and merged[-1][1:] == [dim[0] * step for step in dim[1:]]:
            merged[-1] = [merged[-1][0] * dim[0], *dim[1:]]
        else:
            merged.append(dim)
    return merged


def reduced(library, about, x, axes, where=None, skip=False, multiprocessors=3):
    """The results, and how many blocks that share an output come together first."""
    number, op, _ = about
    args, rest = Arguments(), [d for d in range(x.ndim) if d not in axes]
    kept, inner = (dimensions(x, where, some) for some in (rest, axes))
    inner = inner or [[1, x.itemsize, 0, 1]]
    for n, dim in enumerate(kept + inner):
        args.dim[n] = Dimension(*dim)
    args.kept, args.reduced = len(kept), len(inner)
    shape = tuple(x.shape[d] for d in rest)
    args.outputs, args.count = math.prod(shape), math.prod(x.shape[d] for d in axes)
    out = np.full(args.outputs, 77, RESULT.get(op, x.dtype))
    scratch = np.zeros(ROOM, np.uint8)
    dtype = gpureduce.dtypes().index(x.dtype.name)
    args.op, args.from_, args.to, args.from_bytes = NUMBERS[op], dtype, dtype, x.itemsize
    args.data, args.out, args.scratch = x.ctypes.data, out.ctypes.data, scratch.ctypes.data
    args.where = where.ctypes.data if where is not None else None
    args.skip, args.back = skip, SEED & 1
    failed = library.reduced(
        ctypes.byref(args), dtype, number, multiprocessors, ctypes.c_size_t(ROOM), SEED & 0xFFFFFFFF
    )
    assert not failed, [*FAILURES, "not launched"][failed]
    assert not scratch[: 4 * 4096].any(), "tickets are left as they were"
    return out.reshape(shape), int(args.crowd)


def axis_of(a, axes):
    return axes[0] if len(axes) == 1 else None if len(axes) == a.ndim else axes


def numbers(rng, dtype, shape, sigma):
    a = rng.standard_normal(shape) * np.exp(sigma * rng.standard_normal(shape))
    return (a + 1j * a[::-1] if dtype.startswith("complex") else a).astype(numpy_dtype(dtype))


# Shape, axes, and how the array lies: few outputs of blocks, of warps and of lanes, side by side
# and apart, boxes of several dimensions, and more tiles than a launch has blocks.
LAYOUTS = {
    "every second": ((40_011,), (0,), lambda a: a[::2]),
    "turned round": ((9_001,), (0,), lambda a: a[::-1]),
    "rows of every third": ((7, 9_000), (1,), lambda a: a[:, ::3]),
    "short rows": ((300, 2 * 37), (1,), lambda a: a[:, ::2]),
    "columns": ((1500, 5), (0,), lambda a: a),
    "columns apart": ((700, 2 * 40), (0,), lambda a: a[:, ::2]),
    "many columns": ((50, 900), (0,), lambda a: a),
    "a box": ((9, 30, 14, 6), (1, 3), lambda a: a[:, :, ::2]),
    "a box of chunks": ((3, 70, 5, 44), (0, 1, 3), lambda a: a),
    "all of a box": ((12, 33, 7, 10), (0, 1, 2, 3), lambda a: a[:, ::2, :, 1:]),
    "runs of lanes' groups": ((20, 1300), (0, 1), lambda a: a[:, 50:1250:2]),
    "more tiles than a launch has blocks": ((60_000, 6), (1,), lambda a: a[:, ::2]),
    "single elements": ((65, 2), (1,), lambda a: a[:, :1]),
}


# Positions are along one axis, or all of them.
EACH = [
    (fold, layout)
    for fold, (_, op, _) in FOLDS.items()
    for layout, (shape, axes, _) in LAYOUTS.items()
    if op != "argmax" or len(axes) in (1, len(shape))
]


@pytest.mark.parametrize(("fold", "layout"), EACH)
def test_any_layout(library, fold, layout):
    _, op, dtype = FOLDS[fold]
    shape, axes, view = LAYOUTS[layout]
    rng = generator("tiles", fold, layout)
    for sigma, infinite in ((0, ()), (5, ()), (0, (np.inf,)), (5, (-np.inf, np.inf))):
        if infinite and op != "sum":
            continue
        a = view(numbers(rng, dtype, shape, sigma))
        for at, x in enumerate(infinite):
            a.flat[a.size // (2 + at) :: 2 * a.shape[-1] + 1] = x
        got, _ = reduced(library, FOLDS[fold], a, axes)
        wanted = np.asarray(call(op, a, axis=axis_of(a, axes), device="cpu"))
        assert_bits(got, wanted, f"{fold}, {layout}, {sigma}, {infinite}")


@pytest.mark.parametrize("fold", ROWS)
def test_long_rows_whose_elements_lie_apart(library, fold):
    """Of a round some lanes have all that they can and others less, or some have nothing."""
    _, op, dtype = ROWS[fold]
    rng = generator("rows apart", fold)
    for n in (4096 + 240, 3000, 9216):
        whole = (
            numbers(rng, dtype, (2 * 7 * n,), 0)
            if dtype != "int64"
            else rng.integers(-99, 99, 14 * n, np.int64)
        )
        if op == "nansum":
            whole[rng.random(whole.size) < 0.01] = np.nan
        for a in whole[: 2 * n : 2], whole[: 3 * n : -3], whole.reshape(2, n, 7)[:, :, 3]:
            got, _ = reduced(library, ROWS[fold], a, (a.ndim - 1,), skip=op == "nansum")
            wanted = np.asarray(call(op, a, axis=a.ndim - 1, device="cpu"))
            assert_bits(got, wanted, f"{fold}, {a.shape} {a.strides}")


@pytest.mark.parametrize("fold", [fold for fold in ROWS if ROWS[fold][1] != "max"])
def test_short_runs(library, fold):
    """Their packets as one sequence: runs that begin and end anywhere, and with the memory."""
    _, op, dtype = ROWS[fold]
    rng = generator("short runs", fold)
    for runs, n in ((400, 13), (257, 40), (150, 87), (200, 64)):
        whole = numbers(rng, dtype, 3 * runs * (n + 5), 1)
        if op == "nansum":
            whole[rng.random(whole.size) < 0.01] = np.nan
        for at in range(4):
            a = whole[at : at - 2 * runs * (n + 5)].copy()[: runs * (n + 5)].reshape(runs, n + 5)
            for view in (a[:, :n], a[:, at + 1 : at + 1 + n], a[::-1, 5:]):
                got, _ = reduced(library, ROWS[fold], view, (0, 1), skip=op == "nansum")
                wanted = np.asarray(call(op, view, axis=None, device="cpu"))
                assert_bits(got, wanted, f"{fold}, {view.shape} {view.strides} {at}")


# Whole packets, what begins and ends in them, elements apart, and batches of a few columns.
SHORT = [
    ((70, 128), lambda a: a),
    ((40, 200), lambda a: a),
    ((70, 130), lambda a: a[:, 1:-1]),
    ((40, 200), lambda a: a[:, ::2]),
    ((90, 33), lambda a: a),
    ((50, 12, 3), lambda a: a),
]


@pytest.mark.parametrize(("shape", "view"), SHORT)
@pytest.mark.parametrize("fold", STAGED)
def test_short_rows(library, fold, shape, view):
    """Of rows like others, and of some of which one lane alone has what it cannot add plainly."""
    _, op, dtype = STAGED[fold]
    rng = generator("staged", fold, shape)
    great, least = (np.inf, 1.0) if dtype == "float64" else (6e37, 6e-38)
    for sigma in (0, 5):
        a = view(numbers(rng, dtype, shape, sigma))
        some = np.moveaxis(a, 1, -1)[::3]
        some[..., 5], some[..., 6], some[..., 7] = great, -great, least
        got, _ = reduced(library, STAGED[fold], a, (1,))
        assert_bits(got, np.asarray(call(op, a, axis=1, device="cpu")), f"{fold}, {shape}, {sigma}")


# The states of the others are so small that of this many blocks none do.
@pytest.mark.parametrize(
    "fold", [f for f in FOLDS if "double" in f or "variances" in f or "complex" in f]
)
def test_blocks_come_together_by_crowds(library, fold):
    _, op, dtype = FOLDS[fold]
    a = numbers(generator("crowds", fold), dtype, (100_000, 18), 0)[:, ::2]
    got, crowd = reduced(library, FOLDS[fold], a, (0,), multiprocessors=132)
    assert crowd > 1
    assert_bits(got, np.asarray(call(op, a, axis=0, device="cpu")), fold)


@pytest.mark.parametrize("fold", [fold for fold in FOLDS if FOLDS[fold][1] != "argmax"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_masks_and_nan(library, fold, layout):
    """Masks in the array's order and in another one."""
    _, op, dtype = FOLDS[fold]
    shape, axes, view = LAYOUTS[layout]
    rng = generator("masked tiles", fold, layout)
    a = view(numbers(rng, dtype, shape, 1))
    axis = axis_of(a, axes)
    initial = {"initial": -1e300} if op == "max" else {}
    for order in "CF":
        where = np.asarray(rng.random(a.shape) < 0.7, order=order)
        got, _ = reduced(library, FOLDS[fold], a, axes, where)
        want = np.asarray(call(op, a, axis=axis, where=where, device="cpu", **initial))
        counted = np.asarray(where.any(axis=axis)) | (op != "max")
        assert_bits(got[counted], want[counted], f"{fold}, {layout}, {order}")
    a[rng.random(a.shape) < 0.1] = np.nan
    got, _ = reduced(library, FOLDS[fold], a, axes, skip=True)
    some = ~np.isnan(a).all(axis=axis)
    want = np.asarray(call(f"nan{op}", a, axis=axis, device="cpu"))
    assert_bits(got[some], want[some], f"{fold}, {layout}, NaN")
