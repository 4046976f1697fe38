"""Warnings and np.errstate: NumPy's, as often and in its words."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from arrays import generator
from table import OPS, call, numpys

import gpureduce

ARITHMETIC = ["sum", "prod", "mean", "var", "std", "ptp"]
ARITHMETIC += [f"nan{name}" for name in ARITHMETIC[:5]]
BIG = {"f2": 6e4, "f4": 3e38, "f8": 1.7e308}
KINDS = {
    "finite": lambda rng, x: x,
    "NaN": lambda rng, x: np.where(rng.random(x.shape) < 0.2, np.nan, x),
    "NaN alone": lambda rng, x: np.full_like(x, np.nan),
    "infinities": lambda rng, x: np.where(rng.random(x.shape) < 0.2, np.inf, x),
    "both infinities": lambda rng, x: np.where(x > 1, np.inf, np.where(x < -1, -np.inf, x)),
    "too large": lambda rng, x: np.full_like(x, BIG[x.dtype.str[1:]]),
    "nothing": lambda rng, x: x[:0],
}


def told(function, *args, **options):
    """Whether the result is a number, and the warnings."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("always")
        try:
            result = np.asarray(function(*args, **options))
        except ValueError:
            return None, []
    texts = [(one.category, str(one.message).rstrip(".")) for one in caught]
    shape = result.real
    return (np.isnan(shape).tolist(), np.isinf(shape).tolist()), texts


def in_one_pass(texts):
    """NumPy's variances are of several ufuncs; which of them met it first is no promise."""
    words = "square|subtract|add|multiply|divide|scalar divide|reduce|scalar subtract"
    return {(kind, re.sub(rf"in ({words})$", "", text)) for kind, text in texts}


@pytest.mark.parametrize("dtype", ["?", "i4", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("name", ["mean", "var", "std", "nanmean", "nanvar", "nanstd"])
def test_of_nothing_word_for_word(name, dtype):
    """Also where there is no output, and one element for a degree of freedom too many."""
    shapes = [(0,), (0, 3), (0, 0), (0, 0, 2)]
    if name.endswith(("var", "std")):
        shapes += [(1,), (1, 0), (1, 3)]
    for options in ({}, {"axis": 0}, {"axis": 0, "keepdims": True}, {"axis": 0, "dtype": "f4"}):
        freedom = {} if name.endswith("mean") else {"ddof": 1}
        for a in (np.zeros(shape, dtype) for shape in shapes):
            if a.dtype.kind == "c" and "dtype" in options:
                continue  # NumPy warns of the cast as well, and later
            got = told(getattr(gpureduce, name), a, **options, **freedom)
            assert got == told(numpys(name), a, **options, **freedom), (a.shape, options)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_as_often_as_numpy(name, kind, axis):
    rng = generator(f"warnings {name} {kind} {axis}")
    for dtype in BIG:
        x = KINDS[kind](rng, rng.standard_normal((9, 7)).astype(dtype)).astype(dtype)
        for a in (x, np.asfortranarray(x), x[:, ::-2], x.astype(x.dtype.newbyteorder())):
            for options in ({}, {"keepdims": True}, {"dtype": "f8"}):
                if "dtype" in options and not OPS[name]["takes_dtype"]:
                    continue
                want, theirs = told(numpys(name), a, axis=axis, **options)
                got, ours = told(lambda *x, **o: call(name, *x, **o), a, axis=axis, **options)
                if got != want:  # no overflow on the way to a result that is a number
                    assert got is None or np.sum(got) < np.sum(want), (dtype, options)
                    continue
                assert in_one_pass(ours) == in_one_pass(theirs), (dtype, a.strides, options)
                if name.removeprefix("nan") in ("sum", "prod"):
                    assert ours == theirs, (dtype, a.strides, options)


@pytest.mark.parametrize("name", ["sum", "mean", "nansum"])
@pytest.mark.parametrize("shape", [(3, 40), (20, 70), (70, 20), (130, 18)])
def test_outputs_side_by_side(name, shape):
    """What one output has is not another's reason."""
    rng = generator(f"warnings {name} {shape}")
    for dtype in ("f4", "f8"):
        big = np.finfo(dtype).max
        for values in ([np.nan], [np.inf], [np.inf, -np.inf], [np.nan, np.inf, -np.inf], [big]):
            x = rng.standard_normal(shape).astype(dtype)
            at = rng.random(shape) < 0.03
            x[at] = rng.choice(values, at.sum())
            for axis in (0, 1):
                want, theirs = told(getattr(np, name), x, axis=axis)
                got, ours = told(getattr(gpureduce, name), x, axis=axis)
                if got != want:  # no overflow on the way to a result that is a number
                    assert np.sum(got) < np.sum(want), (dtype, values)
                    continue
                assert in_one_pass(ours) == in_one_pass(theirs), (dtype, values)


def in_parts(name, a, axis):
    halves = (gpureduce.partials(half, name, axis=axis) for half in (a[:4], a[4:]))
    return gpureduce.finish(gpureduce.merge(halves))


def by_rows(name, a, axis):
    acc = gpureduce.Accumulator(name, a.shape[1:] if axis == 0 else (), a.dtype)
    for row in a:
        acc.add(row)
    return acc.result()


def by_dask(name, a, axis):
    chunks = pytest.importorskip("dask.array").from_array(a, chunks=(4, -1))
    return getattr(gpureduce, name)(chunks, axis=axis).compute(scheduler="synchronous")


def by_zarr(name, a, axis):
    return getattr(gpureduce, name)(pytest.importorskip("zarr").array(a, chunks=(4, 7)), axis=axis)


@pytest.mark.parametrize("way", [in_parts, by_rows, by_dask, by_zarr])
@pytest.mark.parametrize("name", [name for name in ARITHMETIC if not name.endswith("prod")])
def test_what_comes_in_parts(name, way):
    """The functions' own, but where words have infinities of both signs as NaN; products of floats
    know their value alone."""
    rng = generator(f"warnings in parts {name} {way.__name__}")
    for dtype in ("f2", "f4", "f8", "F", "D"):
        real = np.dtype(dtype.lower() if dtype != "D" else "f8")
        big = np.full((9, 7), BIG.get(dtype, np.finfo(real).max), dtype)
        big[3:] *= np.where(np.arange(7) < 4, 1, -1).astype(dtype)
        x = rng.standard_normal((9, 7)).astype(dtype)
        alone = x.copy()
        alone[2, 1] = np.inf
        alone[:, 5] = big[:, 5]
        for a in (x, big, alone, np.where(rng.random(x.shape) < 0.2, np.nan, x), x * np.nan, x[:0]):
            for axis in (None, 0):
                if name == "ptp" and (dtype in "FD" or way is by_rows or not len(a)):
                    continue
                if not len(a) and way in (by_rows, by_dask, by_zarr):
                    continue
                want = told(getattr(gpureduce, name), np.ascontiguousarray(a), axis=axis)
                (got, ours), (result, texts) = told(way, name, a, axis), want
                assert got == result, (dtype, axis)
                assert in_one_pass(ours) == in_one_pass(texts), (dtype, axis)
                assert ours == texts or way is by_zarr, (dtype, axis)


@pytest.mark.parametrize("way", [in_parts, by_rows, by_dask, by_zarr])
def test_what_comes_in_parts_tells_the_line_that_asked(way):
    """Python's default filter shows a line's warning once. Of Dask's tasks the line is Dask's."""
    a = np.full((9, 7), np.nan)
    a[:, 0] = 1e308
    ours, here = Path(gpureduce.__file__).parent, Path(way.__code__.co_filename)
    for name, text in (("sum", "overflow"), ("nanvar", "Degrees of freedom")):
        with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
            warnings.simplefilter("always")
            way(name, a, 0)
        (one,) = (one for one in caught if text in str(one.message))
        if way is by_dask:
            assert ours not in Path(one.filename).parents
            continue
        asks = range(way.__code__.co_firstlineno, way.__code__.co_firstlineno + 9)
        assert Path(one.filename) == here and one.lineno in asks


def cast_by_accumulator():
    gpureduce.Accumulator("sum", dtype="f4").add([1e300])


def cast_of_a_product():
    gpureduce.partials([1e300], "prod", dtype="f4")


def cast_of_an_operator():
    gpureduce.Operator("f8", combine="a + b", identity=0.0)([1e300], dtype="f4")


def cast_into_out():
    plus = gpureduce.Operator("f8", combine="a + b", identity=0.0)
    plus([1e300], out=np.zeros((), np.float32))


def part_of_a_product():
    gpureduce.partials([1e300, 1e300], "prod")


def block_of_a_product():
    gpureduce.Accumulator("prod").add([1e300, 1e300])


def wrong_identity():
    gpureduce.Operator("f8", combine="a + b", identity=1.0)([1.0])


@pytest.mark.parametrize(
    "way",
    [
        cast_by_accumulator,
        cast_of_a_product,
        cast_of_an_operator,
        cast_into_out,
        part_of_a_product,
        block_of_a_product,
        wrong_identity,
    ],
)
def test_what_is_told_on_the_way_tells_the_line_that_asked(way):
    with warnings.catch_warnings(record=True) as caught, np.errstate(over="warn"):
        warnings.simplefilter("always")
        way()
    (one,) = caught
    lines = range(way.__code__.co_firstlineno, way.__code__.co_firstlineno + 4)
    assert one.filename == way.__code__.co_filename and one.lineno in lines
    if way is wrong_identity:
        return
    name = "cast" if "cast" in way.__name__ else "reduce"
    assert str(one.message) == f"overflow encountered in {name}"
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        way()
    met = []
    with np.errstate(over="call", call=lambda what, _: met.append(what)):
        way()
    assert met == ["overflow"]


def test_parts_that_clash():
    """Infinities of both signs are NaN to canonical words, where that is not left out."""
    parts = [gpureduce.partials([x], "sum") for x in (np.inf, -np.inf)]
    assert told(gpureduce.finish, gpureduce.merge(parts))[1] == []
    skipping = [gpureduce.partials([x, np.nan], "nansum") for x in (np.inf, -np.inf)]
    texts = told(gpureduce.finish, gpureduce.merge(skipping))[1]
    assert texts == [(RuntimeWarning, "invalid value encountered in reduce")]
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        gpureduce.finish(gpureduce.partials([1e308, 1e308], "sum"))


@pytest.mark.parametrize("name", ["std", "nanstd", "var"])
def test_deviations_of_two(name):
    for n in (1, 9, 3000):
        x = np.ones((2, n))
        x[0, -1] = np.inf
        for a, axis in ((x, 0), (np.ascontiguousarray(x.T), 1), (np.asfortranarray(x), 0)):
            (_, ours), (_, theirs) = (told(getattr(m, name), a, axis=axis) for m in (gpureduce, np))
            assert in_one_pass(ours) == in_one_pass(theirs) != set(), (n, axis)


@pytest.mark.parametrize("name", ["sum", "nansum", "prod"])
@pytest.mark.parametrize("dtype", ["F", "D"])
def test_parts_of_complex_numbers(name, dtype):
    big = np.finfo(dtype).max
    for a in ([big, big], [1j * big, 1j * big], [big + 1j, 1], [np.inf, -np.inf], [np.nan, 1j]):
        a = np.array(a, dtype)
        got, want = told(getattr(gpureduce, name), a), told(getattr(np, name), a)
        assert got[1] == want[1] or got[0] != want[0], a


@pytest.mark.parametrize("name", ["sum", "nansum", "mean", "nanmean"])
@pytest.mark.parametrize("dtype", ["F", "D"])
def test_parts_of_complex_numbers_in_any_layout(name, dtype):
    """A part that overflows is told of beside one that is infinite, or no number."""
    rng = generator(f"warnings of parts {name} {dtype}")
    big = float(np.finfo(dtype).max)
    for shape in [(3, 40), (40, 2), (5, 130), (130, 40), (3, 700)]:
        for reason in (0, np.inf, complex(0, np.inf), np.nan, complex(np.nan, np.inf)):
            x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
            x[:, 1] = complex(big, -big)
            x[rng.integers(shape[0]), 1] = reason
            is_left_out = name.startswith("nan") and reason != reason
            one_is_finite = np.isfinite([np.real(reason), np.imag(reason)]).any()
            overflows = name.endswith("sum") and (is_left_out or one_is_finite)
            wanted = ("overflow",) if overflows else ()
            flipped = np.asfortranarray(x), x[:, ::-1], x[::-1], np.repeat(x, 2, 1)[:, ::2]
            turned = (np.ascontiguousarray(x.T), 1), (x.astype(x.dtype.newbyteorder()), 0)
            for a, axis in ((x, 0), *((a, 0) for a in flipped), *turned):
                texts = told(getattr(gpureduce, name), a, axis=axis)[1]
                got = tuple(text.split()[0] for _, text in texts)
                assert got == wanted, (shape, reason, axis, a.strides)


def test_what_is_masked_tells_nothing():
    a = np.array([[np.nan, 1.0, np.inf], [2.0, 3.0, -np.inf]])
    for where in (np.array([True, False, True]), np.array([[False], [True]]), a != np.inf):
        for axis in (None, 0, 1):
            options = {"axis": axis, "where": where}
            assert told(gpureduce.sum, a, **options) == told(np.sum, a, **options), options
    where = np.array([True, False, True])
    assert told(gpureduce.sum, a[:, :1] * 0 + 1e308, axis=None, initial=np.inf)[1] == []
    assert told(gpureduce.sum, np.full(3, 1e308), where=where)[1] != []


def test_segments():
    a = np.array([1e308, 1e308, 1.0, np.inf, -np.inf, np.nan, 1.0])
    assert told(gpureduce.reduceat, a, [0, 2, 3, 5], "add") == told(
        np.add.reduceat, a, [0, 2, 3, 5]
    )
    assert told(gpureduce.segments, a, [2, 3, 5, 4], [3, 4, 7, 4], "add")[1] == []
    assert len(told(gpureduce.segments, a, [2, 0], [3, 2], "add")[1]) == 1


@pytest.mark.parametrize("axis", [None, 0])
def test_errstate(axis):
    big, none = np.full((2, 2), 1e308), np.array([[np.inf, 1], [-np.inf, 1]])
    with np.errstate(all="raise"):
        with pytest.raises(FloatingPointError, match="overflow encountered in reduce"):
            gpureduce.sum(big, axis=axis)
        with pytest.raises(FloatingPointError, match="invalid value encountered in reduce"):
            gpureduce.sum(none, axis=axis)
        assert np.isnan(gpureduce.sum(np.array([np.nan, 1.0])))
        assert gpureduce.mean(big, axis=axis).max() == 1e308
    with np.errstate(over="ignore", invalid="raise"):
        assert np.isinf(gpureduce.sum(big))
    seen = []
    with np.errstate(over="call", call=lambda kind, flag: seen.append(kind)):
        gpureduce.sum(big, axis=axis)
    assert seen == ["overflow"]


def test_many_outputs_of_which_one_overflows():
    a = np.zeros((3, 100_003), np.float32)
    a[:, 77_777] = 3e38
    for b, axis in ((a, 0), (np.ascontiguousarray(a.T), 1), (np.asfortranarray(a), 0)):
        assert len(told(gpureduce.sum, b, axis=axis)[1]) == 1
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            gpureduce.sum(b, axis=axis)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("rows", [1, 2, 3, 20, 130, 700, 5000])
def test_infinities_explain_their_own_outputs(dtype, rows):
    """Not those beside them that overflow, or have an infinity of each sign."""
    rng = generator(f"explained {dtype} {rows}")
    a = rng.standard_normal((rows, max(70, 6000 // rows))).astype(dtype)
    a[rng.random(a.shape) < 0.01] = np.inf
    a[0, 3] = np.inf
    over, clash, none = a.copy(), a.copy(), a.copy()
    over[:, 5] = np.finfo(dtype).max
    clash[:, 7] = np.resize([np.inf, -np.inf], rows)
    none[0, 9] = np.nan
    spoiled = a.copy()
    spoiled[0, np.isinf(a).any(0)] = np.nan
    several = rows > 1
    for name, threads in (("sum", 1), ("nansum", 2), ("mean", 1), ("mean", 2), ("var", 1)):
        gpureduce.set_num_threads(threads)
        always = {"invalid"} if name == "var" else set()
        cases = [(a, always), (none, always), (spoiled, set())]
        if several and name != "var":
            cases += [(over, {"overflow"} if name != "mean" else always), (clash, {"invalid"})]
        for b, want in cases:
            for c, axis in ((b, 0), (np.ascontiguousarray(b.T), 1), (b[:, ::-1], 0)):
                texts = told(getattr(gpureduce, name), c, axis=axis)[1]
                assert {text.split()[0] for _, text in texts} == want, (name, threads, axis)


def test_bfloat16():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    a = np.array([3e38, 3e38], bfloat16)
    assert [text for _, text in told(gpureduce.sum, a)[1]] == ["overflow encountered in reduce"]
    assert told(gpureduce.sum, np.array([np.nan, 1], bfloat16))[1] == []


def test_out_of_dots_is_an_array():
    """NumPy's own ufuncs take out=...; its functions do not hand it on yet."""
    a = np.arange(6.0).reshape(2, 3)
    for name, op in OPS.items():
        if not op["function"] or not op["takes_out"]:
            continue
        whole, part = call(name, a, out=...), call(name, a, axis=0, out=...)
        usual = call(name, a)
        if op["results"] > 1:
            assert all(isinstance(one, np.ndarray) and one.shape == () for one in whole)
            assert whole == usual
        else:
            assert isinstance(whole, np.ndarray) and whole.shape == () and whole == usual
            assert isinstance(part, np.ndarray) and part.shape == (3,)
    assert isinstance(gpureduce.reduce(a, np.add, out=...), np.ndarray)


def test_ctrl_c_while_errstate_is_asked(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    a = np.full(4096, np.nan)
    monkeypatch.setattr(np, "geterr", interrupted)
    for axis in (None, 0):
        with pytest.raises(KeyboardInterrupt):
            gpureduce.sum(a, axis=axis)
