"""Users' operators: the bits of the tree in Python, whatever the layout, and what is refused."""

import math
import pickle
import subprocess
import sys
import tempfile
import threading
from collections import Counter

import numpy as np
import pytest
from arrays import generator
from operator_cases import CASES, expected
from table import SANITIZED

import gpureduce
from gpureduce import Operator, OperatorError, _core
from gpureduce.custom import evaluate, native, runner, toolchain
from gpureduce.custom.arrays import kind

pytestmark = pytest.mark.skipif(SANITIZED, reason="AddressSanitizer is not for compilers")

COUNT, WHY = _core.device_count()
_made = {}


def made(name):
    """One for all tests: each is compiled once."""
    if name not in _made:
        _made[name] = Operator(**CASES[name].text, name=name.replace(" ", "_").replace("-", "_"))
    return _made[name]


def inner_of(op):
    return [i.shape for i in op._front.inputs]


def plain(a):
    """NaN as the one of this library."""
    real = a.view(a.real.dtype) if a.dtype.kind == "c" else a
    if real.dtype.kind == "f":
        real[real != real] = np.nan
    return a


def flat_results(found):
    """The arrays of all results."""
    parts = found if isinstance(found, tuple) else (found,)
    return [np.asarray(part) for part in parts]


def check(name, inputs, axes, found, where=None, initial=None, keepdims=False):
    case, op = CASES[name], made(name)
    inner = inner_of(op)
    outer = [a.shape[: a.ndim - len(i)] for a, i in zip(inputs, inner, strict=True)]
    shape = np.broadcast_shapes(*outer)
    whole = [np.broadcast_to(a, shape + i) for a, i in zip(inputs, inner, strict=True)]
    wanted = expected(case, whole, shape, axes, where, initial)
    kept = tuple((1 if d in axes else n) for d, n in enumerate(shape) if keepdims or d not in axes)
    columns = list(zip(*wanted, strict=True))
    parts = flat_results(found)
    if len(parts) == 1 and len(columns) > 1:  # one result that is an array
        rows = parts[0].reshape(len(wanted), len(columns))
        parts = [rows[:, k].reshape(kept) for k in range(len(columns))]
    assert len(parts) == len(columns) or not wanted
    for part, column in zip(parts, columns, strict=True):
        assert part.shape == kept
        assert plain(np.array(column, part.dtype)).tobytes() == part.tobytes(), name


LAYOUTS = {
    "c": lambda a: a,
    "fortran": lambda a: np.asfortranarray(a),
    "reversed": lambda a: a[::-1].copy()[::-1],
    "gaps": lambda a: np.repeat(a, 3, axis=0)[::3],
    "unaligned": lambda a: _unaligned(a),
    "swapped": lambda a: a.astype(a.dtype.newbyteorder("S")),
}


def _unaligned(a):
    room = np.empty(a.nbytes + 1, np.uint8)
    out = room[1:].view(a.dtype).reshape(a.shape)
    out[...] = a
    return out


def drawn(rng):
    """A shape, axes of it and a layout."""
    dims = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(1, [70, 24, 9][dims - 1] + 1, dims))
    axes = tuple(int(d) for d in np.flatnonzero(rng.random(dims) < 0.6))
    return shape, axes, str(rng.choice(list(LAYOUTS)))


@pytest.mark.parametrize("name", CASES)
def test_the_bits_are_the_trees(name):
    rng = generator("operators", name)
    for _ in range(6):
        shape, axes, layout = drawn(rng)
        inputs = [LAYOUTS[layout](a) for a in CASES[name].make(rng, shape)]
        gpureduce.set_num_threads(int(rng.integers(1, 8)))
        keepdims = bool(rng.random() < 0.3)
        found = made(name)(*inputs, axis=axes, keepdims=keepdims)
        check(name, inputs, axes, found, keepdims=keepdims)


@pytest.mark.parametrize("name", ["welford", "longest run", "hypot", "histogram"])
def test_masks_leave_out(name):
    rng = generator("operators", "mask", name)
    for _ in range(5):
        shape, axes, layout = drawn(rng)
        inputs = [LAYOUTS[layout](a) for a in CASES[name].make(rng, shape)]
        where = rng.random(shape) < rng.choice([0.1, 0.5, 0.95])
        found = made(name)(*inputs, axis=axes, where=where)
        check(name, inputs, axes, found, where)


@pytest.mark.parametrize("name", ["welford", "runs", "hypot", "two sum", "matrices"])
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_long_ones_are_cut_anywhere(name, threads):
    """Several slices of several threads; against NumPy's road, which knows no slices."""
    rng = generator("operators", "long", name)
    op = made(name)
    gpureduce.set_num_threads(threads)
    for shape, axes in [((700_001,), (0,)), ((300_000, 3), (0,)), ((40, 9_001, 2), (1,))]:
        inner = inner_of(op)[0]
        if inner:
            shape = (shape[0] // 4, *shape[1:])
        inputs = CASES[name].make(rng, shape)
        found = op(*inputs, axis=axes)
        assert bits(found) == bits(by_numpy(op, inputs, shape, axes))


def bits(found):
    return [np.ascontiguousarray(part).tobytes() for part in flat_results(found)]


def by_numpy(op, inputs, shape, axes, where=None):
    arrays = [np.asarray(a) for a in inputs]
    kinds = tuple(kind(op.name, a.dtype) for a in arrays)
    case = runner.Case(runner.Made(op._program(kinds), None), op._front.inputs, arrays, shape, None)
    found = runner.reduce(case, axes, None)
    return tuple(found) if len(found) > 1 else found[0]


def without_compiler(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")


@pytest.mark.parametrize("name", CASES)
def test_numpy_does_the_same_where_there_is_no_compiler(name, monkeypatch):
    without_compiler(monkeypatch)
    monkeypatch.setattr(runner, "_told", True)
    rng = generator("operators", "numpy", name)
    op, other = made(name), pickle.loads(pickle.dumps(made(name)))
    for _ in range(3):
        shape, axes, layout = drawn(rng)
        inputs = [LAYOUTS[layout](a) for a in CASES[name].make(rng, shape)]
        found = other(*inputs, axis=axes)
        if name == "logsumexp":  # exp() is NumPy's there
            np.testing.assert_allclose(found, op(*inputs, axis=axes), rtol=1e-12)
        else:
            check(name, inputs, axes, found)


def test_one_warning_tells_that_it_is_slow(monkeypatch):
    without_compiler(monkeypatch)
    monkeypatch.setattr(runner, "_told", False)
    op = Operator("f8", combine="a * b - 3 * (a - b)", lift="1", identity=None)
    with pytest.warns(RuntimeWarning, match="no C compiler"):
        op(np.arange(3.0))
    Operator("f8", combine="a - 2 * b")(np.arange(3.0))


# --- arguments ------------------------------------------------------------------------------------

X = np.arange(24.0).reshape(2, 3, 4)


def test_axis_has_all_forms():
    op = made("two sum")
    for axis in (None, 0, -1, (0, 2), (-1, 0), (), [1], np.int8(1)):
        as_tuple = tuple(axis) if isinstance(axis, list) else axis
        np.testing.assert_array_equal(op(X, axis=as_tuple), X.sum(axis=as_tuple))
    with pytest.raises(np.exceptions.AxisError):
        op(X, axis=3)
    with pytest.raises(ValueError, match="duplicate value in axis"):
        op(X, axis=(1, -2))
    assert isinstance(op(X), np.float64) and op(X, axis=0).flags.c_contiguous
    assert op(X, axis=1, keepdims=True).shape == (2, 1, 4)
    assert op(np.float64(3)) == 3 and op([[1, 2], [3, 4]], axis=1).tolist() == [3, 7]


def test_out_dtype_and_names():
    op = made("welford")
    mean, var = np.empty(4, np.float32), np.empty(4)
    found = op(X, axis=(0, 1), out=(mean, var))
    assert found.mean is mean and found.var is var and type(found).__name__ == "welford"
    plain = op(X, axis=(0, 1))
    assert mean.tolist() == plain.mean.astype(np.float32).tolist()
    assert var.tolist() == plain.var.tolist()
    assert pickle.loads(pickle.dumps(op(X))) == op(X)
    assert op(X, dtype="f4").var.dtype == np.float32
    assert op(X, dtype={"var": "f2"}).var.dtype == np.float16
    with pytest.raises(ValueError, match="no result"):
        op(X, dtype={"median": "f2"})
    with pytest.raises(TypeError, match="does not fit"):
        op(X, axis=(0, 1), out=(np.empty(4, int), var))
    with pytest.raises(ValueError, match="shape"):
        op(X, axis=0, out=(mean, var))
    with pytest.raises(ValueError, match="tuple of 2"):
        op(X, axis=(0, 1), out=mean)
    single = np.empty(())
    assert made("two sum")(X, out=single) is single and single == X.sum()


def test_of_several_outs_none_is_written_if_one_does_not_fit():
    op = Operator("n: i8, s: f8", lift="n = 1; s = x", combine="n = a.n + b.n; s = a.s + b.s")
    first, second = np.full(3, -1), np.zeros(3)
    second.flags.writeable = False
    for wrong, message in ((np.zeros(2), "has the shape"), (second, "read-only")):
        with pytest.raises(ValueError, match=message):
            op(np.ones((2, 3)), axis=0, out=(first, wrong))
        assert (first == -1).all()


def test_initial_stands_left_of_all():
    minus = Operator("f8", combine="a - b")
    assert minus(np.array([1.0, 2.0, 4.0]), initial=10.0) == 10 - ((1 - 2) - 4)
    affine = made("affine")
    assert tuple(affine([2.0], [1.0], initial=(3.0, 5.0))) == (6.0, 11.0)
    assert tuple(affine([2.0], [1.0], initial={"c": 5.0, "m": 3.0})) == (6.0, 11.0)
    assert affine([2.0], [1.0], initial=affine([3.0], [5.0])) == affine([3.0, 2.0], [5.0, 1.0])
    with pytest.raises(ValueError, match="2 values"):
        affine([2.0], [1.0], initial=(3.0,))


@pytest.mark.parametrize(
    "given", [{"finish": {"a²": "a"}}, {"state": "a²: f8"}, {"inputs": "x²", "lift": "1.0"}]
)
def test_names_are_those_of_c(given):
    with pytest.raises(OperatorError):
        gpureduce.Operator(**({"state": "f8", "combine": "a + b"} | given))


@pytest.mark.parametrize("given", ["initial", "identity"])
@pytest.mark.parametrize(("value", "error"), [(300, OverflowError), (np.nan, ValueError)])
def test_a_state_of_integers_takes_what_fits(given, value, error):
    texts = {"combine": "a + b", "identity": 0}
    asked = {"initial": value} if given == "initial" else {}
    changed = {"identity": value} if given == "identity" else {}
    with pytest.raises(error):
        gpureduce.Operator("i1", **(texts | changed))(np.ones(2, "i1"), **asked)
    assert gpureduce.Operator("i1", **texts)(np.ones(2, "i1"), initial=-128) == -126


def test_as_many_dimensions_as_numpy_has():
    plus, shape = gpureduce.Operator("f8", combine="a + b", identity=0.0), (1,) * 62 + (2, 3)
    a = np.arange(6.0).reshape(shape)
    assert plus(a) == 15 and plus(a, where=a > 1) == 14 and plus(a, axis=63).shape == shape[:-1]
    both = gpureduce.Operator("f8", combine="a + b", inputs="x, y", lift="x * y", identity=0.0)
    assert both(a, np.ones(3), axis=-1).ravel().tolist() == [3, 12]
    with pytest.raises(ValueError, match="do not go together"):
        both(a, np.ones(2))
    with pytest.raises(
        TypeError, match=r"^operator: axis must be an integer, or several .* not 1\.0"
    ):
        plus(a, axis=1.0)


def test_nothing_to_reduce():
    plain, minus = made("two sum"), Operator("f8", combine="a - b")
    assert plain([]) == 0 and plain(np.empty((2, 0)), axis=1).tolist() == [0, 0]
    with pytest.raises(ValueError, match="which has no identity"):
        minus([])
    assert minus([], initial=3.0) == 3 and minus(np.empty((0, 3)), axis=1).shape == (0,)
    with pytest.raises(ValueError, match="does not have an identity"):
        minus(X, where=X > 3)
    assert minus(X, where=X > 21, initial=5.0) == 5 - (22.0 - 23.0)
    assert minus(X, where=X > 99, initial=5.0) == 5


def test_reduceat_and_segments():
    rng = generator("operators", "segments")
    op = made("runs")
    a = rng.integers(0, 3, (50, 4))
    offsets = [0, 7, 7, 30, 12, 49]
    found = gpureduce.reduceat(a, offsets, op)
    ends = [*offsets[1:], 50]
    parts = [a[s : max(s + 1, e)] for s, e in zip(offsets, ends, strict=True)]
    assert found.tolist() == [op(part, axis=0).tolist() for part in parts]
    starts, stops = [3, 0, 20, 50], [9, 50, 21, 50]
    with pytest.raises(ValueError, match="no identity"):
        gpureduce.segments(a, starts, stops, op)
    found = gpureduce.segments(a, starts[:3], stops[:3], op)
    wanted = [op(a[s:e], axis=0) for s, e in zip(starts[:3], stops[:3], strict=True)]
    assert found.tolist() == np.array(wanted).tolist()
    sums = gpureduce.segments(X, [0, 2, 1], [3, 2, 2], made("two sum"), axis=1)
    assert sums.tolist() == np.stack([X.sum(1), 0 * X[:, 0], X[:, 1]], 1).tolist()
    both = gpureduce.segments((X, X), [0], [2], made("line"), axis=2)
    assert both.slope.shape == (2, 3, 1)
    many = np.arange(2_000_000.0)
    cuts = np.unique(rng.integers(0, 1_990_000, 300_000))
    np.testing.assert_array_equal(
        gpureduce.reduceat(many, cuts, made("two sum")), np.add.reduceat(many, cuts)
    )
    with pytest.raises(IndexError):
        gpureduce.reduceat(a, [50], op)
    with pytest.raises(IndexError):
        gpureduce.segments(a, [0], [51], op)
    with pytest.raises(TypeError):
        gpureduce.reduceat(a, [0.5], op)


def test_long_segments_have_slices_of_their_own(monkeypatch):
    monkeypatch.setattr(runner, "LARGE", 1000 / native.SLICE)
    a = generator("operators", "long segments").normal(size=(5000, 2))
    op = made("two sum")
    found = gpureduce.segments(a, [0, 10, 4990, 7], [4000, 20, 5000, 7], op)
    wanted = [op(a[s:e], axis=0) for s, e in [(0, 4000), (10, 20), (4990, 5000), (7, 7)]]
    assert found.tobytes() == np.array(wanted).tobytes()


def test_dear_operators_have_short_slices(monkeypatch):
    """Between which Ctrl-C is answered."""
    steps = "; ".join(["s = sin(s + b)"] * 400)
    dear = gpureduce.Operator("f8", combine=f"s = a; {steps}; s")
    a = generator("operators", "dear").normal(size=(20000, 2))
    found = dear(a, axis=0)
    (held,) = (made.native for made in dear._made.values() if isinstance(made, runner.Made))
    assert held is None or native.SLICE_LEAST <= held.slice < native.SLICE // 16
    if held:
        monkeypatch.setattr(held, "slice", native.SLICE)
    assert dear(a, axis=0).tobytes() == found.tobytes()


def test_reduce_takes_operators():
    assert gpureduce.reduce(X, made("two sum"), axis=1).tolist() == X.sum(axis=1).tolist()
    found = gpureduce.reduce((X, X[0]), made("line"), axis=2)
    assert found.slope.shape == (2, 3)
    for kernel, error, message in (("last_block", TypeError, "commutative=True"),
                                   ("unroll8", TypeError, "several launches"),
                                   ("last", ValueError, "is not one of")):  # fmt: skip
        with pytest.raises(error, match=message):
            gpureduce.reduce(X, made("two sum"), kernel=kernel)
    with pytest.raises(ValueError, match="takes no where"):
        gpureduce.reduce(X, made("two sum"), kernel="last_block_noncomm", where=X > 1)


def test_elements_may_be_large():
    """Leaves that do not lie as they should find room on any thread's stack."""
    op = Operator("f8", inputs="m[25][25]", lift="m[0][0] + m[24][24]", combine="a * 0.5 + b")
    m = generator("operators", "large").normal(size=(20, 30, 25, 25))
    wanted = Operator("f8", combine="a * 0.5 + b")
    ends = m[..., 0, 0] + m[..., 24, 24]
    found = []
    before = threading.stack_size(1 << 19)
    try:
        thread = threading.Thread(target=lambda: found.extend(op(m, axis=n) for n in (0, 1, None)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert bits(tuple(found)) == bits(tuple(wanted(ends, axis=n) for n in (0, 1, None)))
    with pytest.raises(OperatorError, match="12288 numbers in all"):
        Operator("f8", inputs="l[64][64], m[64][64], n[64][64]", combine="a", lift="1")


def test_what_is_more_than_an_array_is_refused():
    op = made("two sum")
    with pytest.raises(TypeError, match="MaskedArray"):
        op(np.ma.masked_less(X, 3))
    with pytest.raises(TypeError, match="object"):
        op(np.array([object()]))
    for dtype in ("U3", "M8[s]", np.longdouble, [("a", "f8")]):
        with pytest.raises(TypeError, match="not supported"):
            op(np.zeros(3, dtype))
    with pytest.raises(TypeError, match="takes 2 inputs, u, v, not 1"):
        made("line")(X)
    with pytest.raises(ValueError, match="do not go together"):
        made("line")(X, X[:, :2])
    with pytest.raises(ValueError, match="last axes"):
        made("matrices")(X)
    with pytest.raises(TypeError, match="where must be of bool, not float64"):
        op(X, where=np.ones(4))


@pytest.mark.skipif(COUNT > 0, reason="there is a GPU")
@pytest.mark.parametrize(
    ("given", "way_out"),
    [
        ({"device": "cuda"}, 'use device="cpu"'),
        ({"kernel": "single_block_noncomm"}, "leave out kernel="),
        ({"kernel": "single_block_noncomm", "device": "cuda:1"}, "leave out kernel= and device="),
    ],
)
def test_without_a_device_what_is_advised_works(given, way_out):
    plus = made("two sum")
    with pytest.raises(gpureduce.DeviceError) as caught:
        gpureduce.reduce(X, plus, **given)
    assert str(caught.value) == f"{WHY}, or {way_out}"
    advised = {"device": "cpu"} if "kernel" not in given else {}
    assert gpureduce.reduce(X, plus, **advised) == plus(X)


def test_devices_are_refused_by_name():
    class OnDevice:
        __cuda_array_interface__ = {"shape": (3,), "typestr": "<f8", "data": (0, True)}  # noqa: RUF012

    with pytest.raises(TypeError, match=r"OnDevice is on a device, and device='cpu' was asked"):
        made("two sum")(OnDevice(), device="cpu")
    with pytest.raises(TypeError, match="one device"):
        made("two sum")(X, device="cuda:all")
    with pytest.raises(ValueError, match="not known"):
        made("two sum")(X, device="tpu")


def test_progress_is_told():
    calls = []
    made("two sum")(np.ones(3_000_000), progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (3_000_000, 3_000_000)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_bfloat16_and_half():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = generator("operators", "bfloat16").normal(size=(9, 130)).astype(ml_dtypes.bfloat16)
    op = Operator("bfloat16", combine="a + b", identity=0)
    found = op(x, axis=1)
    level = x
    while level.shape[1] > 1:
        even = level.shape[1] // 2 * 2
        pairs = level[:, :even:2] + level[:, 1:even:2]
        level = np.concatenate([pairs, level[:, even:]], axis=1)
    assert found.dtype == ml_dtypes.bfloat16 and found.tobytes() == level[:, 0].tobytes()


def test_every_dtype_goes_in_and_out():
    rng = generator("operators", "dtypes")
    for dtype in "?bhilBHILefdFD":
        x = (rng.normal(size=40) * 3).astype(dtype)
        left = Operator(np.dtype(dtype), combine="a")
        right = Operator(np.dtype(dtype), combine="b")
        assert left(x) == x[0] and right(x) == x[-1] and left(x).dtype == x.dtype


# --- functions of C -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("(int)x / 7", lambda x: int(x / 7) if abs(x) >= 7 else 0),
        ("(int)x % 7", lambda x: int(math.fmod(int(x), 7))),
        ("(int)x / 0", lambda x: 0),
        ("(int)x << 3", lambda x: int(x) << 3),
        ("(int)x >> 1", lambda x: int(x) >> 1),
        ("~(int)x & 0xff", lambda x: ~int(x) & 0xFF),
        ("x > 2 && x < 5 || !(x != 9)", lambda x: int(2 < x < 5 or x == 9)),
        ("fmod(x, 2.5) + floor(x) - ceil(x) * trunc(x)",
         lambda x: math.fmod(x, 2.5) + math.floor(x) - math.ceil(x) * math.trunc(x)),
        ("rint(x) + 10 * round(x)",
         lambda x: round(x) + 10 * math.copysign(math.floor(abs(x) + 0.5), x)),
        ("copysign(2, x) + fdim(x, 1) + signbit(x)",
         lambda x: math.copysign(2, x) + max(x - 1, 0) + (x < 0)),
        ("ldexp(x, 3) + isnan(x) + isinf(x) + isfinite(x)", lambda x: x * 8 + 1),
        ("x < 0 ? -x : x == 0 ? 1e3 : x", lambda x: -x if x < 0 else 1000 if x == 0 else x),
        ("fma(x, 0x1.8p1, .5f)", lambda x: x * 3 + 0.5),
        ("creal(conj((double complex)x * I)) - cimag(conj(x * I))", lambda x: x),
        ("(unsigned char)(int)x", lambda x: int(x) & 255),
        ("abs((int)x) + fabs(x) + min(x, 1) + max(x, 1)",
         lambda x: abs(int(x)) + abs(x) + min(x, 1) + max(x, 1)),
        ("t = x; t += 2; t *= 3; t -= 1; t /= 2; t", lambda x: ((x + 2) * 3 - 1) / 2),
        ("/* a */ t = 1 // b\n u = t +\n 2; u * x", lambda x: 3 * x),
        ("int n = 0; double t[3]; for (int k = 0; k < 3; ++k) { t[k] = k * x; n++; }"
         " t[2] + n", lambda x: 2 * x + 3),
        ("t = 1; if (x > 0) { t = 2; if (x > 3) t = 3 } else if (x < -3) t = 4; t",
         lambda x: 3 if x > 3 else 2 if x > 0 else 4 if x < -3 else 1),
        ("exp(x / 8) + log1p(x * x) + sin(x) + pow(2, x) + atan2(x, 2) + hypot(x, 1) + erf(x)",
         lambda x: math.exp(x / 8) + math.log1p(x * x) + math.sin(x) + math.pow(2, x)
         + math.atan2(x, 2) + math.hypot(x, 1) + math.erf(x)),
        ("010 + 0x10 + 1u + 1l + 1e1", lambda x: 36),
    ],
)  # fmt: skip
def test_expressions_mean_what_c_means(text, python, monkeypatch):
    op = Operator("f8", lift=text, combine="a", name="expression")
    x = np.array([-9.5, -3.0, -2.5, -0.5, 0.5, 1.5, 2.5, 3.0, 4.75, 9.0, 100.0])
    found = op(x, axis=())
    near = 1e-15 if "exp" in text else 0  # of functions that are each library's own
    np.testing.assert_allclose(found, [python(v) for v in x.tolist()], rtol=near)
    np.testing.assert_allclose(by_numpy(op, [x], x.shape, ()), found, rtol=near)


def test_floats_beyond_integers_are_defined():
    """As x86 has it, on all machines and roads."""
    x = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 2.0**63, 3e9, -1.5, 2.0**64 - 2048])
    for type_, least in [("int64_t", -(2**63)), ("int", 0)]:
        op = Operator("i8", lift=f"({type_})x", combine="a")
        found = op(x, axis=())
        assert found[0] == found[1] == found[3] == least and found[7] == -1
        assert bits(by_numpy(op, [x], x.shape, ())) == bits(found)
    op = Operator("u8", lift="(uint64_t)x", combine="a")
    assert op(x, axis=())[-1] == 2**64 - 2048
    assert bits(by_numpy(op, [x], x.shape, ())) == bits(op(x, axis=()))


def test_nan_is_one_and_zeros_are_told_apart():
    x = np.array([0.0, -0.0, np.nan, -np.nan, 1.0])
    op = Operator("f8", combine="fmin(a, b)")
    assert np.signbit(op(x)) and op(x) == 0
    assert not np.signbit(Operator("f8", combine="fmax(a, b)")(x[:3]))
    one = Operator("f8", combine="a")(x, axis=())
    assert one[2:4].tobytes() == np.array([np.nan, np.nan]).tobytes()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_least_and_greatest_of_any_two(dtype):
    """NaN is none of them, and -0.0 is below 0.0; along either axis."""
    some = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan], dtype)
    pairs = np.array([(a, b) for a in some for b in some])
    for name, take in (("fmin", min), ("fmax", max)):
        wanted = [
            b if a != a else a if b != b else take((a, b), key=lambda x: (x, not np.signbit(x)))
            for a, b in pairs
        ]
        op = Operator(dtype, combine=f"{name}(a, b)")
        for got in (op(pairs, axis=1), op(np.ascontiguousarray(pairs.T), axis=0)):
            assert got.tobytes() == np.array(wanted, dtype).tobytes()
    apart = Operator(dtype, combine="fdim(a, b)")(pairs, axis=1)
    with np.errstate(invalid="ignore"):
        wanted = np.where(pairs[:, 0] <= pairs[:, 1], 0, pairs[:, 0] - pairs[:, 1])
    assert np.array_equal(apart, wanted, equal_nan=True)


@pytest.mark.parametrize("dtype", ["i1", "i8", "u8", "?"])
def test_integers_by_functions_of_floats(dtype):
    """What tells NaN and zeros apart is left out for them, and they go as fast along any axis."""
    edges = np.iinfo(dtype) if dtype != "?" else np.iinfo("u1")
    some = np.array([0, 1, 2, 100, edges.min, edges.max, edges.max - 1]).astype(dtype)
    pairs = np.array([(a, b) for a in some for b in some])
    for name, chosen in (("fmin", np.minimum), ("fmax", np.maximum)):
        op = Operator("f8", combine="a", lift=f"{name}(x, y)", inputs="x, y")
        wanted = chosen(*pairs.T.astype(float))
        assert op(*pairs.T, axis=()).tobytes() == wanted.tobytes()
        op = Operator(dtype, combine=f"{name}(a, b)")
        wanted = Operator(dtype, combine=f"(double)({name[1:]}((double)a, (double)b))")
        for axis, given in ((1, pairs), (0, np.ascontiguousarray(pairs.T))):
            assert op(given, axis=axis).tobytes() == wanted(given, axis=axis).tobytes()
    for name in ("floor", "round"):
        op = Operator("f8", combine="a", lift=f"{name}(x) + {name}f(x) + {name}(-0.0)")
        single = some.astype(np.float32)
        assert op(some, axis=()).tobytes() == (some.astype(float) + single + -0.0).tobytes()
    minus = Operator("f8", combine="a", lift="1 / fmax(x * 0 - 0.0, -0.0) + fmin(x - x, -0.0)")
    assert (minus(some, axis=()) == np.inf).all()


# --- what is refused ------------------------------------------------------------------------------

REFUSED = [
    ({"combine": "a +"}, "combine, line 1, column 4: an expression is expected"),
    ({"combine": "a + c"}, "there is no c here"),
    ({"combine": "a b"}, "should end before b"),
    ({"combine": "}; evil(); {"}, "no { that this } closes"),
    ({"combine": "if (a > b) { a"}, "not closed"),
    ({"combine": "#include <stdio.h>\na + b"}, "preprocessor"),
    ({"combine": "a\n  + b"}, "line 2, column 3: a line that begins with +"),
    ({"combine": "asm(1)"}, "asm has no place here"),
    ({"combine": "system(1)"}, "no function system"),
    ({"combine": '"text"'}, "no strings"),
    ({"combine": "combine(a, b)"}, "calls itself"),
    ({"combine": "a = b; a"}, "a is given"),
    ({"combine": "sqrt = b; a"}, "C's own name"),
    ({"combine": "a.mean"}, "only the states a and b have fields"),
    ({"combine": "while (1) a"}, "while has no place"),
    ({"combine": "for (k = 0; a < 3; k++) t = 1; a"}, "how often a loop turns"),
    ({"combine": "for (k = 0; 1; k++) t = 1; a"}, "turns of loops"),
    ({"combine": "a % b"}, "% is for integers"),
    ({"combine": "a & b"}, "& is for integers"),
    ({"combine": "for (k = 0, j = 0; k < 3; k++) t = a; t"}, "; is expected here, not ,"),
    ({"combine": "for (int k = 0, j = 0; k < 3; k++) t = a; t"}, "a loop has one variable"),
    ({"combine": "for (int k[2]; 1; k++) t = a; t"}, "this is an array"),
    ({"combine": "double t[2]; t[0] = a; t[1] = b; t"}, "the result is to be a number"),
    (
        {"combine": "a", "inputs": "m[3]", "lift": "m"},
        "lift, line 1, column 2: the result is to be",
    ),
    ({"combine": "a", "identity": "double t[1]; t[0] = 0; t"}, "the result is to be a number"),
    ({"combine": "a", "finish": "double t[2]; t[0] = a; t"}, "this array is not assigned whole"),
    ({"combine": "a", "inputs": f"m[{'9' * 5000}]"}, "no name, nor a name with [lengths]"),
    ({"combine": "sqrt(a, b)"}, "takes 1 arguments, not 2"),
    ({"combine": "1 + 1.5L"}, "long double"),
    ({"combine": "99999999999999999999"}, "too large"),
    ({"combine": "a + " + "9" * 5000}, "too large"),
    ({"combine": "a + 0x" + "f" * 5000}, "too large"),
    ({"combine": "a + \u0661"}, "is no part of C"),
    ({"combine": "0x"}, "is no number"),
    ({"combine": "09"}, "octal"),
    ({"combine": "1_000"}, "is no number"),
    ({"combine": "t = t + a; t"}, "there is no t here"),
    ({"combine": "if (a > b) t = 1; t"}, "in one branch alone"),
    ({"combine": "a + b; a"}, "has no effect"),
    ({"combine": "(" * 300 + "a" + ")" * 300}, "nested too deeply"),
    ({"combine": " + ".join(["a"] * 5000)}, "too long"),
    ({"combine": "I * a"}, "complex number does not fit"),
    ({"combine": "t = 1"}, "the last line is to be an expression"),
    ({"combine": ""}, "the last line is to be an expression"),
    ({"combine": "a ? b"}, ": is expected here"),
    ({"combine": "(short double)a"}, "is no type"),
    ({"combine": "return a"}, "return has no place"),
    ({"combine": "a @ b"}, "is no part of C"),
    ({"combine": "a + b /* + a"}, "this comment does not end"),
    ({"combine": "a", "identity": "b"}, "there is no b here"),
    ({"combine": "a", "identity": "x"}, "identity, line 1"),
    ({"combine": "a", "identity": "zero"}, "identity, line 1"),
    ({"combine": "a", "identity": (1, 2)}, "has the shape"),
    ({"combine": "a", "identity": [None]}, "no number"),
    ({"combine": "a", "lift": "q"}, "lift, line 1, column 1: there is no q here; there is x, i"),
    ({"combine": "a", "finish": {"class": "a"}}, "no name for a result"),
    ({"combine": "a", "finish": {}}, "names no result"),
    ({"combine": "a", "finish": {"r": "q"}}, "finish of r, line 1"),
    ({"combine": "a", "inputs": "x, x"}, "there twice"),
    ({"combine": "a", "inputs": "2x"}, "no name"),
    ({"combine": "a", "inputs": "sqrt"}, "something else"),
]
REFUSED_STATES = [
    ("x: f8[99]", {}, "more than 256"),
    ("x: f8, x: f8", {}, "there twice"),
    ("x: O", {}, "no number"),
    ("x: what", {}, "no dtype"),
    ("x f8: y", {}, "is no field"),
    ("sqrt: f8", {}, "something else"),
    ("a: f8", {}, "something else"),
    ("s: exact i4", {}, "there are exact f4 and f8"),
    ("s: exact f8, t: exact f8", {}, "more than 640"),
    ("(3,)f8", {}, "give an array a name"),
    ("v: f8, n: i8", {"combine": "v = a.v"}, "n is not assigned"),
    ("v: f8, n: i8", {"combine": "v = a.v; a.n"}, "assigned to none of v, n"),
    ("v: f8, n: i8", {"combine": "v = a.w; n = 1"}, "a has no field w; it has v, n"),
    ("v: f8, n: i8", {"combine": "v = a; n = 1"}, "a is a state: its fields are v, n"),
    ("v: f8, n: i8", {"combine": "v = n; n = 1"}, "n is read before it is assigned"),
    ("v: f8, n: i8", {"combine": "a.v = 1; v = 1; n = 1"}, "results have bare names"),
    ("v: f8[3]", {"combine": "v[3] = 1"}, "v has no element 3"),
    ("v: f8[3]", {"combine": "v[0] = 1"}, "v is not assigned whole"),
    ("v: f8[3]", {"combine": "v = a.v[0]"}, "not the same shape"),
    ("v: f8[3]", {"combine": "v = a.v; v += 1"}, "this is an array"),
    ("v: f8[3]", {"combine": "t = 1; t += a.v; v = a.v"}, "this is an array"),
    ("v: f8[3]", {"combine": "double t[3]; t[0] = 1; v = t"}, "not assigned whole"),
    ("v: f8[3]", {"combine": "if (a.v[0] > 0) t = a.v; else t = 1; v = a.v"}, "of two shapes"),
    ("v: f8[1], w: f8[3]", {"lift": "v[0] = x; for (k = 0; k < 3; k++) w[k] = x",
                            "combine": "if (a.v[0] > 0) t = a.v; else t = a.w; v = t; w = a.w"},
     "of two shapes"),
    ("v: f8[4294967296][4294967296]", {}, "more than 256"),
    (f"v: f8[{'9' * 5000}]", {}, "is no field"),
    ("v:" + " " * 50_000 + "[", {}, "is no field"),
    ("v: f8[3]", {"combine": "v[0][0] = 1"}, "has 1 dimensions"),
    ("v: f8[3]", {"combine": "v = a.v; v[(int)v[0]] = 1"}, "a constant"),
    ("v: f8", {"combine": "v = a.v + b.v", "lift": None}, "lift is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_bad_texts_are_refused(given, message):
    with pytest.raises(OperatorError) as failed:
        Operator("f8", **given)
    assert message in str(failed.value)


@pytest.mark.parametrize(("state", "given", "message"), REFUSED_STATES)
def test_bad_states_are_refused(state, given, message):
    given = {"lift": "v = x; n = 1" if "n:" in state else "for (k = 0; k < 3; k++) v[k] = x"
             if "[" in state else "v = x", "combine": "v = a.v", **given}  # fmt: skip
    with pytest.raises(OperatorError) as failed:
        Operator(state, **given)
    assert message in str(failed.value)


def test_the_users_own_line_is_shown():
    with pytest.raises(OperatorError) as failed:
        Operator("mean: f8", lift="mean = x", combine="d = b.mean\nmean = a.maen + d")
    assert str(failed.value).split("\n") == [
        "combine, line 2, column 10: a has no field maen; it has mean",
        "    mean = a.maen + d",
        "             ^",
    ]


def test_an_identity_that_is_none_is_told_of():
    with pytest.warns(RuntimeWarning, match="identity changes"):
        Operator("f8", combine="a * b", identity=0.0)
    for given in ({"combine": 3}, {"combine": None}, {"combine": "a", "finish": 3},
                  {"combine": "a", "finish": {"r": None}}):  # fmt: skip
        with pytest.raises(TypeError, match="is a text"):
            Operator("f8", **given)


def test_an_identity_is_that_of_its_time():
    identity = [0, 0]
    op = Operator("n: i8, s: f8", lift="n = 1; s = x", combine="n = a.n + b.n; s = a.s + b.s",
                  identity=identity)  # fmt: skip
    identity[0] = 100
    for again in (op, pickle.loads(pickle.dumps(op))):
        assert tuple(again(np.zeros(0, np.float32))) == tuple(again([])) == (0, 0)
    for none in ({0, 1}, iter((0, 0))):
        with pytest.raises(OperatorError, match="no order"):
            Operator("n: i8, s: f8", lift="n = 1; s = x", combine="n = 1; s = 1", identity=none)


@pytest.mark.parametrize("field", ["class", "_n"])
def test_fields_that_name_no_result(field):
    given = {"lift": f"{field} = x", "combine": f"{field} = a.{field} + b.{field}"}
    with pytest.raises(OperatorError, match="no name for a result"):
        Operator(f"{field}: f8", **given)
    assert Operator(f"{field}: f8", **given, finish=field)([1.0, 2.0]) == 3


def test_check_operator_finds_what_is_wrong():
    found = gpureduce.check_operator(Operator("f8", combine="a - b"), [1.0, 2.0, 3.0])
    assert not found.associative and not found.commutative and len(found.example) == 3
    found = gpureduce.check_operator(made("hypot"), np.array([1, 2, 3], np.float32))
    assert found.associative and found.commutative and found.neutral and not found.exact
    found = gpureduce.check_operator(made("runs"), [1, 1, 2, 0])
    assert found.associative and found.exact and not found.commutative
    for name, case in CASES.items():
        samples = case.make(generator("operators", "check", name), (6,))
        found = gpureduce.check_operator(made(name), samples)
        assert found.associative or name == "half", (name, found)  # 16 bits are few
    many = np.broadcast_to(1.0, (1 << 40,))
    assert gpureduce.check_operator(made("hypot"), many).associative
    with pytest.raises(TypeError):
        gpureduce.check_operator(np.add, [1])
    with pytest.raises(ValueError, match="no sample"):
        gpureduce.check_operator(made("hypot"), [])
    wrong = Operator("f8", combine="a - b", commutative=True)
    with pytest.warns(RuntimeWarning, match="said to commute"):
        gpureduce.check_operator(wrong, [1.0, 2.0])


# --- the cache, threads, processes ----------------------------------------------------------------


def cut(path):
    """Another file of that name, which lacks its end."""
    short = path.with_suffix(".short")
    short.write_bytes(path.read_bytes()[:-1])
    short.replace(path)


def test_the_compiler_is_asked_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(toolchain, "_libraries", {})
    calls = Counter()
    compiled = toolchain._compiled
    monkeypatch.setattr(
        toolchain, "_compiled", lambda *a: calls.update(["compiled"]) or compiled(*a)
    )
    op = Operator("f8", combine="a + b + 1")
    assert op(X[0, 0]) == 9
    assert pickle.loads(pickle.dumps(op))(X[0, 0]) == 9
    folder = tmp_path / "home" / "gpureduce"
    (kept,) = folder.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700 and kept.suffix == ".so"
    monkeypatch.setattr(toolchain, "_libraries", {})
    assert pickle.loads(pickle.dumps(op))(X[0, 0]) == 9 and calls["compiled"] == 1
    for damage in (lambda: cut(kept), lambda: kept.chmod(0o666),
                   lambda: folder.chmod(0o777)):  # fmt: skip
        damage()
        monkeypatch.setattr(toolchain, "_libraries", {})
        before = calls["compiled"]
        assert pickle.loads(pickle.dumps(op))(X[0, 0]) == 9 and calls["compiled"] == before + 1
    folder.chmod(0o700)
    assert not [path for path in folder.iterdir() if path.suffix == ".part"]


def test_a_home_that_cannot_be_written(tmp_path, monkeypatch, caplog):
    (tmp_path / "gpureduce").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(toolchain, "_libraries", {})
    assert Operator("f8", combine="a + b + 2")(X[0, 0]) == 12
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(toolchain, "_libraries", {})
    assert Operator("f8", combine="a + b + 2")(X[0, 0]) == 12


def test_a_compiler_that_fails_is_told_of(tmp_path, monkeypatch, caplog):
    fails = tmp_path / "cc"
    fails.write_text("#!/bin/sh\necho it is broken >&2; exit 1\n")
    fails.chmod(0o755)
    monkeypatch.setenv("CC", str(fails))
    monkeypatch.setattr(runner, "_told", False)
    with pytest.warns(RuntimeWarning, match="run by NumPy"):
        assert Operator("f8", combine="a + b + 3")(X[0, 0]) == 15
    assert "it is broken" in caplog.text


@pytest.mark.parametrize("cc", ["gcc '", "true"])
def test_a_compiler_that_is_none_is_told_of(cc, monkeypatch, caplog):
    monkeypatch.setenv("CC", cc)
    monkeypatch.setattr(runner, "_told", False)
    with pytest.warns(RuntimeWarning, match="run by NumPy"):
        assert Operator("f8", combine="a + b + 4")(X[0, 0]) == 18
    assert ("is no command" if "'" in cc else "cannot compile operators") in caplog.text


def test_nowhere_to_compile(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    monkeypatch.setattr(runner, "_told", False)
    with pytest.warns(RuntimeWarning, match="run by NumPy"):
        assert Operator("f8", combine="a + b + 5")(X[0, 0]) == 21
    assert "No such file" in caplog.text


def test_many_threads_use_one_operator():
    op = Operator("n: i8, s: f8", lift="n = 1; s = x", combine="n = a.n + b.n; s = a.s + b.s")
    x = np.arange(50_000.0)
    found = []
    threads = [threading.Thread(target=lambda: found.append(op(x))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1 and found[0].n == 50_000


def test_a_fork_while_another_thread_compiles():
    script = """
import os, signal, threading, warnings
import gpureduce
from gpureduce.custom import toolchain
warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
op = gpureduce.Operator("f8", combine="a + b")
begun, goes_on, compiled = threading.Event(), threading.Event(), toolchain._compiled
def late(*given):
    begun.set()
    goes_on.wait()
    return compiled(*given)
toolchain._compiled, toolchain._read = late, lambda path: None
thread = threading.Thread(target=op, args=([1.0],))
thread.start()
begun.wait()
toolchain._compiled = compiled
child = os.fork()
if not child:
    signal.alarm(30)
    os._exit(0 if op([1.0, 2.0]) == 3 else 1)
print(os.waitpid(child, 0)[1])
goes_on.set()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=90
    )
    assert done.stdout == "0\n", done.stderr


def test_ctrl_c_is_answered():
    """In the midst of what would take a minute."""
    script = """
import os, signal, threading, time
import numpy as np, gpureduce
op = gpureduce.Operator("f8", combine="sin(a) + cos(b) + exp(sin(a * b)) + pow(fabs(a), b)")
x = np.broadcast_to(np.float64(0.5), (1 << 30,))
op(x[:10])
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    op(x)
except KeyboardInterrupt:
    print(time.monotonic() - start < 5, op(x[:10]) == op(x[:10]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=90
    )
    assert done.stdout == "True True\n", done.stderr


def test_nothing_is_fused():
    """GCC's vectoriser makes multiply-adds in spite of its option: see arithmetic.h."""
    x = generator("operators", "fused").normal(size=(1000, 64))
    op = Operator("c16", combine="a * b")
    re, im = x[::2], x[1::2]
    found = op(re + 1j * im, axis=())
    assert found.tobytes() == (re + 1j * im).tobytes()
    pairs = op((re + 1j * im)[:, :2], axis=1)
    a, b, c, d = re[:, 0], im[:, 0], re[:, 1], im[:, 1]
    assert pairs.real.tobytes() == (a * c - b * d).tobytes()
    assert pairs.imag.tobytes() == (a * d + b * c).tobytes()


def test_evaluation_folds_blocks(monkeypatch):
    monkeypatch.setattr(evaluate, "BLOCK", 64)
    x = generator("operators", "blocks").normal(size=1000)
    op = made("two sum")
    assert bits(by_numpy(op, [x], x.shape, (0,))) == bits(op(x))
