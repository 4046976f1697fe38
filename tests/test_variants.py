"""Every variant of the device's engine, on each layout that it takes: the bits of the CPU. By
random layouts, of which each variant has to take some."""

import itertools
import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from arrays import draw, generator
from device import copy_out, on_device
from table import assert_bits, numpy_dtype

import gpureduce
from gpureduce import _core

COUNT, WHY = _core.device_count()
LIST = Path(__file__).parent.parent / "kernels/abi/variants.h"

pytestmark = [
    pytest.mark.skipif(not LIST.is_file(), reason="the sources are not beside the tests"),
]
ON_DEVICE = [pytest.mark.gpu, pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")]

OPS = {
    "sum": ("float32", "float64", "complex64", "bfloat16", "int32"),
    "mean": ("float32", "int16"),
    "var": ("float32", "int32"),
    "max": ("float32", "float64", "int8"),
    "argmax": ("float32", "int64"),
    "count_nonzero": ("bool", "float16"),
    "prod": ("float32", "int64"),
    "nansum": ("float32", "float16", "float64"),
    "nanmean": ("float32", "complex64"),
    "nanvar": ("float32", "float64"),
}
MASKED = ("sum", "mean", "var", "prod")


def names():
    """Segments are no layout of a whole axis: test_axes.py has them."""
    found = re.findall(r'X\(\w+, "(\w+)"', LIST.read_text()) if LIST.is_file() else []
    return [name for name in found if name != "segments"]


INDEX = {op["name"]: i for i, op in enumerate(gpureduce.operators())}


def layout(rng):
    """Shape, axes and how to look at an array of it."""
    if rng.random() < 0.04:  # columns enough for all threads of a device
        return (
            (int(rng.integers(2, 5)), 4 * int(rng.integers(1 << 18, 1 << 19))),
            (0,),
            lambda a: a,
        )
    rank = int(rng.integers(1, 6))
    total = 2 ** rng.uniform(2, 18)
    shape = [max(1, round(total**part)) for part in rng.dirichlet(np.ones(rank))]
    if rng.random() < 0.4:
        shape[-1] = int(rng.choice([1, 2, 4, 16, 64, 256, 2048]))
    order = rng.permutation(rank) if rng.random() < 0.3 else np.arange(rank)
    step = int(rng.integers(1, 3)) if rng.random() < 0.3 else 1
    axes = tuple(sorted(rng.permutation(rank)[: rng.integers(1, rank + 1)].tolist()))
    return shape, axes, lambda a: a.transpose(order)[::step]


def reduced(op, a, axis, where, device, kernel=None):
    """Of any operator, for the functions of few take kernel=; None where it refuses the layout."""
    no = np._NoValue
    arguments = (INDEX[op], a, axis, None, None, no, no, where, 0, no, device, kernel, None)
    try:
        return _core.reduce(*arguments)
    except ValueError as error:
        assert "does not take this layout" in str(error)
        return None


def took(op, a, axis, kernel, to=on_device, device="auto"):
    """Whether the variant takes a copy on the device; then its bits are the CPU's. Of two launches
    one begins at the end of the array."""
    there = to(a)
    results = [reduced(op, there, axis, np._NoValue, device, kernel) for _ in range(2)]
    if results[0] is None:
        return False
    want = reduced(op, a, axis, np._NoValue, "cpu")
    for result in results:
        assert_bits(fetched(result), want, f"{op} {a.dtype} {a.shape} {a.strides} {kernel}")
    return True


def fetched(result):
    """Of a result that stayed on the device, what it is on the host."""
    if not hasattr(result, "__cuda_array_interface__"):
        return np.asarray(result)
    about = result.__cuda_array_interface__
    dtype = np.dtype(about["typestr"])
    size = int(np.prod(about["shape"])) * dtype.itemsize
    raw = copy_out(SimpleNamespace(address=about["data"][0], size=size))
    strides = about["strides"] or None
    return np.ndarray(about["shape"], dtype, raw, strides=strides)


# How the kernels of each variant begin.
KERNELS = {
    "trees": ("trees_",),
    "rows_tiny": ("packed<",),
    "columns_small": ("strips<", "shallow<", "counted<"),
    "rows_shared": ("staged<",),
    "columns": ("columns<",),
    "rows": ("rows<",),
    "tile_rows": ("tile<F, RowRun<", "tile<F::Fold, RowRun<"),
    "brief": ("brief<",),
    "tile": ("tile<",),
}


def chosen(op, a, axes, variant):
    """What a device of an H200's size would launch, or None where the variant refuses."""
    try:
        return _core.chosen(op, a, axes, None, None, variant, 132)
    except ValueError as error:
        assert "does not take this layout" in str(error)
        return None


@pytest.mark.parametrize("op, dtype", [(op, dtypes[0]) for op, dtypes in OPS.items()])
def test_what_a_device_would_launch(op, dtype):
    """Without one: of each variant that takes a layout its kernels, and else that of some one."""
    rng, took = generator(), set()
    for _ in range(300):
        shape, axes, look = layout(rng)
        a = look(np.empty(shape, numpy_dtype(dtype)))
        axes = axes[0] if op == "argmax" else axes
        kernel, fold, blocks, split = chosen(op, a, axes, None)
        assert fold and blocks >= 1 and 1 <= split <= blocks
        assert kernel.startswith(sum(KERNELS.values(), ()))
        for variant, begin in KERNELS.items():
            if there := chosen(op, a, axes, variant):
                assert there[0].startswith(begin), (op, shape, axes, variant)
                took.add(variant)
    assert took >= ({"trees"} if op == "prod" else {"rows", "brief", "tile"})


def test_what_is_no_choice():
    a = np.empty((4, 5), np.float32)
    with pytest.raises(ValueError, match="unknown operator summ"):
        _core.chosen("summ", a, 0, None, None, None, 132)
    with pytest.raises(ValueError, match="has a multiprocessor at least, not 0"):
        _core.chosen("sum", a, 0, None, None, None, 0)
    with pytest.raises(np.exceptions.AxisError):
        _core.chosen("sum", a, 2, None, None, None, 132)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
@pytest.mark.parametrize("variant", [pytest.param(name, marks=ON_DEVICE) for name in names()])
def test_a_variant_has_the_cpus_bits(variant):
    rng, taken = generator("variants", variant), 0
    for _ in range(200):
        op = str(rng.choice(list(OPS)))
        dtype = numpy_dtype(str(rng.choice(OPS[op])))
        shape, axes, view = layout(rng)
        if op == "argmax":
            axes = None if rng.random() < 0.5 else axes[0]
        a = view(draw(rng, dtype, int(np.prod(shape))).reshape(shape))
        there = rng.random() < 0.5 and dtype.name != "bfloat16"
        given, device = (on_device(a), "auto") if there else (a, "cuda")
        where = where_there = np._NoValue
        if op in MASKED and rng.random() < 0.3:
            where = rng.random(a.shape) < 0.7
            where_there = on_device(where) if there else where
        result = reduced(op, given, axes, where_there, device, variant)
        if result is None:
            continue
        taken += 1
        want = reduced(op, a, axes, where, "cpu")
        masked = "" if where is np._NoValue else ", masked"
        assert_bits(fetched(result), want, f"{op} {dtype} {shape} axes {axes}{masked}")
    assert taken, "no layout came to it"


@pytest.mark.gpu
@pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
@pytest.mark.parametrize("op", ["sum", "max", "argmax", "count_nonzero"])
def test_columns_whose_rows_begin_at_any_place_of_a_packet(op):
    """Of bytes, and of floats that are summed."""
    rng, taken = generator("packets", op), 0
    names = [name for name in OPS[op] if name != "int32"] if op == "sum" else []
    for _ in range(60):
        dtype = numpy_dtype(str(rng.choice([*names, "int8", "uint8", "bool"])))
        tiles = int(rng.choice([0, 31, 63, 127])) * (16 // dtype.itemsize)
        width = int(rng.choice([tiles, 2 * tiles, 17, 67, 255, 1031]) + rng.integers(2, 12))
        shape = (int(rng.integers(1, 4)), int(rng.integers(40, 900)), width)
        begin, end = (int(n) for n in rng.integers(0, min(3, width - 1), 2))
        a = draw(rng, dtype, int(np.prod(shape))).reshape(shape)
        a = a[:, int(rng.integers(0, 2)) :, begin : shape[2] - end]
        host = {"to": np.asarray, "device": "cuda"} if dtype.name == "bfloat16" else {}
        taken += took(op, a, 1, "columns", **host)
    assert taken > 25, f"{taken} layouts came to it"


@pytest.mark.gpu
@pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
@pytest.mark.parametrize("op", [op for op in OPS if op not in ("prod", "nanvar")])
def test_batches_of_narrow_columns(op):
    """From any place of a packet on, with any number of rows."""
    rng, taken = generator("batches", op), 0
    for _ in range(60):
        dtype = numpy_dtype(str(rng.choice([name for name in OPS[op] if name != "bfloat16"])))
        width, n = int(rng.integers(2, 64 // dtype.itemsize + 2)), int(rng.integers(1, 90))
        batches, skip = int(2 ** rng.uniform(0, 18)) // (width * n) + 1, int(rng.integers(0, 3))
        a = draw(rng, dtype, skip + batches * n * width)
        taken += took(op, a[skip:].reshape(batches, n, width), 1, "rows_shared")
    assert taken > 20, f"{taken} arrays came to it"


@pytest.mark.gpu
@pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("kernel", [None, "brief", "tile", "tile_rows", "rows", "rows_shared"])
def test_sums_next_to_the_largest_double(kernel):
    """Terms that overflow when they are added up, of sums that need not."""
    most, taken = np.finfo(np.float64).max, 0
    for last in (2.0**968, -1.0625 * 2.0**900), (2.0**969, 2.0**900):
        for n, outputs in itertools.product((5, 64, 300, 4096), (1, 200)):
            a = np.zeros((outputs, n))
            a[:, :4] = most, 1.5 * 2.0**969, *last
            taken += took("sum", a, 1, kernel)
    assert taken, "it took none"


@pytest.mark.gpu
@pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "complex64"])
def test_variances_of_columns_around_given_means(dtype):
    rng = generator("means", dtype)
    for n, width in ((3, 5000), (40, 321), (3000, 66), (50_000, 7)):
        a = draw(rng, numpy_dtype(dtype), n * width).reshape(n, width)
        mean = a[:1] * np.float32(0.5)
        got, want = (gpureduce.var(a, axis=0, mean=mean, device=to) for to in ("cuda", "cpu"))
        assert_bits(got, want, f"{n} {width}")


@pytest.mark.gpu
@pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "float16"])
def test_many_rows_that_pairs_cannot_hold(dtype):
    """Enough of them for a warp each."""
    rng, n = generator("ends", dtype), 5_001
    width = (8198 if dtype == "float16" else 2104) // np.dtype(dtype).itemsize
    a = draw(rng, numpy_dtype(dtype), n * width).reshape(n, width)
    with np.errstate(over="ignore"):
        a[1::5] *= 2.0 ** rng.integers(-60, 60, width)
    a[::7] = rng.integers(-9, 9, width)
    special = rng.choice([np.nan, np.inf, -np.inf], 50)
    a[rng.integers(0, n, 50), rng.integers(0, width, 50)] = special
    for op in ("sum", "mean"):
        assert took(op, a, 1, "rows")


@pytest.mark.gpu
@pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "float16"])
@pytest.mark.parametrize(("n", "width"), [(5_001, 4_100), (300, 40_000), (3, 2_000_000)])
def test_rows_of_zeros_keep_their_signs(dtype, n, width):
    """Of a warp, of a block and of several blocks: of -0.0, some with another number or two."""
    a = np.full((n, width), -0.0, numpy_dtype(dtype))
    if a.dtype.kind == "c":
        a.imag = -0.0
    a[1::3, width // 3] = 0.0
    a[2::9, width // 2] = 1
    a[2::18, width - 1] = -1
    for op in ("sum", "mean"):
        assert took(op, a, 1, "rows")


WIDE = [("bool", 4096), ("int8", 1001), ("int8", 1000), ("bool", 250)]


@pytest.mark.gpu
@pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
@pytest.mark.parametrize(("dtype", "width"), WIDE)
def test_columns_of_more_bytes_than_a_word_counts(dtype, width):
    """A thread has more than 255 of each of its columns. Rows begin with a packet or anywhere
    in one, or several are taken as one."""
    n = 400_000_001 // width
    a, want = np.ones((n, width), dtype), np.full(width, n, np.int64)
    a[n // 2, width // 2] = 0
    want[width // 2] -= 1
    given = on_device(a)
    for op in ("count_nonzero", "sum"):
        assert_bits(fetched(reduced(op, given, 0, np._NoValue, "auto", "columns")), want, op)


ANYWHERE = [
    ("sum", "float32"),
    ("sum", "complex64"),
    ("mean", "bfloat16"),
    ("nansum", "float16"),
    ("nanmean", "float64"),
    ("count_nonzero", "bool"),
    ("max", "int8"),
    ("max", "int32"),
    ("argmax", "float16"),
    ("argmax", "float64"),
    ("prod", "int16"),
    ("prod", "int64"),
]


@pytest.mark.gpu
@pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
@pytest.mark.filterwarnings("ignore:Mean of empty slice")
@pytest.mark.parametrize(("op", "dtype"), ANYWHERE)
def test_columns_whose_rows_begin_anywhere(op, dtype):
    """In one run, whose last row ends with the array, and in several."""
    rng, type_ = generator("columns anywhere", op, dtype), numpy_dtype(dtype)
    several = op not in ("max", "argmax", "prod") or type_.itemsize == 1
    host = {"to": np.asarray, "device": "cuda"} if dtype == "bfloat16" else {}
    for width, start, n in itertools.product((33, 254, 1001, 4099), (0, 1, 3), (70, 903)):
        a = draw(rng, type_, start + n * width)[start:].reshape(n, width)
        assert width % 2 == 0 or took(op, a, 0, "columns", **host), (width, start, n)
        if several and width % 2:
            runs = draw(rng, type_, start + 7 * n * width)[start:].reshape(7, n, width)
            assert took(op, runs[:, : n - 1], (0, 1), "columns", **host), (width, start, n)
        assert took(op, a, 0, None, **host)


@pytest.mark.gpu
@pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
@pytest.mark.filterwarnings("ignore:Mean of empty slice")
@pytest.mark.parametrize("op", ["sum", "nansum", "nanmean", "max", "argmax", "count_nonzero"])
def test_narrow_columns_whose_rows_follow_each_other(op):
    """Several rows are taken as one, by one block or by many."""
    rng, taken = generator("narrow", op), 0
    for width, n in itertools.product(range(1, 13), (40, 3000, 90001)):
        for name in rng.permutation(sorted(set(OPS[op]) - {"bfloat16"}))[:4]:
            a = draw(rng, numpy_dtype(str(name)), n * width).reshape(n, width)
            taken += took(op, a, 0, "columns")
            assert took(op, a, 0, None)
    assert taken > 50, f"{taken} arrays came to it"


@pytest.mark.gpu
@pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
@pytest.mark.filterwarnings("ignore:Degrees of freedom")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("ddof", [0, 0.5, 1, 2])
def test_variances_of_single_numbers(dtype, ddof):
    rng = generator("single", dtype)
    n = 5000 if ddof else 200_000  # so many are columns of one row
    a = draw(rng, np.dtype(dtype), n).reshape(n, 1)
    for given in (a, np.repeat(a, 3, axis=1)[:, ::3], a.reshape(50, 1, n // 50)):
        for function in (gpureduce.var, gpureduce.std, gpureduce.nanvar):
            got = fetched(function(on_device(given), axis=1, ddof=ddof))
            want = function(given, axis=1, ddof=ddof)
            assert_bits(got, want, f"{function.__name__} of {given.shape}")


@pytest.mark.gpu
@pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
@pytest.mark.parametrize("dtype", ["int16", "float32", "complex128"])
def test_places_are_counted_in_the_order_of_the_index(dtype):
    rng = generator("places", dtype)
    for shape in ((8, 4444), (5, 3, 2100), (3, 700, 2, 5)):
        a = rng.integers(-50, 50, shape).astype(dtype)
        for order in itertools.permutations(range(a.ndim)):
            for view in (a.transpose(order), a.transpose(order)[::-1]):
                for op in ("argmin", "argmax", "nanargmax"):
                    got = getattr(gpureduce, op)(on_device(view))
                    assert got == getattr(gpureduce, op)(view), f"{op} of {shape}, {order}"


@pytest.mark.gpu
@pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_short_outputs_of_any_range(dtype):
    """Rows and columns by a thread or by lanes of a warp, which finish what they can hold."""
    rng = generator("short", dtype)
    ops = ["sum", "mean", "nansum", "nanmean", "var"]
    for n in (1, 3, 8, 15, 33, 100, 260):
        for shape in ((1 << 12, n + 2), (1 << 8, n + 2, 3), (4, n + 2, 1 << 10)):
            wide = np.exp(float(rng.choice([1, 5, 20])) * rng.standard_normal(shape))
            a = np.clip(wide * rng.choice([-1, 1], shape), -6e4, 6e4).astype(dtype)
            a[rng.random(shape) < 0.01] = np.nan
            cut = (slice(None), slice(1, -1))
            mask = rng.random(shape) < 0.7
            for op in ops:
                options = {"where": (mask[cut], on_device(mask[cut]))}
                for given in ({}, options) if not op.startswith("nan") else ({},):
                    host = {name: pair[0] for name, pair in given.items()}
                    there = {name: pair[1] for name, pair in given.items()}
                    function = getattr(gpureduce, op)
                    with np.errstate(all="ignore"), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        want = function(a[cut], axis=1, **host)
                        got = function(on_device(a[cut]), axis=1, **there)
                    assert_bits(fetched(got), want, f"{op} {dtype} {shape} {list(given)}")


def test_unknown_names_are_told_apart():
    with pytest.raises(ValueError, match="rows_shared"):
        gpureduce.reduce(np.ones(3), "sum", kernel="rows_of_some_kind")


def test_the_documentation_has_each_in_order():
    page = LIST.parents[2] / "docs/ladder.md"
    listed = re.findall(r"^\| `(\w+)` \| ", page.read_text(), re.M)
    assert [name for name in listed if name in names()] == names() and "segments" in listed


def test_a_variant_is_a_gpus():
    with pytest.raises(ValueError, match="is a GPU's"):
        gpureduce.reduce(np.ones((3, 4)), "sum", axis=0, kernel="tile", device="cpu")


# The most elements of a row that each variant is asked for, and the axes.
APART = {
    "columns": (900, (1,)),
    "columns_small": (900, (0,)),
    "rows": (3000, (2, (0, 2), (1, 2), (0, 1, 2))),
    "rows_shared": (300, (2,)),
    "tile_rows": (3000, (2, (0, 2), (1, 2), (0, 1, 2))),
    "brief": (60, (0, 1, 2)),
}


def cut(rng, op, dtype, most):
    """Rows out of longer ones; between them lies what would be seen in the result."""
    shape = (int(rng.integers(1, 9)), int(rng.integers(1, 90)), int(rng.integers(2, most)))
    gap, before = int(rng.integers(1, 17)), int(rng.integers(0, 2)) * int(rng.integers(0, 9))
    length = before + shape[2] + gap
    if rng.random() < 0.7:
        length += -length % (16 // min(16, dtype.itemsize))
    unlike = 111 if dtype.kind not in "fc" or op.startswith("nan") else np.nan
    wide = np.full((*shape[:2], length), unlike).astype(dtype)
    a = wide[:, :, before : before + shape[2]]
    a[:] = draw(rng, dtype, int(np.prod(shape))).reshape(shape)
    if dtype.kind in "fc" and rng.random() < 0.3:
        a[:] = np.where(np.isfinite(a), a, 1)
    return a


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
@pytest.mark.parametrize("variant", [pytest.param(name, marks=ON_DEVICE) for name in APART])
def test_what_lies_between_rows_is_not_theirs(variant):
    rng, taken = generator("apart", variant), 0
    most, all_axes = APART[variant]
    for _ in range(150):
        op = str(rng.choice(list(OPS)))
        dtype = numpy_dtype(str(rng.choice(OPS[op])))
        a, axes = cut(rng, op, dtype, most), all_axes[rng.integers(len(all_axes))]
        if dtype.name == "bfloat16" or (op == "argmax" and isinstance(axes, tuple)):
            continue
        result = reduced(op, on_device(a), axes, np._NoValue, "auto", variant)
        if result is None:
            continue
        taken += 1
        want = reduced(op, a, axes, np._NoValue, "cpu")
        assert_bits(fetched(result), want, f"{op} {dtype} {a.shape} {a.strides} axes {axes}")
    assert taken > 15, f"{taken} layouts came to it"


# The longest of the reduced axis, which that is, and how far apart elements may lie.
STEPPED = {
    "columns_small": (30, 1, 4),
    "rows_shared": (60, 2, 2),
    "brief": (60, 2, 4),
    "trees": (900, 2, 3),
}


def stepped(rng, op, dtype, variant):
    """Every so manieth element, or rows with some bytes between them; the others would be seen."""
    most, axis, apart = STEPPED[variant]
    step = int(rng.integers(1, apart + 1))
    shape = [int(rng.integers(1, 5)), int(rng.integers(1, 40)), int(rng.integers(1, 90))]
    shape[axis] = int(rng.integers(1 if axis == 1 else 2, most))
    if axis == 2:  # rows of any number side by side
        shape[0] = 1
    before, after = int(rng.integers(0, 9)), int(rng.integers(0, 9))
    if rng.random() < 0.3:
        after += -(before + step * shape[2] + after) % 16  # rows that would share banks
    unlike = 111 if dtype.kind not in "fc" or op.startswith("nan") else np.nan
    wide = np.full((*shape[:2], before + step * shape[2] + after), unlike).astype(dtype)
    a = wide[:, :, before : before + step * shape[2] : step]
    a[:] = draw(rng, dtype, int(np.prod(shape))).reshape(shape)
    return a, axis


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
@pytest.mark.parametrize("variant", [pytest.param(name, marks=ON_DEVICE) for name in STEPPED])
def test_of_every_second_element_the_others_are_not_seen(variant):
    rng, taken = generator("second", variant), 0
    ops = {"prod": ("float16", "float32", "complex128")} if variant == "trees" else OPS
    for _ in range(200):
        op = str(rng.choice(list(ops)))
        dtype = numpy_dtype(str(rng.choice(ops[op])))
        if dtype.name == "bfloat16":
            continue
        a, axis = stepped(rng, op, dtype, variant)
        where = where_there = np._NoValue
        if op in MASKED and rng.random() < 0.2:
            where = rng.random(a.shape) < 0.7
            where_there = on_device(where)
        result = reduced(op, on_device(a), axis, where_there, "auto", variant)
        if result is None:
            continue
        taken += 1
        want = reduced(op, a, axis, where, "cpu")
        assert_bits(fetched(result), want, f"{op} {dtype} {a.shape} {a.strides}")
    assert taken > 15, f"{taken} layouts came to it"


@pytest.mark.gpu
@pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}")
@pytest.mark.parametrize("dtype", ["int8", "bool", "float16", "float32", "float64", "complex64"])
def test_a_row_and_two_that_begin_anywhere(dtype):
    """On the device, where they stay as they lie."""
    rng = generator("anywhere", dtype)
    wide = draw(rng, np.dtype(dtype), 3 * 9007).reshape(3, 9007)
    for start, stop in ((0, 8191), (1, 9006), (2, 4099), (3, 9007), (5, 267), (7, 8)):
        for rows in (wide[1:2, start:stop], wide[1:3, start:stop]):
            for op in ("sum", "mean", "argmax") if dtype != "complex64" else ("sum", "mean"):
                got = reduced(op, on_device(rows), 0, np._NoValue, "auto")
                want = reduced(op, rows, 0, np._NoValue, "cpu")
                assert_bits(fetched(got), want, f"{op} {dtype} {start} {stop}")
