"""Dask arrays stay lazy, and any chunks give the bits of the whole."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from arrays import finite_bits, generator
from cuts import LEAKY, differing, random_chunks
from table import OPS, SANITIZED, bits

import gpureduce
from gpureduce.chunked import plan

dask = pytest.importorskip("dask", reason="dask is not installed: pip install 'dask[array]'")
da = pytest.importorskip("dask.array", reason="dask's arrays are not installed")

FUNCTIONS = sorted(name for name in OPS if OPS[name]["function"])


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="sync"):
        yield


def array(rng, shape, dtype="f4"):
    x = finite_bits(rng, np.dtype("f4"), int(np.prod(shape))).reshape(shape)
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def assert_lazy(got, want):
    """Dask's, with the right meta, and the same bits."""
    several = zip(*[r if isinstance(r, tuple) else (r,) for r in (got, want)], strict=True)
    for lazy, value in several:
        assert isinstance(lazy, da.Array)
        assert lazy.dtype == value.dtype and lazy.shape == np.shape(value)
        assert lazy._meta.dtype == value.dtype and lazy._meta.ndim == np.ndim(value)
        assert bits(lazy.compute()) == bits(value)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_of_any_chunks(name):
    rng = generator("dask", name)
    function = getattr(gpureduce, name)
    for axis in (None, 0, 1, -1, (0, 2), (2, 1), (0, 1, 2)):
        if OPS[name]["position"] and isinstance(axis, tuple):
            continue
        shape = tuple(rng.integers(1, 24, 3).tolist())
        x = array(rng, shape)
        lazy = da.from_array(x, chunks=random_chunks(rng, shape))
        for keepdims in (False, True):
            want = function(x, axis=axis, keepdims=keepdims)
            assert_lazy(function(lazy, axis=axis, keepdims=keepdims), want)


@pytest.mark.parametrize("dtype", ["i2", "u8", "?", "f2", "f8", "c8"])
@pytest.mark.parametrize("name", ["sum", "mean", "std", "max", "argmin", "prod"])
def test_dtypes(name, dtype):
    rng = generator("dask dtypes", name, dtype)
    x = rng.integers(0, 100, (50, 6)).astype(dtype)
    lazy = da.from_array(x, chunks=(7, 4))
    assert_lazy(getattr(gpureduce, name)(lazy, axis=0), getattr(gpureduce, name)(x, axis=0))
    if OPS[name]["takes_dtype"] and dtype in ("i2", "u8"):
        want = getattr(gpureduce, name)(x, axis=0, dtype="f4")
        assert_lazy(getattr(gpureduce, name)(lazy, axis=0, dtype="f4"), want)
        narrow = gpureduce.sum(x, dtype="i1")
        assert_lazy(gpureduce.sum(lazy, dtype="i1"), narrow)


def test_masks_and_ddof():
    rng = generator("dask masks")
    x = array(rng, (40, 30))
    where = rng.random((40, 30)) < 0.5
    where[0] = True
    lazy = da.from_array(x, chunks=(11, 9))
    want = gpureduce.std(x, axis=0, where=where, ddof=0.5)
    for mask in (where, da.from_array(where, chunks=(40, 5))):
        assert_lazy(gpureduce.std(lazy, axis=0, where=mask, ddof=0.5), want)
    row = where[3]
    assert_lazy(gpureduce.sum(lazy, where=row), gpureduce.sum(x, where=row))


def test_chunks_of_unknown_sizes():
    x = array(generator("dask unknown"), (60, 5))
    lazy = da.from_array(x, chunks=(7, 5))
    some, want = lazy[lazy[:, 0] > 0], x[x[:, 0] > 0]
    assert np.isnan(some.shape[0])
    for name in ("sum", "mean", "nanstd", "max", "count_nonzero"):
        function = getattr(gpureduce, name)
        assert bits(function(some, axis=0).compute()) == bits(function(want, axis=0))
        assert bits(function(some).compute()) == bits(function(want))
        assert bits(function(some, axis=1).compute()) == bits(function(want, axis=1))
    for name in ("argmax", "prod"):
        with pytest.raises(ValueError, match="compute_chunk_sizes"):
            getattr(gpureduce, name)(some, axis=0)
    some.compute_chunk_sizes()
    assert_lazy(gpureduce.argmax(some, axis=0), gpureduce.argmax(want, axis=0))


@pytest.mark.parametrize("split_every", [2, 3, 16, {0: 2, 1: 5}])
def test_any_tree_of_merges(split_every):
    x = array(generator("split every"), (40, 30))
    lazy = da.from_array(x, chunks=(3, 4))
    with dask.config.set(split_every=split_every):
        for name in ("sum", "var", "argmax", "prod"):
            function = getattr(gpureduce, name)
            assert_lazy(function(lazy), function(x))
            if not isinstance(split_every, dict):
                assert_lazy(function(lazy, axis=0), function(x, axis=0))


def test_nothing_is_computed_before_it_is_asked():
    reads = []

    def read(block):
        reads.append(block.shape)
        return block

    x = array(generator("lazy"), (40, 4))
    lazy = da.from_array(x, chunks=(10, 4)).map_blocks(read, meta=np.empty((0, 0), "f4"))
    found = gpureduce.minmax(lazy, axis=0)
    mean = gpureduce.mean(lazy, axis=0)
    assert reads == []
    dask.compute(*found)
    assert len(reads) == 4  # each chunk once, of both results
    mean.compute()
    assert len(reads) == 8


@pytest.mark.parametrize("name", ["sum", "mean", "var", "max", "any", "argmin", "prod"])
def test_graphs_are_no_larger_than_dasks_own(name):
    lazy = da.ones((1 << 10, 64), chunks=(1 << 4, 16), dtype="f4")
    for axis in (0, 1) if name == "prod" else (None, 0, 1):
        both = getattr(gpureduce, name)(lazy, axis=axis), getattr(da, name)(lazy, axis=axis)
        ours, theirs = (dict(dask.optimize(f)[0].__dask_graph__()) for f in both)
        assert len(ours) <= len(theirs), axis


def test_equal_work_has_equal_names():
    lazy = da.ones(1 << 16, chunks=1 << 8, dtype="f4")
    assert gpureduce.sum(lazy).name == gpureduce.sum(lazy).name  # so that equal work is one
    assert gpureduce.sum(lazy).name != gpureduce.mean(lazy).name
    assert gpureduce.std(lazy).name != gpureduce.std(lazy, ddof=1).name


def test_large_partials_merge_few_at_a_time():
    """So that what waits for a merge is bounded."""
    for rows, outputs, merges in ((999, 1, 4 + 1), (1, 1 << 23, 32 + 16 + 8 + 4 + 2 + 1)):
        lazy = da.ones((64 * rows, outputs), chunks=(rows, outputs), dtype="f4")
        graph = map(str, dict(gpureduce.sum(lazy, axis=0).__dask_graph__()))
        assert sum("-partial-" in key or "-aggregate-" in key for key in graph) == merges


@pytest.mark.parametrize("name", ["sum", "mean", "var", "nanstd"])
@pytest.mark.parametrize("cuts", [(2,) * 50, (6, 1, 5, 4, 2, 6, 0, 3, 4, 6, 5, 2, 6) * 2])
def test_chunks_of_few_rows_go_together(name, cuts, monkeypatch):
    """Some MiB of them, where each would be words for the most part."""
    take, taken = plan.Named.part, []

    def counted(self, blocks, *given):
        taken.append(blocks[0].size)
        return take(self, blocks, *given)

    monkeypatch.setattr(plan.Named, "part", counted)
    x = array(generator("dask groups", name), (100, 300), "f8")
    for how in ({}, {"where": x > 0}):
        taken.clear()
        lazy = getattr(gpureduce, name)(da.from_array(x, chunks=(cuts, 200)), axis=0, **how)
        assert bits(lazy.compute()) == bits(getattr(gpureduce, name)(x, axis=0, **how))
        assert len(taken) < len(cuts) and sum(taken) == x.size  # none of them twice


def test_reduce_by_name():
    x = array(generator("dask reduce"), (40, 3))
    lazy = da.from_array(x, chunks=(7, 2))
    for op in ("add", np.maximum, "fmin", "multiply", "sum"):
        assert_lazy(gpureduce.reduce(lazy, op, axis=0), gpureduce.reduce(x, op, axis=0))
    whole = np.arange(120).reshape(40, 3)
    lazy = da.from_array(whole, chunks=(7, 2))
    for op in ("bitwise_xor", "bitwise_or", "logical_xor"):
        assert_lazy(gpureduce.reduce(lazy, op, axis=0), gpureduce.reduce(whole, op, axis=0))
    with pytest.raises(TypeError, match="comes in chunks"):
        gpureduce.reduceat(lazy, [0, 2], "add")
    with pytest.raises(TypeError, match="comes in chunks"):
        gpureduce.segments(lazy, [0], [2], "add")


def test_users_operators():
    rng = generator("dask own")
    x, y = array(rng, (20, 9), "f8"), array(rng, (20, 1), "f8")
    lazy, other = da.from_array(x, chunks=(7, 4)), da.from_array(y, chunks=(5, 1))
    leaky = gpureduce.Operator(**LEAKY)
    for axis in (None, 0, 1, (0, 1), (1, 0), ()):
        for keepdims in (False, True):
            how = {"axis": axis, "keepdims": keepdims}
            assert_lazy(leaky(lazy, **how), leaky(x, **how))
    assert_lazy(gpureduce.reduce(lazy, leaky, axis=1), leaky(x, axis=1))
    assert_lazy(leaky(lazy, axis=0, where=y > 0), leaky(x, axis=0, where=y > 0))
    assert_lazy(leaky(lazy, dtype="f4"), leaky(x, dtype="f4"))
    dot = gpureduce.Operator("f8", inputs="x, y", lift="x * y", combine="a + b")
    for second in (other, y):
        assert_lazy(dot(lazy, second, axis=0), dot(x, y, axis=0))
    assert_lazy(dot(y, lazy), dot(y, x))
    both = gpureduce.Operator(
        "s: f8, q: f8",
        lift="s = x; q = x * x",
        combine="s = a.s + b.s; q = a.q + b.q",
        finish={"total": "s", "squares": "q"},
    )
    assert_lazy(tuple(both(lazy, axis=0)), tuple(both(x, axis=0)))
    assert both(lazy).squares.dtype == np.float64
    assert leaky(lazy).name == leaky(lazy).name
    with pytest.raises(TypeError, match="comes in chunks"):
        gpureduce.reduceat(lazy, [0, 2], leaky)
    with pytest.raises(TypeError, match="initial is not taken"):
        leaky(lazy, initial=1.0)
    with pytest.raises(TypeError, match="are numbers, not small arrays"):
        gpureduce.Operator("f8", inputs="m[9]", lift="m[0]", combine="a + b")(lazy)


def test_what_is_not_taken():
    lazy = da.ones((4, 4), chunks=2)
    with pytest.raises(TypeError, match="out is not taken"):
        gpureduce.sum(lazy, out=np.empty(()))
    with pytest.raises(TypeError, match="initial is not taken"):
        gpureduce.sum(lazy, initial=1)
    with pytest.raises(ValueError, match="reduced on the CPU"):
        gpureduce.sum(lazy, device="cuda")
    with pytest.raises(TypeError, match="ProgressBar"):
        gpureduce.sum(lazy, progress=True)
    with pytest.raises(np.exceptions.AxisError):
        gpureduce.sum(lazy, axis=2)
    with pytest.raises(TypeError, match="reduced lazily"):
        gpureduce.partials(lazy, "sum")
    with pytest.raises(TypeError, match=r"dtype\('O'\) is not supported"):
        gpureduce.sum(da.from_array(np.array([None, 1]), chunks=1))
    masked = da.ma.masked_equal(lazy, 1)
    with pytest.raises(TypeError, match="are not supported"):
        gpureduce.sum(masked)


def test_a_retry_gives_the_same_bits(tmp_path):
    """A chunk that fails at first, as on a worker that dies."""
    x = array(generator("retry"), (30, 3))
    expected = gpureduce.mean(x, axis=0)

    def shaky(block, folder, block_id=None):
        flag = folder / f"{block_id}"
        if not flag.exists():
            flag.touch()
            raise OSError("lost")
        return block

    for attempt in range(2):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        lazy = da.from_array(x, chunks=(10, 3)).map_blocks(shaky, folder, meta=np.empty((0, 0)))
        lazy = lazy.astype("f4")
        found = gpureduce.mean(lazy, axis=0)
        for _ in range(3):
            with pytest.raises(OSError):
                found.compute()
        assert bits(found.compute()) == bits(expected)


def test_threads_and_other_processes():
    x = array(generator("schedulers"), (1000, 7))
    lazy = da.from_array(x, chunks=(93, 4))
    for name in ("sum", "var", "argmax"):
        function = getattr(gpureduce, name)
        found = function(lazy, axis=0)
        assert bits(found.compute(scheduler="threads")) == bits(function(x, axis=0))
        assert bits(pickle.loads(pickle.dumps(found)).compute()) == bits(function(x, axis=0))


MEMORY = """
import resource, numpy as np, dask, dask.array as da, gpureduce
def block(block_id=None):
    return np.full((1 << 13, 1 << 10), block_id[0], np.float32)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
chunks = (1 << 13,) * 32, (1 << 10,)
lazy = da.map_blocks(block, chunks=chunks, dtype="f4", meta=np.empty((0, 0), "f4"))
with dask.config.set(scheduler="threads", num_workers=2):
    gpureduce.var(lazy[:1 << 13]).compute()
    before = peak()
    assert gpureduce.mean(lazy).compute() == 15.5
    gpureduce.var(lazy, axis=0).compute()
print(lazy.nbytes >> 20, before, peak())
"""


@pytest.mark.skipif(SANITIZED, reason="the sanitizer keeps what is freed")
def test_memory_is_bounded():
    """A few chunks of 32 MiB on each thread, of 1 GiB; benchmarks/memory.py has more."""
    here = str(Path(gpureduce.__file__).parents[1])
    paths = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", MEMORY]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=os.environ | {"PYTHONPATH": paths}
    )
    assert done.returncode == 0, done.stderr
    size, before, after = map(int, done.stdout.split())
    assert size >= 1 << 10 and after < before + 200, (before, after)


@pytest.mark.alone
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["dask-processes", "dask-workers"])
def test_processes(way, monkeypatch):
    pytest.importorskip("distributed", reason="distributed is not installed")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    wrong, count = differing(way, [("processes", n) for n in range(40)])
    assert not wrong and count > 30, list(map(str, wrong))


def dying(block, folder=None, block_id=None):
    """The first worker that is given the third chunk dies."""
    flag = Path(folder) / "dead"
    if block_id == (2, 0) and not flag.exists():
        flag.touch()
        os._exit(1)
    return block


@pytest.mark.alone
@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_dies(tmp_path):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    x = array(generator("dying"), (60, 5))
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        lazy = da.from_array(x, chunks=(10, 5))
        lazy = lazy.map_blocks(dying, folder=str(tmp_path), meta=np.empty((0, 0), "f4"))
        found = client.compute(gpureduce.var(lazy, axis=0)).result(timeout=60)
    assert (tmp_path / "dead").exists() and bits(found) == bits(gpureduce.var(x, axis=0))
