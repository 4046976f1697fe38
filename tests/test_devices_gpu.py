"""Real devices together, and with the CPU: the CPU's bits, whoever took what. With one device, it
and the CPU; what takes two says so."""

import itertools
import time

import device
import numpy as np
import pytest
from arrays import draw, finite_bits, generator, is_float
from table import DEVICE_ROWS, OPS, call, numpy_dtype, show

import gpureduce
from gpureduce import _core

COUNT, WHY = _core.device_count()
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}"),
    pytest.mark.filterwarnings("ignore"),
]
two = pytest.mark.skipif(COUNT < 2, reason=f"{COUNT} devices: this takes two")
WHO = ["all", ["cpu", "cuda:0"]] + (["cuda:all", ["cuda:1", "cpu"]] if COUNT > 1 else [])
MIB = 1 << 20


def values(rng, dtype, n):
    return (
        finite_bits(rng, dtype, n) if is_float(dtype) or dtype.kind == "c" else draw(rng, dtype, n)
    )


@pytest.mark.parametrize(("op", "dtype", "result", "law"), DEVICE_ROWS, ids=lambda x: x)
def test_whole_arrays(op, dtype, result, law):
    rng, of = generator("several", op, dtype), numpy_dtype(dtype)
    pool = values(rng, of, 24 * MIB // of.itemsize)
    for n in (len(pool), int(rng.integers(9 * MIB // of.itemsize, len(pool)))):
        layouts = (pool[:n], pool[: n // 3 * 3].reshape(-1, 3).T, pool[:n][::-2])
        a = layouts[rng.integers(3)] if n < len(pool) else pool
        want = call(op, a, device="cpu")
        for who in WHO:
            got = call(op, a, device=who)
            assert np.asarray(got).tobytes() == np.asarray(want).tobytes(), (
                f"{n} {a.strides} {who}: got {show(got)}, want {show(want)}"
            )


@pytest.mark.parametrize("seed", range(12))
def test_axes_masks_and_moments(seed):
    rng = generator("several axes", seed)
    dtype = np.dtype(rng.choice(["f4", "f8", "f2", "i4", "u1", "c8"]))
    ndim = int(rng.integers(1, 5))
    shape = [
        int(s) for s in np.maximum(1, (24 * MIB // dtype.itemsize) ** rng.dirichlet([1] * ndim))
    ]
    a = values(rng, dtype, int(np.prod(shape))).reshape(shape).transpose(rng.permutation(ndim))
    axes = tuple(int(d) for d in range(ndim) if rng.random() < 0.5)
    for op in ("sum", "mean", "var", "nanstd", "nansum", "prod", "min", "argmax"):
        if OPS[op]["position"]:
            how = {"axis": axes[0]} if axes else {}
        else:
            how = {"axis": axes} if axes else {}
        if OPS[op]["takes_where"] and op != "min":
            how["where"] = rng.random(a.shape) < 0.8 if rng.random() < 0.5 else True
        want = call(op, a, device="cpu", **how)
        for who in WHO:
            got = call(op, a, device=who, **how)
            assert np.asarray(got).tobytes() == np.asarray(want).tobytes(), (
                f"{op} of {dtype} {a.shape} {a.strides} {sorted(how)} {who}"
            )


def test_a_result_where_it_is_wanted():
    a = np.random.default_rng(1).normal(size=(1 << 12, 1 << 12))
    for who in WHO:
        out = np.empty(1 << 12, order="F")
        assert gpureduce.sum(a, axis=0, device=who, out=out) is out
        assert (out == gpureduce.sum(a, axis=0)).all()
        mean = a.mean(1, keepdims=True)
        found = gpureduce.var(a, axis=1, mean=mean, device=who)
        assert (found == gpureduce.var(a, axis=1, mean=mean, device="cpu")).all()
        assert gpureduce.sum(a, device=who, initial=1e300) == gpureduce.sum(a, initial=1e300)


def test_pinned_memory():
    memory = device.Pinned(64 * MIB)
    a = memory.array("f8")
    a[:] = np.random.default_rng(2).normal(size=a.size)
    for op in ("sum", "prod", "max", "argmin"):
        want = call(op, a, device="cpu")
        for who in WHO:
            assert call(op, a, device=who) == want


def test_many_calls_at_once():
    from concurrent.futures import ThreadPoolExecutor

    a = np.random.default_rng(3).normal(size=5 * MIB)
    want = gpureduce.sum(a)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: gpureduce.sum(a, device=WHO[i % len(WHO)]), range(24)))
    assert set(found) == {want}


@two
def test_both_devices_take_their_part():
    """One alone takes longer, from pinned memory, which nothing but the links bounds."""
    memory = device.Pinned(1024 * MIB)
    a = memory.array("f4")
    a[:] = 1
    times = {}
    for who in ("cuda:0", "cuda:all") * 5:
        start = time.perf_counter()
        assert gpureduce.sum(a, device=who) == a.size
        times.setdefault(who, []).append(time.perf_counter() - start)
    assert min(times["cuda:0"]) > 1.5 * min(times["cuda:all"]), times


def cut(a, parts):
    cuts = [0, *sorted(generator("cuts").integers(1, len(a), parts - 1)), len(a)]
    return [a[i:j] for i, j in itertools.pairwise(cuts)]


@pytest.mark.parametrize("op", ["sum", "mean", "max", "min", "argmin", "argmax", "any", "ptp"])
def test_lists_of_devices_arrays(op):
    """One behind the other, each reduced where it lies."""
    for dtype in ("f4", "f8", "i4"):
        rng = generator("parts", op, dtype)
        a = values(rng, np.dtype(dtype), 3 * MIB)
        for parts in (1, 2, 5):
            got = call(op, [device.on_device(part) for part in cut(a, parts)])
            assert np.asarray(got).tobytes() == np.asarray(call(op, a)).tobytes(), (dtype, parts)


def test_a_list_that_cannot_be():
    parts = [device.on_device(part) for part in cut(np.ones(10), 2)]
    for how, error in (({"axis": 0}, TypeError), ({"device": "cpu"}, ValueError)):
        with pytest.raises(error, match="several devices"):
            gpureduce.sum(parts, **how)
    with pytest.raises(TypeError, match="along the tree"):
        gpureduce.prod(parts)
    with pytest.raises(TypeError, match="several dtypes"):
        gpureduce.sum([parts[0], device.on_device(np.ones(3, "f4"))])


@two
def test_a_list_on_both_devices():
    torch = pytest.importorskip("torch")
    a = values(generator("both"), np.dtype("f4"), 5 * MIB)
    parts = [
        torch.from_numpy(part.copy()).to(f"cuda:{n % COUNT}") for n, part in enumerate(cut(a, 4))
    ]
    for op in ("sum", "argmax"):
        assert call(op, parts) == call(op, a)
