"""Chunked stores are read a few chunks at a time; xarray keeps its names."""

import importlib
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from arrays import finite_bits, generator
from cuts import LEAKY, Store
from table import OPS, bits

import gpureduce
from gpureduce.chunked import stores

NAMES = ["sum", "mean", "nanvar", "min", "any", "count_nonzero", "argmin", "prod", "minmax"]


@pytest.fixture(params=["as they are", "small blocks"])
def blocks(request, monkeypatch):
    if request.param == "small blocks":
        monkeypatch.setattr(stores, "BLOCK_BYTES", 1500)
        monkeypatch.setattr(stores, "BLOCK_OUTPUTS", 30)


@pytest.mark.parametrize("name", NAMES)
def test_chunks_have_the_bits_of_the_whole(name, blocks):
    rng = generator("stores", name)
    x = finite_bits(rng, np.dtype("f4"), 23 * 17 * 6).reshape(23, 17, 6)
    function = getattr(gpureduce, name)
    for chunks in ((5, 4, 6), (23, 1, 2), None):
        for axis in (None, 0, 1, 2, (0, 2), ()):
            if OPS[name]["position"] and isinstance(axis, tuple):
                continue
            if chunks is None and axis != 0:
                continue
            for keepdims in (False, True):
                store = Store(x, chunks)
                got = function(store, axis=axis, keepdims=keepdims)
                want = function(x, axis=axis, keepdims=keepdims)
                pairs = zip(
                    *[r if isinstance(r, tuple) else (r,) for r in (got, want)], strict=True
                )
                for a, b in pairs:
                    assert type(a) is type(b) and np.shape(a) == np.shape(b) and bits(a) == bits(b)
                assert sum(store.reads) == x.size  # each element once


def test_masks_and_progress(blocks):
    rng = generator("store masks")
    x = finite_bits(rng, np.dtype("f4"), 24 * 10).reshape(24, 10)
    store = Store(x, (5, 4))
    where = rng.random((24, 10)) < 0.5
    where[0] = True
    for mask in (where, where[:1], where[0], True, np.bool_(True)):
        assert bits(gpureduce.sum(store, axis=0, where=mask)) == bits(
            gpureduce.sum(x, axis=0, where=mask)
        )
    assert bits(gpureduce.sum(store, where=Store(where, (24, 1)))) == bits(
        gpureduce.sum(x, where=where)
    )
    told = []
    gpureduce.mean(store, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (240, 240) and told == sorted(told)


def test_users_operators(blocks):
    rng = generator("store own")
    x, y = rng.standard_normal((24, 10)), rng.standard_normal((24, 1))
    leaky = gpureduce.Operator(**LEAKY)
    dot = gpureduce.Operator("f8", inputs="x, y", lift="x * y", combine="a + b")
    for axis in (None, 0, 1):
        store = Store(x, (5, 4))
        assert bits(leaky(store, axis=axis)) == bits(leaky(x, axis=axis))
        assert sum(store.reads) == x.size
        for second in (y, Store(y, (7, 1))):
            assert bits(dot(Store(x, (5, 4)), second, axis=axis)) == bits(dot(x, y, axis=axis))
    with pytest.raises(TypeError, match="comes in chunks"):
        gpureduce.segments(Store(x, (5, 4)), [0], [3], leaky)


def test_nothing_to_read():
    for shape in ((0, 4), (4, 0)):
        x = np.empty(shape, "f4")
        for axis in (0, 1, None):
            assert bits(gpureduce.sum(Store(x, (2, 2)), axis=axis)) == bits(
                gpureduce.sum(x, axis=axis)
            )
    with pytest.raises(ValueError, match="no element to take the max of"):
        gpureduce.max(Store(np.empty((0, 4), "f4"), (2, 2)))


def test_memory_is_bounded():
    """Of an array larger than what may be used."""

    class Endless(Store):
        def __getitem__(self, index):
            shape = [len(range(*s.indices(n))) for s, n in zip(index, self.shape, strict=True)]
            return np.ones(shape, "f4")

    Endless.__module__ = "zarr.core.array"
    about = SimpleNamespace(shape=(1 << 14, 1 << 13), dtype=np.dtype("f4"), ndim=2)  # 512 MiB
    tracemalloc.start()
    try:
        for axis in (None, 0, 1):
            mean = gpureduce.mean(Endless(about, (64, 1024)), axis=axis)
            assert (mean == 1).all()
        assert tracemalloc.get_traced_memory()[1] < 150e6
    finally:
        tracemalloc.stop()


def test_what_is_not_taken():
    store = Store(np.ones((4, 4), "f4"), (2, 2))
    with pytest.raises(TypeError, match="out is not taken with chunked stores"):
        gpureduce.sum(store, out=np.empty(()))
    with pytest.raises(ValueError, match="reduced on the CPU"):
        gpureduce.sum(store, device="cuda")


def test_real_stores(tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    x = finite_bits(generator("zarr"), np.dtype("f4"), 3000).reshape(100, 30)
    store = zarr.open(str(tmp_path / "x.zarr"), mode="w", shape=x.shape, chunks=(9, 7), dtype="f4")
    store[:] = x
    for axis in (None, 0, 1):
        assert bits(gpureduce.mean(store, axis=axis)) == bits(gpureduce.mean(x, axis=axis))


def test_real_stores_of_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    x = finite_bits(generator("hdf5"), np.dtype("f4"), 3000).reshape(100, 30)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        chunked = file.create_dataset("chunked", data=x, chunks=(9, 7))
        whole = file.create_dataset("whole", data=x)
        for store in (chunked, whole):
            for axis in (None, 0, 1):
                assert bits(gpureduce.mean(store, axis=axis)) == bits(gpureduce.mean(x, axis=axis))


# --- xarray ---------------------------------------------------------------------------------------


@pytest.fixture
def labelled():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    importlib.import_module("gpureduce.xarray")
    x = finite_bits(generator("xarray"), np.dtype("f4"), 30 * 8 * 5).reshape(30, 8, 5)
    x[3, 4, :2] = np.nan
    return xr.DataArray(
        x,
        dims=("time", "lat", "lon"),
        coords={"lat": np.arange(8.0)},
        attrs={"units": "K"},
        name="t",
    )


@pytest.mark.parametrize("name", ["sum", "nanmean", "std", "max", "argmin"])
def test_xarrays_own_reduce(labelled, name):
    function = getattr(gpureduce, name)
    for dim in ("time", "lon"):
        axis = labelled.dims.index(dim)
        found = labelled.reduce(function, dim, keep_attrs=True)
        assert found.dims == tuple(d for d in labelled.dims if d != dim)
        assert found.attrs == labelled.attrs and ("lat" in found.coords) == (dim != "lat")
        assert bits(found.values) == bits(function(labelled.values, axis=axis))


def test_the_accessor(labelled):
    x = labelled.values
    assert bits(labelled.exact.sum("time").values) == bits(gpureduce.sum(x, axis=0))
    assert bits(labelled.exact.var(["lat", "lon"], ddof=1, skipna=True).values) == bits(
        gpureduce.nanvar(x, axis=(1, 2), ddof=1)
    )
    wanted = {n for n, op in OPS.items() if op["function"] and op["results"] == 1}
    assert {n for n in wanted if not n.startswith("nan")} <= set(dir(labelled.exact))
    assert labelled.exact.mean("time", keep_attrs=True).attrs == {"units": "K"}
    assert labelled.exact.max(keepdims=True).shape == (1, 1, 1)
    data = labelled.to_dataset().exact.sum("lat")
    assert bits(data.t.values) == bits(gpureduce.sum(x, axis=1))
    where = labelled.isel(time=0, drop=True) > 0
    assert bits(labelled.exact.sum("time", where=where.T).values) == bits(
        gpureduce.sum(x, axis=0, where=x[0] > 0)
    )
    with pytest.raises(ValueError, match="where has the dimensions"):
        labelled.exact.sum("time", where=where.rename(lat="other"))
    found = gpureduce.sum(labelled, axis=0)
    assert found.dims == ("lat", "lon") and bits(found.values) == bits(gpureduce.sum(x, axis=0))
    for axis, keepdims in ((None, False), (0, False), ((0, 2), True)):
        for one, plain in zip(
            gpureduce.minmax(labelled, axis=axis, keepdims=keepdims),
            gpureduce.minmax(x, axis=axis, keepdims=keepdims),
            strict=True,
        ):
            assert one.dims == labelled.max(axis=axis, keepdims=keepdims).dims
            assert bits(one.values) == bits(plain)


def test_xarrays_and_operators(labelled):
    pytest.importorskip("dask", reason="dask is not installed")
    peak = gpureduce.Operator("f4", combine="a > b ? a : b")
    with pytest.raises(TypeError, match="has names"):
        peak(labelled)
    with pytest.raises(TypeError, match="has names"):
        gpureduce.reduceat(labelled, [0], "add")
    for given in (labelled, labelled.chunk({"time": 7})):
        found = given.reduce(peak, "time")
        assert found.dims == ("lat", "lon") and type(found.data) is type(given.data)
        assert bits(found.values) == bits(peak(labelled.values, axis=0))


def test_lazy_xarrays(labelled):
    da = pytest.importorskip("dask.array", reason="dask's arrays are not installed")
    chunked = labelled.chunk({"time": 7, "lat": 3})
    x = labelled.values
    for found in (
        chunked.reduce(gpureduce.nansum, "time"),
        chunked.exact.sum("time", skipna=True),
        gpureduce.nansum(chunked, axis=0),
    ):
        assert isinstance(found.data, da.Array) and found.dims == ("lat", "lon")
        assert bits(found.compute(scheduler="sync").values) == bits(gpureduce.nansum(x, axis=0))
