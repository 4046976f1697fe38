"""The GPU half gives the CPU half's bits, by every road and for every row of the table.

Needs a CUDA device; skipped with the reason where there is none. Other libraries are asked for by
the tests that use them. JAX runs in a process of its own, for it minds forks in the others'.
"""

import functools
import importlib.util
import os
import subprocess
import sys
import threading
import time
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from arrays import cases, draw, finite_bits, generator, is_float, layouts, near_one, real_of
from device import (
    Interface,
    Memory,
    Pinned,
    Stream,
    copy_in,
    free_bytes,
    interface_of,
    on_device,
)
from reference import nearest
from table import DEVICE_OPS, DEVICE_ROWS, OPS, bits, call, dtype_names, numpy_dtype, show

import gpureduce
from gpureduce import _core

COUNT, WHY = _core.device_count()
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}"),
    # libraries warn as they are imported, and empty means do
    pytest.mark.filterwarnings("ignore"),
]
TESTS = Path(__file__).resolve().parent
BY_DTYPE = sorted(DEVICE_ROWS, key=lambda row: row[1])  # so that one dtype's arrays are made once
each_row = pytest.mark.parametrize(("op", "dtype", "result", "law"), BY_DTYPE, ids=lambda x: x)
SECONDS = 120  # beyond this a test hangs

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# Where kernels and pieces are cut: the tree's group, tiles of exact sums of halves, floats and
# doubles, the others' tile, the tree's chunk; 64 chunks; a piece of the ring.
EDGES = (4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 2 * MIB)
PIECE = 8 * MIB


def same(got, want):
    """Bits and dtype, but for the unit of a time, which only NumPy's arrays have."""
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype.kind in "mM":
        return (got.dtype.kind, got.tobytes()) == (want.dtype.kind, want.tobytes())
    return bits(got) == bits(want)


def compare(op, pairs, **arguments):
    """pairs: (label, array for the CPU, what is given to the GPU half)."""
    wrong = []
    for label, a, given in pairs:
        if a.size == 0 and OPS[op]["nonempty"]:
            continue
        want = call(op, a, device="cpu", **arguments)
        device = "auto" if not isinstance(given, np.ndarray) else "cuda"
        got = call(op, given, device=device, **arguments)
        if not same(got, want):
            wrong.append(f"{label}: got {show(got)}, want {show(want)}")
    assert not wrong, f"{op} of {pairs[0][1].dtype}:\n" + "\n".join(wrong[:20])


def suited(op, rng, dtype, n):
    """Values that do not settle the answer early: products that neither vanish nor overflow."""
    if op == "prod" and (is_float(dtype) or dtype.kind == "c"):
        return near_one(rng, dtype, n)
    if op == "prod" and dtype.kind in "iu":
        return draw(rng, dtype, n) | dtype.type(1)
    if op == "all" and dtype.kind not in "mM":
        return np.ones(n, dtype)
    return draw(rng, dtype, n)


def repeated(a, n):
    """n elements out of fewer; the period is odd, so that no two tiles are alike."""
    return np.resize(a[: len(a) - 1 + len(a) % 2], n)


# --- every row over every nasty array -------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def arrays_of(name):
    dtype = numpy_dtype(name)
    return [(label, a, on_device(a)) for label, a in cases(dtype)]


@each_row
def test_host_arrays(op, dtype, result, law):
    compare(op, [(label, a, a) for label, a, _ in arrays_of(dtype)])


@each_row
def test_device_arrays(op, dtype, result, law):
    """Folded in place by the kernels for whole arrays, the others by those for any layout."""
    compare(op, arrays_of(dtype))


@functools.lru_cache(maxsize=1)
def pool_of(name, hard):
    """Bytes for all sizes and offsets of one dtype, on the host and on the device."""
    dtype = numpy_dtype(name)
    n = (2 * MIB + 4 * KIB) // dtype.itemsize
    rng = generator("gpu pool", name)
    floats = is_float(dtype) or dtype.kind == "c"
    if hard == "prod":
        a = suited("prod", rng, dtype, n)
    else:
        a = finite_bits(rng, dtype, n) if floats and hard else suited(hard, rng, dtype, n)
    return a, on_device(a)


def part_of(pool, device, start, n):
    """Elements [start, start + n) of the pool; start may count parts of complex numbers."""
    whole, unit = pool.view(real_of(pool.dtype)), real_of(pool.dtype).itemsize
    first = int(start * unit)
    host = whole.view(np.uint8)[first : first + n * pool.dtype.itemsize].view(pool.dtype)
    address = device.__cuda_array_interface__["data"][0] + first
    return host, Interface(interface_of(host, address), device)


@each_row
def test_sizes_around_every_edge(op, dtype, result, law):
    pool, device = pool_of(dtype, op if op in ("prod", "all") else "")
    size = pool.dtype.itemsize
    sizes = {edge // size + d for edge in EDGES for d in (-1, 0, 1)}
    sizes |= {8 * edge // size + d for edge in EDGES[1:4] for d in (-1, 1)}
    for n in sorted(n for n in sizes if n > 0):
        host, given = part_of(pool, device, 0, n)
        compare(op, [(f"{n} elements", host, host), (f"{n} elements, device", host, given)])


@each_row
def test_every_alignment(op, dtype, result, law):
    """Moved by 0 to 15 elements, or halves of complex ones, and to odd addresses."""
    for hard in ("prod",) if op == "prod" else (op if op == "all" else "", "hard"):
        pool, device = pool_of(dtype, hard)
        size, unit = pool.dtype.itemsize, real_of(pool.dtype).itemsize
        for n in (1, 2, 7, 33, 1001, 4096, 32 * KIB // size + 5, 70_001 // size):
            for start in range(16):
                host, given = part_of(pool, device, start, n)
                compare(op, [(f"{n} elements from {start}", host, given)])
            for byte in (1, 3) if unit > 1 else ():
                host, given = part_of(pool, device, byte / unit, n)
                compare(op, [(f"{n} elements, {byte} bytes on", host, given)])


@each_row
def test_pieces_of_the_ring(op, dtype, result, law):
    """Host arrays of one piece and its neighbours, and of more pieces than are under way."""
    dtype = numpy_dtype(dtype)
    few = suited(op, generator("pieces", op, dtype), dtype, 100_003)
    piece = PIECE // dtype.itemsize
    a = repeated(few, 6 * piece + 13)
    pairs = [(f"{n} elements", a[:n], a[:n]) for n in (piece - 1, piece, piece + 1, 2 * piece + 1)]
    odd = np.frombuffer(a.view(np.uint8), np.uint8)[1:].view(np.uint8)
    odd = odd[: len(odd) // dtype.itemsize * dtype.itemsize].view(dtype)[: 5 * piece]
    pairs += [("all", a, a), ("reversed", a[::-1], a[::-1]), ("moved by a byte", odd, odd)]
    if op in ("prod", "all") and dtype.itemsize > 1:
        pairs.pop()  # any bits would settle it
    compare(op, pairs)


@pytest.mark.parametrize(
    ("op", "dtype", "result", "law"),
    [row for row in DEVICE_ROWS if row[3] == "tree"],
    ids=lambda x: x,
)
def test_the_third_level_of_the_tree(op, dtype, result, law):
    """64 times 64 chunks have one root; one chunk more has another level."""
    dtype = numpy_dtype(dtype)
    full = 128 * MIB // dtype.itemsize
    a = repeated(near_one(generator("tree", dtype), dtype, 1_000_003), full + 5)
    given = on_device(a)
    interface = given.__cuda_array_interface__
    for n in (full - 1, full, full + 1, full // 64 * 3 - 7):
        part = Interface({**interface, "shape": (n,)}, given)
        compare(op, [(f"{n} elements", a[:n], part)])


LAID = ["sum", "prod", "argmax", "min", "count_nonzero"]


@pytest.mark.parametrize("dtype", dtype_names())
def test_large_arrays_of_every_layout(dtype):
    """Several MiB, so that several threads fill the ring with what lies anywhere."""
    name, dtype = dtype, numpy_dtype(dtype)
    ops = [op for op, of, *_ in DEVICE_ROWS if of == name and op in LAID]
    few = draw(generator("laid", dtype), dtype, 30_011)
    a = repeated(few, 24 * MIB // dtype.itemsize // 60 * 60)
    for label, laid in layouts(a):
        if label in ("overlapping",):
            laid = np.lib.stride_tricks.sliding_window_view(a[:300_000], 7)
        if label == "broadcast from one":
            laid = np.broadcast_to(a[:1], (1001, 3001))
        for op in ops:
            compare(op, [(label, laid, laid)])
            if laid.size:
                compare(op, [(f"{label}, on the device", laid, on_device(laid))])


# --- roads ----------------------------------------------------------------------------------------


@each_row
def test_pinned_memory(op, dtype, result, law):
    name, dtype = dtype, numpy_dtype(dtype)
    pinned, a = pinned_of(name, op if op in ("prod", "all") else "")
    size = dtype.itemsize
    for n in (0, 1, 1001, PIECE // size, 2 * PIECE // size + 5, len(a)):
        compare(op, [(f"{n} elements", a[:n], a[:n])])
    compare(op, [("moved", a[3 : len(a) // 2], a[3 : len(a) // 2])])
    compare(op, [("strided", a[: PIECE // size : -1], a[: PIECE // size : -1])])
    del pinned


@functools.lru_cache(maxsize=1)
def pinned_of(name, kind):
    dtype = numpy_dtype(name)
    few = suited(kind, generator("pinned", name), dtype, 70_001)
    pinned = Pinned(5 * PIECE + 16 * 7)
    a = pinned.array(dtype)
    a[:] = repeated(few, len(a))
    return pinned, a


@pytest.mark.parametrize("dtype", dtype_names())
def test_memmap(dtype, tmp_path):
    name, dtype = dtype, numpy_dtype(dtype)
    n = 20 * MIB // dtype.itemsize + 3
    a = repeated(draw(generator("memmap", name), dtype, 50_021), n)
    a.tofile(tmp_path / "a")
    raw = np.memmap(tmp_path / "a", np.uint8, mode="r")
    given = np.asarray(raw).view(dtype) if dtype.name == "bfloat16" else raw.view(dtype)
    for op in [op for op, of, *_ in DEVICE_ROWS if of == name]:
        compare(op, [("memmap", a, given), ("a part", a[1:-1:3], given[1:-1:3])])


CASTS = ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64"]


@pytest.mark.parametrize("dtype", [name for name in dtype_names() if name != "datetime64"])
@pytest.mark.parametrize("asked", CASTS)
def test_dtype_is_converted_to_first(dtype, asked):
    a = draw(generator("cast", dtype), numpy_dtype(dtype), 30_011)
    if dtype == "timedelta64" and asked not in ("bool", "int64"):
        pytest.skip("not a conversion")
    for op in ("sum", "prod", "mean"):
        if (op, asked) not in {(row[0], row[1]) for row in DEVICE_ROWS}:
            continue
        for label, laid in (("plain", a), ("strided", a[::-3]), ("few", a[:5]), ("none", a[:0])):
            try:
                call(op, laid, device="cpu", dtype=asked)
            except TypeError:
                continue
            pairs = [(label, laid, laid), (f"{label}, on the device", laid, on_device(laid))]
            compare(op, pairs, dtype=asked)


@pytest.mark.parametrize("op", [name for name, op in DEVICE_OPS.items() if op["takes_initial"]])
@pytest.mark.parametrize("dtype", [n for n in dtype_names() if n[:4] not in ("date", "time")])
def test_initial_takes_part(op, dtype):
    a = draw(generator("initial", dtype), numpy_dtype(dtype), 20_003)
    for initial in (1, 0):
        for laid in (a, a[:1], a[:0], a[::-2]):
            compare(op, [("host", laid, laid), ("device", laid, on_device(laid))], initial=initial)


@each_row
def test_nothing_and_one(op, dtype, result, law):
    dtype = numpy_dtype(dtype)
    one = draw(generator("one", dtype), dtype, 1)
    scalar, none = one.reshape(()), one[:0]
    pairs = [("0-d", scalar, scalar), ("0-d on the device", scalar, on_device(scalar))]
    pairs += [("none", none, none), ("none on the device", none, on_device(none))]
    compare(op, pairs)
    if OPS[op]["nonempty"]:
        for given in (none, on_device(none)):
            with pytest.raises(ValueError):
                call(op, given, device="cuda")


# --- the CUDA array interface ---------------------------------------------------------------------

A = np.arange(1.0, 1001.0)


def test_interface_without_strides_and_read_only():
    given = on_device(A)
    given.__cuda_array_interface__ |= {"strides": None}
    given.__cuda_array_interface__["data"] = (given.__cuda_array_interface__["data"][0], True)
    assert gpureduce.sum(given) == 500500
    del given.__cuda_array_interface__["strides"]
    assert gpureduce.sum(given) == gpureduce.sum(given, device="cuda:0") == 500500
    assert gpureduce.sum(given, device="cuda") == 500500


def test_interface_of_older_versions_and_default_streams():
    for stream in (None, 1, 2):
        given = on_device(A)
        given.__cuda_array_interface__ |= {"version": 2, "stream": stream}
        assert gpureduce.sum(given) == 500500


@pytest.mark.parametrize("step", [1, 2])
def test_interface_stream_is_waited_for(step):
    """The data comes on a stream that waits for a word which another thread writes meanwhile."""
    word, source, memory = Pinned(4), Pinned(A.nbytes), Memory(A.nbytes)
    source.array("f8")[:] = 0
    copy_in(memory.address, source.address, A.nbytes)
    source.array("f8")[:] = A
    flag = word.array("u4")
    flag[0] = 0
    interface = interface_of(A[::step], memory.address)
    gpureduce.sum(Interface(interface, memory))  # kernels are loaded, which would wait for all
    stream = Stream()
    stream.wait_for(word)
    copy_in(memory.address, source.address, A.nbytes, stream.handle)
    given = Interface({**interface, "stream": stream.handle}, memory)

    def write():
        flag[0] = 1

    timer = threading.Timer(0.2, write)
    timer.start()
    try:
        assert gpureduce.sum(given) == A[::step].sum()
    finally:
        write()
        timer.join()


def test_freed_pointers_are_refused():
    given = on_device(np.ones(1 << 22))
    given.holders = ()
    with pytest.raises(ValueError, match="address"):
        gpureduce.sum(given)
    assert gpureduce.sum(on_device(A)) == 500500


def test_host_pointers_are_refused():
    given = Interface(interface_of(A, A.ctypes.data))
    with pytest.raises(ValueError, match="address"):
        gpureduce.sum(given)
    assert gpureduce.sum(on_device(A)) == 500500


def test_devices_that_are_not_there():
    with pytest.raises(gpureduce.DeviceError, match="cuda:99"):
        gpureduce.sum(A, device="cuda:99")
    with pytest.raises(ValueError, match="cuda:0"):
        gpureduce.sum(on_device(A), device="cpu")
    with pytest.raises((ValueError, gpureduce.DeviceError), match="cuda:"):
        gpureduce.sum(on_device(A), device="cuda:99")
    assert gpureduce.sum(A, device="cuda") == 500500


@pytest.mark.skipif(COUNT < 2, reason=f"{COUNT} device")
def test_the_second_device():
    a = finite_bits(generator("second"), np.dtype("f8"), 3_000_001)
    for device in range(COUNT):
        assert bits(gpureduce.sum(a, device=f"cuda:{device}")) == bits(
            gpureduce.sum(a, device="cpu")
        )


# --- CuPy, PyTorch, JAX, Numba --------------------------------------------------------------------


def few_of(name):
    dtype = numpy_dtype(name)
    return draw(generator("library", name), dtype, 60_000)


@pytest.mark.parametrize(
    "name", [n for n in dtype_names() if n[:4] not in ("bflo", "date", "time")]
)
def test_cupy(name):
    cupy = pytest.importorskip("cupy")
    a = few_of(name)
    given = cupy.asarray(a)
    for op in [op for op, of, *_ in DEVICE_ROWS if of == name]:
        for label, host, there in (
            ("plain", a, given),
            ("strided", a[5::3], given[5::3]),
            ("reversed", a[::-1], given[::-1]),
            ("transposed", a.reshape(200, 300).T, given.reshape(200, 300).T),
            ("a column", a.reshape(200, 300)[:, 7], given.reshape(200, 300)[:, 7]),
            ("0-d", a[0].reshape(()), given[0]),
            ("none", a[:0], given[:0]),
        ):
            compare(op, [(label, host, there)])


def test_cupy_streams_and_memories():
    cupy = pytest.importorskip("cupy")
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        a = cupy.zeros(1 << 26, cupy.float32)
        for _ in range(30):
            a += 1
        assert gpureduce.sum(a) == 30 * 2.0**26
    managed = cupy.cuda.malloc_managed(8000)
    b = cupy.ndarray(1000, cupy.float64, managed)
    b[:] = cupy.arange(1000)
    assert gpureduce.sum(b) == 499500
    cupyx = pytest.importorskip("cupyx")
    pinned = cupyx.empty_pinned(3_000_000, np.float32)
    pinned[:] = finite_bits(generator("pinned"), np.dtype("f4"), len(pinned))
    assert bits(gpureduce.sum(pinned, device="cuda")) == bits(gpureduce.sum(pinned, device="cpu"))


def tensor(torch, a):
    if a.dtype.name == "bfloat16":
        return torch.from_numpy(a.view(np.int16)).cuda().view(torch.bfloat16)
    return torch.from_numpy(a).cuda()


@pytest.mark.parametrize("name", [n for n in dtype_names() if n[:4] not in ("date", "time")])
def test_torch(name):
    torch = pytest.importorskip("torch")
    a = few_of(name)
    given = tensor(torch, a)
    for op in [op for op, of, *_ in DEVICE_ROWS if of == name]:
        for label, host, there in (
            ("plain", a, given),
            ("strided", a[5::3], given[5::3]),
            ("transposed", a.reshape(200, 300).T, given.reshape(200, 300).T),
            ("a column", a.reshape(200, 300)[:, 7], given.reshape(200, 300)[:, 7]),
            ("expanded", np.broadcast_to(a[:5], (9, 5)), given[:5].expand(9, 5)),
            ("0-d", a[0].reshape(()), given[0]),
            ("none", a[:0], given[:0]),
        ):
            compare(op, [(label, host, there)])


def test_torch_streams():
    torch = pytest.importorskip("torch")
    a = torch.zeros(1 << 24, device="cuda")
    b = torch.zeros(1 << 24, device="cuda")
    gpureduce.sum(a), gpureduce.sum(a[::2])
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        a.fill_(1)
        b.copy_(a)
        assert gpureduce.sum(a) == 2.0**24
        torch.cuda._sleep(200_000_000)
        b.fill_(3)
        assert gpureduce.sum(b[::2]) == 3 * 2.0**23


def test_torch_on_the_host_and_what_it_refuses():
    torch = pytest.importorskip("torch")
    assert gpureduce.sum(torch.ones(5)) == 5
    assert gpureduce.sum(torch.arange(12.0).reshape(3, 4).T[::2], device="cuda") == 30
    pinned = torch.arange(3e6, dtype=torch.float64).pin_memory()
    assert gpureduce.sum(pinned, device="cuda") == 3e6 * (3e6 - 1) / 2
    learned = torch.ones(5, device="cuda", requires_grad=True)
    with pytest.raises((BufferError, RuntimeError), match="grad"):
        gpureduce.sum(learned)
    assert gpureduce.sum(learned.detach()) == 5
    with pytest.raises((TypeError, ValueError, BufferError, RuntimeError)):
        gpureduce.sum(torch.zeros(4, device="cuda", dtype=torch.float8_e4m3fn))
    assert gpureduce.sum(torch.ones(5, device="cuda")) == 5


def test_numba():
    cuda = pytest.importorskip("numba.cuda")
    a = finite_bits(generator("numba"), np.dtype("f8"), 10_001)
    assert bits(gpureduce.sum(cuda.to_device(a))) == bits(gpureduce.sum(a, device="cpu"))


def script(text, seconds=SECONDS, **environment):
    """What a script prints that can import the tests' helpers; it has to end by itself, with 0."""
    path = os.pathsep.join([str(TESTS), *(p for p in sys.path if p)])
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


JAX = """
import warnings
warnings.simplefilter("ignore")
import jax
jax.config.update("jax_enable_x64", True)
import numpy as np
from arrays import draw, generator
from table import DEVICE_ROWS, OPS, bits, call, numpy_dtype, show
for op, name, result, law in DEVICE_ROWS:
    if name[:4] in ("date", "time"):
        continue
    a = draw(generator("library", name), numpy_dtype(name), 60_000)
    there = jax.device_put(a, jax.devices("gpu")[0])
    assert there.dtype == a.dtype
    for host, given in ((a, there), (a[:0], there[:0]), (a[7:], there[7:])):
        if host.size == 0 and OPS[op]["nonempty"]:
            continue
        want, got = call(op, host, device="cpu"), call(op, given)
        assert bits(got) == bits(want), (op, name, show(got), show(want))
a = draw(generator("library"), np.dtype("f4"), 1 << 22)
late = jax.jit(lambda x: (x @ x.T).sum(0))(jax.numpy.ones((4096, 4096), "float32"))
assert call("sum", late) == 4096.0 ** 3
print("end")
"""


def test_jax():
    if not importlib.util.find_spec("jax"):  # not imported here
        pytest.skip("no JAX")
    assert script(JAX, XLA_PYTHON_CLIENT_PREALLOCATE="false").strip() == "end"


# --- what is large, wide or hidden ----------------------------------------------------------------


@pytest.mark.parametrize("n", [2**31 - 1, 2**31 + 1, 2**32 + 1])
def test_more_elements_than_32_bits_count(n):
    few = draw(generator("huge"), np.dtype("i1"), 1_000_003)
    np.clip(few, -100, 100, out=few)
    a = repeated(few, n)
    a[-1] = 101
    given = on_device(a)
    for op in ("sum", "max", "argmax", "count_nonzero", "bitwise_xor"):
        compare(op, [(f"{n} int8", a, given)])
    assert gpureduce.argmax(given) == n - 1
    compare("argmax", [("host", a, a)])
    compare("sum", [("host", a, a)])


def test_a_product_of_two_launches():
    a = repeated(near_one(generator("two"), np.dtype("f4"), 1_000_003), 2**30 + 2**20 + 3)
    compare("prod", [("more than 4 GiB", a, on_device(a))])


N = 2**24


def wide_arrays(dtype):
    rng = generator("wide", dtype)
    for sigma in (10, 40):
        with np.errstate(over="ignore"):
            a = (rng.lognormal(0, sigma, N) * rng.choice([-1, 1], N)).astype(dtype)
        a[~np.isfinite(a)] = 1
        yield f"lognormal {sigma}", a
    yield "random bits", finite_bits(rng, dtype, N)
    yield "normal", draw(rng, dtype, N)
    huge = finite_bits(rng, dtype, N // 2)
    yield "pairs that cancel", np.concatenate([huge, -huge[::-1]])
    a = draw(rng, dtype, N)
    a[rng.integers(0, N, 100)] = np.finfo(dtype).max / 256
    a[rng.integers(0, N, 100)] = np.finfo(dtype).smallest_subnormal
    yield "seldom huge, seldom tiny", a
    yield "growing", np.sort(finite_bits(rng, dtype, N))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_wide_sums(dtype):
    for label, a in wide_arrays(np.dtype(dtype)):
        given = on_device(a)
        compare("sum", [(label, a, given), (f"{label}, host", a, a)])
        compare("mean", [(label, a, given)])


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64", "bfloat16"])
def test_a_few_numbers_far_below_the_others(dtype):
    dtype = numpy_dtype(dtype)
    rng = generator("far below", str(dtype))
    real = real_of(dtype)
    for n in (100, 5000, 8192, 16383, 32768 + 5, 300_001, 3_000_001):
        for far in (19, 21, 24, 30, 45, 100, 140):
            a = draw(rng, dtype, n)
            parts = a.view(real)
            few = rng.integers(0, parts.size, 1 + parts.size // 20_000)
            parts[few] = np.ldexp(np.abs(parts[few].astype("f8")) + 0.3, -far).astype(real)
            compare("sum", [(f"{n}, 2^-{far}", a, on_device(a))])


@pytest.mark.alone
def test_counts_of_a_warp_do_not_overflow():
    """A first tile of small numbers sets the windows; thousands just above their tops follow."""
    cupy = pytest.importorskip("cupy")
    n, head = 9_000_000_000, 3_000_000
    if free_bytes() < 5 * n:
        pytest.skip(f"{4 * n >> 30} GiB and room are needed, {free_bytes() >> 30} are free")
    value = np.nextafter(np.float32(4), np.float32(0))
    a = cupy.full(n, value)
    a[:head] = 1
    exact = head + (n - head) * Fraction(float(value))
    total = gpureduce.sum(a)
    del a
    cupy.get_default_memory_pool().free_all_blocks()
    assert bits(total) == bits(nearest(exact, np.dtype("f4")))


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
)
def test_small_sums(dtype):
    """Around the edges of blocks of 256 and 512 threads, each of eight numbers, and of the most."""
    dtype = numpy_dtype(dtype)
    parts = 2 if dtype.kind == "c" else 1
    pool = draw(generator("small", str(dtype)), dtype, 64 * 4096 + 100)
    given = on_device(pool)
    edges = {k * numbers // parts for numbers in (2048, 4096) for k in (1, 2, 3, 4, 9, 64)}
    for n in sorted({edge + d for edge in edges for d in (-1, 0, 1, 5)}):
        for start in (0, 1 / parts, 1, 3, 5):
            host, part = part_of(pool, given, start, n)
            compare("sum", [(f"{n} from {start}", host, part)])


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64", "complex64"])
def test_small_sums_that_spread_too_far(dtype):
    """One of them, and the close ones that come after it; by every road."""
    dtype = numpy_dtype(dtype)
    rng = generator("small and wide", str(dtype))
    for n in (3, 100, 3000, 20_000):
        close, wide = draw(rng, dtype, n), finite_bits(rng, dtype, n)
        special = close.copy()
        special[n // 2] = -np.inf
        zeros = np.full(n, -0.0, dtype)
        for i in range(40):
            a = wide if i == 1 else special if i == 20 else zeros if i % 3 else close
            pairs = [(f"{n} the {i}th", a, on_device(a)), (f"{n} the {i}th, host", a, a)]
            compare("mean" if i % 2 else "sum", pairs)
        strided = np.repeat(wide, 2)[::2]
        compare("sum", [(f"{n} strided", strided, on_device(strided))])
        pinned = Pinned(wide.nbytes)
        pinned.array(dtype)[:] = wide
        compare("sum", [(f"{n} pinned", wide, pinned.array(dtype))])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex128"])
def test_what_is_hidden_in_the_last_element(dtype):
    dtype = numpy_dtype(dtype)
    a = repeated(draw(generator("hidden"), dtype, 100_003), 3_000_001)
    for value in (np.nan, np.inf, -np.inf):
        for at in (-1, 0, len(a) // 2, -5):
            b = a.copy()
            b[at] = value
            given = on_device(b)
            for op in ("sum", "prod", "min", "argmin", "max", "argmax", "mean"):
                compare(op, [(f"{value} at {at}", b, given)])


# --- failures -------------------------------------------------------------------------------------

OUT_OF_MEMORY = """
import numpy as np
import gpureduce
from device import allocate, free
from gpureduce import _core
a = np.ones(3_000_000)
held, size = [], 1 << 32
while size >= 1 << 12:
    address = allocate(size)
    held.append(address) if address else None
    size = size if address else size // 2
said = []
for _ in range(3):
    try:
        gpureduce.sum(a, device="cuda")
    except (MemoryError, gpureduce.DeviceError) as error:
        said.append(str(error))
assert len(said) == 3 and all("cuda:0" in text for text in said), said
assert gpureduce.sum(a, device="cpu") == 3_000_000
for address in held:
    free(address)
for _ in range(3):
    assert gpureduce.sum(a, device="cuda") == 3_000_000
print("end")
"""


@pytest.mark.alone
def test_out_of_device_memory():
    assert script(OUT_OF_MEMORY) == "end\n"


FORK = """
import os, warnings
warnings.simplefilter("ignore")
import numpy as np
import gpureduce
a = np.ones(3_000_000)
assert gpureduce.sum(a, device="cuda") == 3_000_000
child = os.fork()
if child == 0:
    try:
        gpureduce.sum(a, device="cuda")
    except gpureduce.DeviceError as error:
        assert "fork" in str(error) and "spawn" in str(error), error
    else:
        os._exit(1)
    fine = gpureduce.sum(a, device="cpu") == gpureduce.sum(a) == 3_000_000
    os._exit(0 if fine else 2)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert gpureduce.sum(a, device="cuda") == 3_000_000
print("end")
"""


def test_fork():
    assert script(FORK) == "end\n"


INTERRUPTED = """
import signal, threading, time
import numpy as np
import gpureduce
few = np.random.default_rng(0).standard_normal(1_000_003, np.float32)
a = np.broadcast_to(few, (250_000, len(few))){view}
assert a.nbytes > 10**12 / 2
assert gpureduce.sum(few, device="cuda") == gpureduce.sum(few, device="cpu")
main = threading.main_thread().ident
def interrupt():
    global sent
    sent = time.monotonic()
    signal.pthread_kill(main, signal.SIGINT)
for _ in range(2):
    threading.Timer(0.5, interrupt).start()
    try:
        gpureduce.{op}(a, device="cuda")
    except KeyboardInterrupt:
        print(time.monotonic() - sent)
    else:
        print("not interrupted")
    assert gpureduce.sum(few, device="cuda") == gpureduce.sum(few, device="cpu")
"""


@pytest.mark.parametrize("view", ["", "[:, ::-2]"])
@pytest.mark.parametrize("op", ["sum", "prod"])
def test_ctrl_c(op, view):
    waited = script(INTERRUPTED.format(op=op, view=view)).split()
    assert len(waited) == 2 and all(float(seconds) < 2 for seconds in waited)


EXIT = """
import threading
import numpy as np
import gpureduce
a = np.ones(1 << 20)
assert gpureduce.sum(a, device="cuda") == 1 << 20
wide = np.broadcast_to(a, (1 << 16, 1 << 20))
threading.Thread(target=gpureduce.sum, args=(wide,), kwargs={"device": "cuda"}, daemon=True).start()
print("end", flush=True)
"""


def test_exit_while_another_thread_reduces():
    assert script(EXIT) == "end\n"


def in_threads(count, work):
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()


def test_many_threads_on_one_device():
    made = {
        name: finite_bits(generator("many", name), np.dtype(name), 700_001) for name in ("f4", "f8")
    }
    made["i1"] = draw(generator("many", "i1"), np.dtype("i1"), 20_000_001)
    given = {name: (a, a[::-2], on_device(a), on_device(a[::-3])) for name, a in made.items()}
    ops = ("sum", "prod", "argmin", "max", "count_nonzero")
    want = {
        (name, op): [bits(call(op, b, device="cpu")) for b in (a, a[::-2], a, a[::-3])]
        for name, a in made.items()
        for op in ops
    }
    wrong, start = [], threading.Barrier(16)

    def work(seed):
        start.wait()
        for name, op in np.random.default_rng(seed).permutation(list(want)).tolist() * 3:
            got = [bits(call(op, b, device="cuda")) for b in given[name]]
            if got != want[name, op]:
                wrong.append((name, op))

    in_threads(16, work)
    assert not wrong


def test_arrays_that_change_meanwhile():
    a = finite_bits(generator("change"), np.dtype("f8"), 3_000_000)
    stop = threading.Event()

    def work(index):
        if index:
            for _ in range(30):
                call(("sum", "prod", "max")[index % 3], a, device="cuda")
            stop.set()
        while not index and not stop.is_set():
            a[:] = a[::-1].copy()

    in_threads(4, work)
    assert bits(gpureduce.sum(a, device="cuda")) == bits(gpureduce.sum(a, device="cpu"))


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def refused(*arguments, **named):
    with pytest.raises((ValueError, TypeError, gpureduce.DeviceError)):
        gpureduce.sum(*arguments, **named)


@pytest.mark.alone
def test_no_leak():
    small, large = A, np.ones(1_500_000)
    there, strided, none = on_device(A), on_device(A[::-2]), on_device(A[:0])
    host = Interface(interface_of(A, A.ctypes.data))
    calls = [
        lambda: gpureduce.sum(small, device="cuda"),
        lambda: gpureduce.prod(there),
        lambda: gpureduce.argmax(strided),
        lambda: gpureduce.sum(none),
        lambda: gpureduce.sum(there, dtype="f4"),
    ]
    errors = [
        lambda: refused(host),
        lambda: refused(there, device="cpu"),
        lambda: refused(small, device="cuda:99"),
        lambda: refused(Interface({"shape": 3})),
    ]

    def round_of(count):
        for _ in range(count):
            for work in calls:
                work()
        for _ in range(count // 8):
            for work in errors:
                work()
        for _ in range(count // 100):
            gpureduce.sum(large, device="cuda")

    round_of(300)
    device, host_bytes = free_bytes(), resident_bytes()
    round_of(2000)
    assert device - free_bytes() < MIB
    assert resident_bytes() - host_bytes < 4 * MIB


@pytest.mark.alone
def test_memory_is_bounded():
    """Ring and workspace do not grow with the array."""
    text = """
import numpy as np
import gpureduce
from device import free_bytes
a = np.broadcast_to(np.random.default_rng(0).random(1_000_003), (64, 1_000_003))
gpureduce.sum(np.ones(5), device="cuda"), gpureduce.sum(np.ones(5)[::-2], device="cuda")
before = free_bytes()
gpureduce.sum(a, device="cuda"), gpureduce.sum(a[:, ::-1], device="cuda")
print(before - free_bytes())
"""
    assert int(script(text)) <= 64 * MIB


# Arrays that the L2 may hold are read from the front and from the back in turns.
@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64"])
def test_again_and_again(name):
    rng = generator("again", name)
    for n, start in ((300_007, 1), (2_000_000, 0), (2_000_003, 5)):
        a = finite_bits(rng, numpy_dtype(name), n)
        given = on_device(a[start:])
        want = bits(call("sum", a[start:], device="cpu"))
        assert {bits(call("sum", given)) for _ in range(4)} == {want}


# --- under compute-sanitizer ----------------------------------------------------------------------


@pytest.mark.sanitized
def test_every_kernel_once():
    """Several blocks and tails, aligned and not, in place and gathered; lean: tools are slow."""
    wrong, made = [], {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op, name, _, law in BY_DTYPE:
            if name not in made:
                dtype = numpy_dtype(name)
                n = max(40_000, 100_000 // dtype.itemsize)
                floats = is_float(dtype) or dtype.kind == "c"
                rng = generator("sanitized", name)
                a = finite_bits(rng, dtype, n) if floats else draw(rng, dtype, n)
                made = {name: (a, on_device(a[3:9_000]), on_device(a[:700:-3]))}
            a, moved, strided = made[name]
            tame = a.copy()
            tame[:] = 1
            for label, host, given in (
                ("host", a, a),
                ("moved", a[3:9_000], moved),
                ("strided", a[:700:-3], strided),
                ("ones", tame, tame),
            ):
                if label == "strided" and law == "free" and op != "argmax":
                    continue  # the gathering is the dtype's, not the operator's
                device = "cuda" if given is host else "auto"
                if not same(call(op, given, device=device), call(op, host, device="cpu")):
                    wrong.append((op, name, label))
    assert not wrong


def test_a_flag_is_never_missed():
    """Many short calls, one after the other, on several streams' worth of workspaces."""
    a = np.arange(5000)
    start = time.monotonic()
    for n in range(1, 5000, 3):
        assert gpureduce.sum(a[:n], device="cuda") == n * (n - 1) // 2
    assert time.monotonic() - start < SECONDS


# --- where kernels come from ----------------------------------------------------------------------

FROM = """
import sys
import numpy as np
import gpureduce
from gpureduce import pack
if "no pack" in sys.argv:
    pack.find = lambda arch, key: None
a = np.arange(1000, dtype=np.int16) * 31
try:
    b = gpureduce.max(a.reshape(40, 25), axis=0, device="cuda")
    print(gpureduce.sum(a, device="cuda"), b[7])
except gpureduce.DeviceError as error:
    print(error)
print("nvrtc" if "libnvrtc" in open("/proc/self/maps").read() else "no nvrtc")
"""
ANSWER = f"{31 * 999 * 1000 // 2} {31 * (39 * 25 + 7)}"


def kernels_from(words, cache, nvrtc):
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "GPUREDUCE_NVRTC": nvrtc}
    command = [sys.executable, "-c", FROM, *words]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=True
    )
    return done.stdout.splitlines()


def test_kernels_are_compiled_kept_and_found(tmp_path):
    there, why = _core.compiler("sm_{}{}".format(*gpureduce.devices()[0]["compute_capability"]))
    if not there and not os.environ.get("GPUREDUCE_NVRTC"):
        pytest.skip(f"no NVRTC: {why}")
    assert kernels_from(["no pack"], tmp_path, "") == [ANSWER, "nvrtc"]
    assert len(list((tmp_path / "gpureduce").glob("*.kernel"))) == 2
    assert kernels_from(["no pack"], tmp_path, "none") == [ANSWER, "no nvrtc"]
    said, loaded = kernels_from(["no pack"], tmp_path / "empty", "none")
    assert "GPUREDUCE_NVRTC=none" in said and "pip install" in said and loaded == "no nvrtc"


def test_a_pack_needs_no_compiler(tmp_path):
    from gpureduce import pack

    arch = "sm_{}{}".format(*gpureduce.devices()[0]["compute_capability"])
    if not pack.of(arch):
        pytest.skip(f"no pack of {arch}: python -m gpureduce cache pack")
    assert kernels_from([], tmp_path, "none") == [ANSWER, "no nvrtc"]
    assert not list(tmp_path.iterdir())
