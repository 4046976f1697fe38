"""Units, masks and labels are kept, as the libraries themselves do, or refused by name."""

import datetime
import warnings

import numpy as np
import pytest
from arrays import generator
from table import bits

import gpureduce

FUNCTIONS = [op["name"] for op in gpureduce.operators() if op["function"]]
MASKED = ["sum", "prod", "min", "max", "mean", "var", "std", "any", "all", "ptp"]


def drawn(label, shape):
    rng = generator(label)
    return rng, rng.integers(-3, 4, shape).astype(float)


def of_numbers_there(name, x, there, axis):
    """Our own function of the plain numbers that count, of each row or column that has any."""
    if axis is None:
        x, there, axis = x.ravel(), there.ravel(), 0
    rows = [np.moveaxis(a, axis, -1).reshape(-1, a.shape[axis]) for a in (x, there)]
    found = []
    for row, counts in zip(*rows, strict=True):
        if counts.any():
            result = getattr(gpureduce, name)(row[counts])
            found.append(np.flatnonzero(counts)[result] if "arg" in name else result)
    return np.array(found)


# --- masked arrays ------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", [*MASKED, "count_nonzero", "argmin", "argmax"])
def test_masked_arrays(name, axis):
    rng, x = drawn(f"masked {name} {axis}", (6, 5))
    mask = rng.random(x.shape) < 0.4
    mask[2] = True
    a = np.ma.array(x, mask=mask)
    got = getattr(gpureduce, name)(a, axis=axis)
    if name == "count_nonzero":
        assert np.array_equal(got, np.count_nonzero((x != 0) & ~mask, axis=axis))
        return
    want = getattr(a, name)(axis=axis)
    if axis is not None:
        assert isinstance(got, np.ma.MaskedArray)
        assert np.array_equal(np.ma.getmaskarray(got), mask.all(axis))
        kept = ~mask.all(axis)
        got, want = np.ma.getdata(got)[kept], np.ma.getdata(want)[kept]
    assert np.allclose(got, want, rtol=1e-15, atol=0)
    assert bits(got) == bits(of_numbers_there(name, x, ~mask, axis))


def test_masked_arrays_of_every_dtype():
    for dtype in ("?", "i1", "u8", "f2", "D", "m8[s]", "M8[s]"):
        a = np.ma.array(np.array([3, 1, 2]).astype(dtype), mask=[False, True, False])
        for name in ("min", "max", "argmax"):
            got, want = getattr(gpureduce, name)(a), getattr(a, name)()
            assert got == want and np.asarray(got).dtype == np.asarray(want).dtype, (dtype, name)
    b = np.ma.array([np.nan, 4.0, 7.0], mask=[False, False, True])
    assert np.isnan(gpureduce.max(b)) and gpureduce.nanmax(b) == 4 and gpureduce.argmax(b) == 0
    assert gpureduce.minmax(b[1:]) == (4, 4) and gpureduce.nansum(b) == 4


def test_masked_arrays_without_a_mask_and_of_nothing_else():
    a = np.ma.array([[1.0, 2.0], [3.0, 5.0]])
    assert gpureduce.sum(a) == 11 and type(gpureduce.sum(a, axis=0)) is np.ma.MaskedArray
    a[:] = np.ma.masked
    for name in ("sum", "mean", "max", "std"):
        assert getattr(gpureduce, name)(a) is np.ma.masked
        assert getattr(gpureduce, name)(a, axis=0).mask.all()
    assert gpureduce.sum(np.ma.array([1.0, 2, 4], mask=[1, 0, 0]), where=[True, True, False]) == 2


def test_what_masked_arrays_do_not_take():
    a = np.ma.array([1.0, 2.0], mask=[True, False])
    with pytest.raises(TypeError, match=r"sum: numpy.*MaskedArray takes no out"):
        gpureduce.sum(a, out=np.empty(()))
    for refused in (
        lambda: gpureduce.reduceat(a, [0, 1], "add"),
        lambda: gpureduce.segments(a, [0], [1], "add"),
        lambda: gpureduce.partials(a, "sum"),
    ):
        with pytest.raises(TypeError, match=r"asarray|compressed|where"):
            refused()


def test_partials_are_of_numbers_alone():
    a = np.array([1.0, 2.0]).view(Own)
    pandas = pytest.importorskip("pandas", reason="no pandas")
    for other in (a, pandas.Series([1.0, np.nan]), pandas.DataFrame({"a": [1.0]})):
        for refused in (
            lambda other=other: gpureduce.partials(other, "sum"),
            lambda other=other: gpureduce.fingerprint(other),
            lambda other=other: gpureduce.Accumulator("sum").add(other),
        ):
            with pytest.raises(TypeError, match=r"more than its numbers.*: give "):
                refused()
    mask = pandas.Series([True, False])
    assert gpureduce.finish(gpureduce.partials([1.0, 2.0], "sum", where=mask)) == 1


def test_operators_do_not_take_masks_or_labels():
    """Not beside a lazy array either."""
    da = pytest.importorskip("dask.array", reason="Dask's arrays are not installed")
    dot = gpureduce.Operator("f8", inputs="x, y", lift="x * y", combine="a + b")
    masked, lazy = np.ma.array([1.0, 2.0], mask=[True, False]), da.ones(2, chunks=1)
    for inputs in ((masked, lazy), (lazy, masked), (masked, masked)):
        with pytest.raises(TypeError, match=r"masked|MaskedArray"):
            dot(*inputs)


# --- subclasses ---------------------------------------------------------------------------------


class Own(np.ndarray):
    pass


class Wrapped(np.ndarray):
    def __array_wrap__(self, array, context=None, return_scalar=False):
        return ("wrapped", np.asarray(array).tolist())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_subclasses_stay(name):
    a = np.arange(6.0).reshape(2, 3)
    for axis in (None, 0):
        got, want = (getattr(gpureduce, name)(x, axis=axis) for x in (a.view(Own), a))
        for one, other in zip(
            *(x if isinstance(x, tuple) else (x,) for x in (got, want)), strict=True
        ):
            assert type(one) is Own and np.array_equal(one, other)
    if name != "argminmax":
        assert getattr(gpureduce, name)(a.view(Wrapped), axis=1)[0] in (
            "wrapped",
            ("wrapped", [0, 3]),
        )


def test_memory_maps_give_arrays(tmp_path):
    a = np.memmap(tmp_path / "a", "f8", "w+", shape=(2, 3))
    assert type(gpureduce.sum(a, axis=0)) is np.ndarray and type(gpureduce.sum(a)) is np.float64


class Refuses(np.ndarray):
    def __array_ufunc__(self, *args, **kwargs):
        raise AssertionError


class HasSum(np.ndarray):
    def sum(self, *args, **kwargs):
        return "mine"


class Foreign:
    shape = (2,)

    def __array__(self, dtype=None, copy=None):
        return np.ones(2)

    def __array_function__(self, *args, **kwargs):
        return NotImplemented


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_not_known_is_refused_by_name(name):
    for a in (np.ones(2).view(Refuses), np.ones(2).view(HasSum), Foreign()):
        with pytest.raises(TypeError, match=rf"{name}: .*{type(a).__name__} .*numpy.asarray"):
            getattr(gpureduce, name)(a)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matrix = np.asmatrix(np.ones((2, 2)))
    with pytest.raises(TypeError, match=r"numpy.matrix has .* of its own"):
        getattr(gpureduce, name)(matrix)


# --- units --------------------------------------------------------------------------------------


def test_astropy():
    units = pytest.importorskip("astropy.units", reason="no Astropy")
    a = np.array([[1.0, 2.0], [3.0, 6.0]]) * units.m
    for name in ("sum", "mean", "min", "max", "ptp", "std", "var", "nansum", "nanvar"):
        for axis in (None, 0):
            got, want = (getattr(m, name)(a, axis=axis) for m in (gpureduce, np))
            assert got.unit == want.unit and np.allclose(got.value, want.value, rtol=1e-15), name
            assert bits(got.value) == bits(getattr(gpureduce, name)(a.value, axis=axis)), name
    assert gpureduce.argmax(a) == 3 and type(gpureduce.count_nonzero(a)) is np.int64
    low, high = gpureduce.minmax(a)
    assert low == 1 * units.m and high == 6 * units.m
    assert gpureduce.sum(a, initial=1 * units.km) == 1012 * units.m
    for refused in (
        lambda: gpureduce.prod(a),
        lambda: gpureduce.any(a),
        lambda: gpureduce.sum(a, initial=1),
        lambda: gpureduce.sum(a, out=a[0]),
    ):
        with pytest.raises(TypeError, match="Quantity"):
            refused()
    from astropy.table import Column, MaskedColumn
    from astropy.utils.masked import Masked

    for other in (
        Masked([1.0, 2.0], mask=[True, False]),
        units.Magnitude([1.0, 2.0]),
        Column([1.0], unit="m"),
        MaskedColumn([1.0], mask=[True], unit="m"),
    ):
        with pytest.raises(TypeError, match=r"has (a mask|a unit|the unit m)"):
            gpureduce.sum(other)
    assert gpureduce.sum(Column([1.0, 2.0])) == 3


def test_pint():
    pint = pytest.importorskip("pint", reason="no Pint")
    registry = pint.UnitRegistry()
    a = registry.Quantity(np.array([1.0, 2.0, 6.0]), "m")
    assert gpureduce.sum(a) == registry.Quantity(9.0, "m")
    assert gpureduce.var(a).units == registry.Unit("m**2")
    assert gpureduce.sum(a, initial=registry.Quantity(1.0, "km")) == registry.Quantity(1009.0, "m")
    with pytest.raises(TypeError, match=r"pint.*Quantity"):
        gpureduce.prod(a)
    warm = registry.Quantity(np.array([1.0, 2.0, 6.0]), "degC")
    assert gpureduce.mean(warm) == registry.Quantity(3.0, "degC") and gpureduce.argmax(warm) == 2
    for name in ("sum", "ptp", "var", "std", "nansum"):
        for unit in ("degC", "dBm"):
            with pytest.raises(TypeError, match="not linear"):
                getattr(gpureduce, name)(registry.Quantity(a.magnitude, unit))


# --- labels -------------------------------------------------------------------------------------


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas", reason="no pandas")


PANDAS = ["sum", "prod", "min", "max", "mean", "var", "std", "any", "all"]


@pytest.mark.parametrize("name", PANDAS)
def test_frames(name, pandas):
    rng, x = drawn(f"frame {name}", (7, 3))
    x[rng.random(x.shape) < 0.3] = np.nan
    x[2] = np.nan
    frame = pandas.DataFrame(x, index=list("abcdefg"), columns=list("uvw"))
    mixed = frame.assign(n=np.arange(7), k=pandas.array([1, None, 2, 3, None, 4, 5], "Int64"))
    how = {"ddof": 0} if name in ("var", "std") else {}
    for one in (frame, mixed):
        for axis in (0, 1):
            got = getattr(gpureduce, name)(one, axis=axis)
            want = getattr(one, name)(axis=axis, **how)
            assert isinstance(got, pandas.Series) and got.index.equals(want.index)
            assert np.allclose(got.astype(float), want.astype(float), rtol=1e-14, equal_nan=True)
    there = ~np.isnan(x)
    for axis in (0, 1):
        got = getattr(gpureduce, name)(frame, axis=axis).to_numpy()[there.any(axis)]
        assert bits(got) == bits(of_numbers_there(name, x, there, axis))
    got, want = getattr(gpureduce, name)(frame), getattr(frame, name)(axis=None, **how)
    assert np.isclose(got, want, rtol=1e-14)
    assert getattr(gpureduce, name)(frame["u"]) == getattr(gpureduce, name)(frame, axis=0)["u"]
    agg = frame.agg(getattr(gpureduce, name))
    assert agg.equals(getattr(gpureduce, name)(frame, axis=0))
    groups = frame.groupby([0, 0, 1, 1, 1, 2, 2]).agg(getattr(gpureduce, name))
    want = getattr(frame.groupby([0, 0, 1, 1, 1, 2, 2]), name)(**how)
    assert np.allclose(groups.astype(float), want.astype(float), rtol=1e-14, equal_nan=True)


def test_series(pandas):
    a = pandas.Series([3.0, np.nan, 1.0, 4.0], index=list("abcd"))
    assert gpureduce.sum(a) == 8 and gpureduce.argmax(a) == 3 and gpureduce.ptp(a) == 3
    assert gpureduce.minmax(a) == (1, 4) and gpureduce.count_nonzero(a) == 3
    b = pandas.Series([2**62, None, 2**61], dtype="Int64")
    assert gpureduce.sum(b) == 2**62 + 2**61 and gpureduce.min(b) == 2**61
    assert gpureduce.max(b[1:2]) is pandas.NA and np.isnan(gpureduce.max(a[1:2]))
    dates = pandas.Series([np.datetime64("2020-01-02", "s"), None])
    assert gpureduce.max(dates) == np.datetime64(datetime.date(2020, 1, 2))
    for other in (
        pandas.Series(["a"]),
        pandas.Series(["a"], dtype="category"),
        pandas.Series([1, "a"]),
    ):
        with pytest.raises(TypeError, match=r"dtype"):
            gpureduce.sum(other)
    with pytest.raises(TypeError, match="takes no out"):
        gpureduce.sum(a, out=np.empty(()))
    with pytest.raises(TypeError, match=r"numpy\.asarray"):
        gpureduce.reduceat(a, [0, 2], "add")


def test_pyarrow():
    arrow = pytest.importorskip("pyarrow", reason="no PyArrow")
    a = arrow.array([2**62, None, 3])
    for one in (a, arrow.chunked_array([[2**62, None], [3]])):
        assert gpureduce.sum(one) == 2**62 + 3 and gpureduce.min(one) == 3
        assert gpureduce.argmax(one) == 0 and gpureduce.mean(one) == (2**62 + 3) / 2
    assert gpureduce.sum(a, where=[False, True, True]) == 3
    assert gpureduce.all(arrow.array([True, None])) and gpureduce.sum(arrow.array([1.5, 2])) == 3.5
    stamps = arrow.array([5, None], arrow.timestamp("s"))
    assert gpureduce.min(stamps) == np.datetime64(5, "s")
    with pytest.raises(ValueError, match="nothing but null"):
        gpureduce.max(arrow.array([None], arrow.int32()))
    for one in (arrow.array(["a", None]), arrow.array(["a"])):
        with pytest.raises(TypeError, match="StringArray of type string"):
            gpureduce.sum(one)


def test_torch_on_the_host():
    torch = pytest.importorskip("torch", reason="no PyTorch")
    a = torch.arange(6.0).reshape(2, 3)
    for b in (a, a.to(torch.bfloat16), a.T, a.to(torch.bfloat16)[:, ::2]):
        got = gpureduce.sum(b, axis=0)
        assert isinstance(got, torch.Tensor) and got.dtype == b.dtype
        assert torch.equal(got, b.sum(0)) and float(gpureduce.max(b)) == b.max()
