"""Users' operators on a GPU: the bits of the CPU, of arrays of any library, in any layout.

Needs a CUDA device; skipped with the reason where there is none."""

import ctypes
import importlib.util
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import operator_walks as walks
import pytest
from arrays import generator
from device import on_device
from operator_cases import CASES
from test_own_kind import host

import gpureduce
from gpureduce import Operator, _core

COUNT, WHY = _core.device_count()
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not COUNT, reason=f"no GPU: {WHY}"),
    pytest.mark.filterwarnings("ignore"),
]
LIBRARIES = [name for name in ("raw", "torch", "cupy") if name == "raw" or
             importlib.util.find_spec(name)]  # fmt: skip
LONG = [((3_000_001,), 0), ((5, 400_000), 1), ((200_000, 40), 0), ((500_000, 3), 0),
        ((60, 170, 90), (0, 2)), ((20_000, 33), 1)]  # fmt: skip


class Raw:
    """Memory with nothing but its interface: any layout, byte order and address."""

    has_own_functions = True
    put = staticmethod(on_device)

    @staticmethod
    def fetched(a):
        return host(a) if hasattr(a, "__cuda_array_interface__") else np.asarray(a)


class Torch(Raw):
    @staticmethod
    def put(a):
        import torch

        flipped = any(s < 0 for s in a.strides) or not a.dtype.isnative or not a.flags.aligned
        if flipped or a.dtype.name not in dir(torch) or not a.size:
            return on_device(a)
        span = sum((n - 1) * s for n, s in zip(a.shape, a.strides, strict=True)) // a.itemsize + 1
        if any(s % a.itemsize for s in a.strides):
            return on_device(a)
        flat = np.lib.stride_tricks.as_strided(a, (span,), (a.itemsize,))
        there = torch.from_numpy(flat.copy()).cuda()
        return torch.as_strided(there, a.shape, [s // a.itemsize for s in a.strides])

    @staticmethod
    def fetched(a):
        import torch

        return a.cpu().numpy() if isinstance(a, torch.Tensor) else Raw.fetched(a)


class Cupy(Raw):
    @staticmethod
    def put(a):
        import cupy

        if not a.dtype.isnative or not a.flags.aligned or not a.size:
            return on_device(a)
        high = sum(max(0, (n - 1) * s) for n, s in zip(a.shape, a.strides, strict=True))
        low = sum(min(0, (n - 1) * s) for n, s in zip(a.shape, a.strides, strict=True))
        room = (ctypes.c_char * (high - low + a.itemsize)).from_address(a.ctypes.data + low)
        memory = cupy.asarray(np.frombuffer(room, np.uint8).copy())
        return cupy.ndarray(a.shape, a.dtype, memory.data - low, a.strides)

    @staticmethod
    def fetched(a):
        import cupy

        return cupy.asnumpy(a) if isinstance(a, cupy.ndarray) else Raw.fetched(a)


PLACES = {"raw": Raw, "torch": Torch, "cupy": Cupy}
each_library = pytest.mark.parametrize("library", LIBRARIES)


@pytest.fixture(scope="module", autouse=True)
def kernels():
    """All that most tests need, compiled at the same time."""

    def compiled(name):
        rng = generator("kernels of operators", name)
        op = walks.made(name)
        for shape in ((5,), (5000,)):
            inputs = [on_device(a) for a in CASES[name].make(rng, shape)]
            op(*inputs)
            if name in walks.MASKED:
                op(*inputs, where=on_device(np.ones(shape, bool)))

    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        list(pool.map(compiled, CASES))


@each_library
@pytest.mark.parametrize("name", CASES)
def test_the_bits_are_the_cpus(name, library):
    walks.walk_layouts(PLACES[library], name, generator("operators there", name, library), 6)


@pytest.mark.parametrize(
    "name", ["affine", "line", "two sum", "welford", "half", "complex product"]
)
def test_addresses(name):
    walks.walk_addresses(Raw, name, generator("addresses there", name), 60)


@each_library
@pytest.mark.parametrize("name", walks.MASKED)
def test_masks(name, library):
    walks.walk_masks(PLACES[library], name, generator("masks there", name, library), 4)


@pytest.mark.parametrize("name", CASES)
def test_long_ones_are_cut(name):
    shapes = LONG if name in walks.MASKED else LONG[::2]
    walks.walk_long_ones(Raw, name, generator("long ones there", name), shapes)


@each_library
@pytest.mark.parametrize("name", ["runs", "line", "two sum"])
def test_segments(name, library):
    rng = generator("segments there", name, library)
    walks.walk_segments(PLACES[library], name, rng, 20_000, 7)


@each_library
@pytest.mark.parametrize(
    "walk", [walks.walk_arguments, walks.walk_outs, walks.walk_rows, walks.walk_again]
)
def test_what_else_is_asked(walk, library):
    walk(PLACES[library])


@pytest.mark.parametrize("walk", [walks.walk_the_host, walks.large_states, walks.many_numbers])
def test_what_is_large_or_of_the_host(walk):
    walk(Raw)


@pytest.mark.parametrize("kernel", walks.TEXTBOOK)
def test_the_textbook_kernels(kernel):
    walks.walk_textbook(Raw, kernel)


def test_exact_sums():
    shapes = [((200_000,), None), ((300, 700), 0), ((300, 700), 1), ((5000, 7), 1)]
    walks.walk_exact(Raw, generator("exact there"), shapes)


def test_every_root():
    """Of all floats: the device's is made of steps of our own."""
    op = Operator("f4", lift="sqrtf(x)", combine="a + b", name="roots")
    with np.errstate(invalid="ignore"):
        for first in range(0, 1 << 32, 1 << 26):
            x = np.arange(first, first + (1 << 26), dtype=np.uint32).view(np.float32)
            found, wanted = host(op(on_device(x), axis=())), np.sqrt(x)
            assert np.array_equal(found, wanted, equal_nan=True), hex(first)
            assert np.array_equal(np.signbit(found[x == 0]), np.signbit(wanted[x == 0]))


def test_quick_steps():
    walks.walk_quick(Raw, generator("quick steps"), 40)


@each_library
def test_results_are_of_the_callers_kind(library):
    x = np.arange(12.0).reshape(3, 4)
    there = PLACES[library].put(x)
    found = walks.made("welford")(there, axis=0)
    kind = {"raw": _core.DeviceArray}.get(library, type(there))
    assert all(type(part) is kind for part in found)
    assert type(walks.made("two sum")(there)) is np.float64


def test_threads_and_streams():
    """The same bits of many calls at a time, some of them the first of their kernel."""
    x = generator("threads there").normal(size=(300, 2000))
    there, found = on_device(x), []
    op = Operator("f8", combine="a * 0.5 + b", identity=None, name="halves")
    wanted = [op(x, axis=axis).tobytes() for axis in (0, 1)]

    def work():
        for _ in range(5):
            found.append([host(op(there, axis=axis)).tobytes() for axis in (0, 1)])

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 30


@pytest.mark.skipif("torch" not in LIBRARIES, reason="no torch")
def test_another_stream_of_torch():
    import torch

    x = torch.randn(1000, 300, dtype=torch.float64, device="cuda")
    op = walks.made("two sum")
    wanted = op(x.cpu().numpy(), axis=0)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(20):
            doubled = x * 2
            found = op(doubled, axis=0)
            del doubled
    stream.synchronize()
    assert (found.cpu().numpy() / 2).tobytes() == wanted.tobytes()


def test_programs_that_nobody_has_are_ended():
    x = on_device(np.arange(100.0))
    for n in range(5):
        op = Operator("f8", combine=f"a + b * {n + 2}.0", name="short")
        op(x)
        del op
    assert gpureduce.sum(x) == 4950


JAX = """
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp, numpy as np, gpureduce
x = np.random.default_rng(0).normal(size=(40, 60))
op = gpureduce.Operator("f8", combine="a - 0.5 * b", name="minus")
found = op(jnp.asarray(x), axis=0)
assert isinstance(found, jax.Array) and np.asarray(found).tobytes() == op(x, axis=0).tobytes()
assert op(jnp.asarray(x)) == op(x)
"""


@pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="no JAX")
def test_jax():
    env = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    root = str(Path(gpureduce.__file__).parent.parent)
    env["PYTHONPATH"] = os.pathsep.join([root, env.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", JAX], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
